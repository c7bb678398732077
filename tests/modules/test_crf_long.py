"""The CRF in float32 on long sentences with large scores, by each of its paths, against plain loops in float64."""

import itertools
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import MASK_RULE, check_mask
from ner_experiments.modules.kernels import cpu, cuda

SETTINGS = [(9, 3, 30), (9, 1e4, 1e4), (130, 1e4, 1e4)]
"""Number of tags, and standard deviations of the scores and of the transitions."""
MORE_SETTINGS = [(9, 1, 1), (9, 300, 30), (9, 1e4, 30), (9, 1, 1e4), (130, 300, 30)]
"""Settings of the slow tests."""


@pytest.fixture(params=["numba", "pytorch", "triton"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The path that computes the CRF; without a GPU, Triton's interpreter stands in for one."""
    name: str = request.param
    if name == "triton" and not find_spec("triton"):
        pytest.skip("needs triton")
    monkeypatch.setattr(cpu, "supports_crf", lambda scores: name == "numba")
    monkeypatch.setattr(cuda, "supports_crf", lambda scores: name == "triton" and scores.shape[2] <= 128)
    if name != "triton":
        yield name
    elif torch.cuda.is_available():
        with torch.device("cuda"):
            yield name
    else:
        monkeypatch.setattr(torch.cuda, "device", lambda _: torch.device("cpu"))
        yield name


class Expected(NamedTuple):
    log_partition: float
    marginals: np.ndarray
    counts: np.ndarray
    """Expected number of transitions from one tag (row) to the next (column)."""
    best: list[int]


def log_sum_exp(x: np.ndarray, axis: int) -> np.ndarray:
    top = x.max(axis, keepdims=True)
    return (top + np.log(np.exp(x - top).sum(axis, keepdims=True))).squeeze(axis)


def loops(scores: np.ndarray, start: np.ndarray, pairs: np.ndarray, end: np.ndarray) -> Expected:
    """Forward, backward and Viterbi recursions over the tokens of one sentence."""
    alpha, reached = [start + scores[0]], [start + scores[0]]
    for now in scores[1:]:
        alpha.append(log_sum_exp(alpha[-1][:, None] + pairs, 0) + now)
        reached.append((reached[-1][:, None] + pairs).max(0) + now)
    beta, best = [end], [int((reached[-1] + end).argmax())]
    for now, before in zip(scores[:0:-1], reached[-2::-1], strict=True):
        beta.append(log_sum_exp(pairs + now + beta[-1], 1))
        best.append(int((before + pairs[:, best[-1]]).argmax()))
    log_z = float(log_sum_exp(alpha[-1] + end, 0))
    counts = np.zeros_like(pairs)
    for before, now, after in zip(alpha[:-1], scores[1:], beta[-2::-1], strict=True):
        counts += np.exp(before[:, None] + pairs + now + after - log_z)
    marginals = np.exp(np.stack(alpha) + np.stack(beta[::-1]) - log_z)
    return Expected(log_z, marginals, counts, best[::-1])


def score_of(
    tags: list[int], scores: np.ndarray, start: np.ndarray, pairs: np.ndarray, end: np.ndarray
) -> float:
    moves = sum(pairs[pair] for pair in itertools.pairwise(tags))
    return float(start[tags[0]] + scores[range(len(tags)), tags].sum() + moves + end[tags[-1]])


@pytest.mark.parametrize(
    "path", ["numba", "pytorch", pytest.param("triton", marks=pytest.mark.slow)], indirect=True
)
@pytest.mark.parametrize(
    ("num_tags", "scale", "transition_scale"),
    [*SETTINGS, *(pytest.param(*setting, marks=pytest.mark.slow) for setting in MORE_SETTINGS)],
)
def test_float32_agrees_with_loops_in_float64(
    path: str, num_tags: int, scale: float, transition_scale: float
) -> None:
    time = 2000
    if path == "triton":  # 25 ms a token in its interpreter
        time, num_tags = 100, min(num_tags, cuda.MOST_TAGS)
    crf = CRF(num_tags=num_tags)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter, std=transition_scale)
    scores = (scale * torch.randn(1, time, num_tags)).requires_grad_()
    inputs = [x.detach().double().cpu().numpy() for x in (scores[0], crf.start, crf.transitions, crf.end)]
    expected = loops(*inputs)
    mask, gold = torch.ones(1, time, dtype=torch.bool), torch.tensor([expected.best])
    gold[0, :: time // 10] = 0
    right = expected.log_partition - score_of(gold[0].tolist(), *inputs)

    loss = crf.loss(scores, gold, mask)
    with torch.no_grad():
        assert crf.loss(scores, gold, mask).item() == pytest.approx(right, rel=1e-6, abs=1e-4)
        found_marginals = crf.marginals(scores, mask)
    assert loss.item() == pytest.approx(right, rel=1e-6, abs=1e-4)
    by_scores, by_pairs = torch.autograd.grad(loss, [scores, crf.transitions])
    one_hot = torch.nn.functional.one_hot(gold[0], num_tags)
    tolerance = 1e-5
    close(by_scores[0] + one_hot, expected.marginals, tolerance)
    close(crf.marginals(scores, mask)[0], expected.marginals, tolerance)
    close(found_marginals[0], expected.marginals, tolerance)
    for before, after in itertools.pairwise(gold[0].tolist()):
        expected.counts[before, after] -= 1
    close(by_pairs, expected.counts, 1e-3)
    deficit = score_of(expected.best, *inputs) - score_of(crf.decode(scores, mask)[0].tolist(), *inputs)
    assert 0 <= deficit <= 1e-6 * max(scale, transition_scale)


def close(found: Tensor, expected: np.ndarray, tolerance: float) -> None:
    torch.testing.assert_close(
        found.detach().double().cpu(), torch.from_numpy(expected), rtol=0, atol=tolerance
    )


@pytest.mark.parametrize(
    "path", ["numba", "pytorch", pytest.param("triton", marks=pytest.mark.slow)], indirect=True
)
def test_the_best_path_is_found_where_sums_outgrow_float32(path: str) -> None:
    torch.manual_seed(47)  # by which sums that grow with the sentence find a path 0.007 below the best
    crf = CRF(num_tags=20)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter, std=30)
    scores = 3 * torch.randn(1, 2000, 20)
    inputs = [x.detach().double().cpu().numpy() for x in (scores[0], crf.start, crf.transitions, crf.end)]
    found = crf.decode(scores, torch.ones(1, 2000, dtype=torch.bool))[0].tolist()
    assert score_of(loops(*inputs).best, *inputs) - score_of(found, *inputs) < 1e-6


MASKS = {
    "a hole": [[1, 1, 1], [1, 0, 1]],
    "padding on the left": [[1, 1, 1], [0, 1, 1]],
    "no token": [[1, 1, 1], [0, 0, 0]],
}


@pytest.mark.parametrize("rows", MASKS.values(), ids=MASKS)
def test_masks_that_do_not_end_in_padding_are_refused(path: str, rows: list[list[int]]) -> None:
    crf, scores, gold = CRF(num_tags=4), torch.randn(2, 3, 4), torch.zeros(2, 3, dtype=torch.long)
    mask = torch.tensor(rows).bool()
    spans = torch.tensor([[0, 0, 2]])
    calls = {
        "loss": lambda: crf.loss(scores, gold, mask),
        "loss with a gradient": lambda: crf.loss(scores.clone().requires_grad_(), gold, mask),
        "decode": lambda: crf.decode(scores, mask),
        "marginals": lambda: crf.marginals(scores, mask),
        "marginals with a gradient": lambda: crf.marginals(scores.clone().requires_grad_(), mask),
        "spans": lambda: crf.span_probabilities(scores, gold, mask, spans),
    }
    if path == "triton":  # cannot raise without waiting for the device
        assert calls["loss"]().isnan()
        assert calls["loss with a gradient"]().isnan()
        return
    with torch.no_grad():
        calls["marginals without parameters' gradients"] = calls["marginals"]
    for name, call in calls.items():
        with pytest.raises(ValueError, match=MASK_RULE) as refusal:
            call()
        assert len(str(refusal.value).splitlines()) == 1, name


def test_the_refusal_of_a_mask_names_the_rule() -> None:
    check_mask(torch.tensor([[True, True, False], [True, False, False]]))
    with pytest.raises(ValueError, match="at least one real token in each sentence, and padding only after"):
        check_mask(torch.tensor([[True, False, True]]))


@pytest.mark.parametrize("tag", [4, -1])
def test_gold_tags_out_of_range_are_refused(path: str, tag: int) -> None:
    crf, scores, gold = CRF(num_tags=4), torch.randn(2, 3, 4), torch.zeros(2, 3, dtype=torch.long)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    gold[0, 1] = tag
    if path == "triton":
        assert crf.loss(scores, gold, mask).isnan()
        return
    with pytest.raises(ValueError, match="tags must be at least 0, and below the number of tags"):
        crf.loss(scores, gold, mask)
