"""Dropout: rates, scale, gradients, and evaluation mode."""

import pytest
import torch

from ner_experiments.modules.dropout import Dropout, random_shorts


@pytest.mark.parametrize("p", [0.1, 0.35, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_share_p_is_dropped_and_the_rest_scaled(p: float, dtype: torch.dtype) -> None:
    x = torch.ones(101, 1003, dtype=dtype, requires_grad=True)
    y = Dropout(p)(x)
    kept = y != 0
    share = kept.double().mean().item()
    assert share == pytest.approx(1 - p, abs=5 * (p * (1 - p) / x.numel()) ** 0.5)
    assert y.dtype == dtype
    torch.testing.assert_close(
        y[kept],
        torch.full_like(y[kept], 1 / (1 - p)),
        rtol=2**-7 if dtype == torch.bfloat16 else 1e-4,
        atol=0,
    )
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(gradient, y)


def test_masks_are_independent_within_a_row_and_between_calls() -> None:
    layer, ones = Dropout(0.5), torch.ones(1 << 18)
    first, second = (layer(ones) - 1 for _ in range(2))
    for shift in (1, 2, 3, 4, 16):
        assert abs((first[shift:] * first[:-shift]).mean()) < 5 / len(ones) ** 0.5
    assert abs((first * second).mean()) < 5 / len(ones) ** 0.5


def test_the_seed_decides() -> None:
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(Dropout(0.3)(torch.ones(1000)))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_nothing_is_dropped_in_evaluation_or_with_p_0_and_all_with_p_1() -> None:
    x = torch.randn(7, 5)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert not Dropout(1.0)(x).any()
    assert Dropout(0.5)(x[:0]).shape == (0, 5)


def test_all_shorts_are_equally_likely() -> None:
    high = (random_shorts(1 << 20).int() + 2**15) >> 12
    counts = torch.bincount(high, minlength=16).double()
    assert (((counts - 2**16) ** 2) / 2**16).sum() < 50  # chi-squared of 15 degrees: 1 in 100,000
