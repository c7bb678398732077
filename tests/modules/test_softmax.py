"""The softmax decoder against sums by hand."""

import itertools
import math
from typing import NamedTuple

import pytest
import torch

from ner_experiments.modules.softmax import Softmax


class Allowed(NamedTuple):
    start: list[bool]
    pairs: list[list[bool]]
    end: list[bool]


# O, B and I of one type: I neither opens a sentence nor follows O; and here, a B may not close one.
ALLOWED = Allowed(
    start=[True, True, False],
    pairs=[[True, True, False], [True, True, True], [True, True, True]],
    end=[True, False, True],
)
RAGGED = torch.tensor([4, 1, 2])
MASK = torch.arange(4) < RAGGED.unsqueeze(1)
GOLD = torch.tensor([[1, 2, 2, 0], [0, -100, -100, -100], [2, 1, 9, 9]])


def log_probabilities(scores: torch.Tensor) -> list[list[list[float]]]:
    return [
        [
            [score - max(token) - math.log(sum(math.exp(s - max(token)) for s in token)) for score in token]
            for token in sentence[:n]
        ]
        for sentence, n in zip(scores.tolist(), RAGGED, strict=True)
    ]


@pytest.mark.parametrize(("reduction", "divisor"), [("sentence", 3), ("token", 7), ("sum", 1)])
@pytest.mark.parametrize("constrained", [False, True])
def test_loss_by_hand(reduction: str, divisor: int, constrained: bool) -> None:
    torch.manual_seed(0)
    decoder = Softmax(num_tags=3, allowed=ALLOWED, constrained=constrained, reduction=reduction)
    scores = torch.randn(3, 4, 3, dtype=torch.float64)
    expected = -sum(
        token[tag]
        for sentence, tags in zip(log_probabilities(scores), GOLD.tolist(), strict=True)
        for token, tag in zip(sentence, tags, strict=False)
    )
    assert decoder.loss(scores, GOLD, MASK).item() == pytest.approx(expected / divisor, abs=1e-12)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda scores: decoder.loss(scores, GOLD, MASK), scores)
    assert torch.autograd.gradgradcheck(lambda scores: decoder.loss(scores, GOLD, MASK), scores)


@pytest.mark.parametrize("constrained", [False, True])
def test_decoding_by_hand(constrained: bool) -> None:
    torch.manual_seed(1)
    decoder = Softmax(num_tags=3, allowed=ALLOWED, constrained=constrained)
    for scale in (1.0, 10.0, 1e6):
        scores = scale * torch.randn(3, 4, 3)
        best = decoder.decode(scores, MASK)
        for i, sentence in enumerate(log_probabilities(scores)):
            n = len(sentence)
            legal = [
                tags
                for tags in itertools.product(range(3), repeat=n)
                if not constrained
                or (
                    ALLOWED.start[tags[0]]
                    and ALLOWED.end[tags[-1]]
                    and all(ALLOWED.pairs[a][b] for a, b in itertools.pairwise(tags))
                )
            ]
            expected = max(legal, key=lambda tags: sum(t[tag] for t, tag in zip(sentence, tags, strict=True)))
            assert best[i].tolist() == [*expected, *[0] * (4 - n)]


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("filling", [math.nan, math.inf, 1e9])
def test_padding_changes_nothing(constrained: bool, filling: float) -> None:
    torch.manual_seed(3)
    decoder = Softmax(num_tags=3, allowed=ALLOWED, constrained=constrained)
    real = torch.randn(3, 4, 3)
    outputs = []
    for filled in (0.0, filling):
        scores = real.masked_fill(~MASK.unsqueeze(2), filled).requires_grad_()
        loss = decoder.loss(scores, GOLD, MASK)
        (gradient,) = torch.autograd.grad(loss, scores)
        outputs.append([loss, gradient, decoder.decode(scores, MASK)])
    for clean, other in zip(*outputs, strict=True):
        assert torch.equal(clean, other)
    assert not outputs[1][1][~MASK].any()


def test_autocast_and_bfloat16_scores_are_computed_in_float32() -> None:
    torch.manual_seed(5)
    decoder = Softmax(num_tags=3)
    scores = torch.randn(3, 4, 3).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        loss = decoder.loss(scores, GOLD, MASK)
    assert torch.equal(loss, decoder.loss(scores.float(), GOLD, MASK))


def test_a_reduction_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="reduction must be one of sentence, token, sum, got 'mean'"):
        Softmax(num_tags=3, reduction="mean")
