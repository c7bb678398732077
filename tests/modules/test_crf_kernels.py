"""The numba kernels of the CRF against the PyTorch version in float64."""

import concurrent.futures
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from crf_checks import check_against_plain, check_backward_again, derive, make_transitions
from torch import Tensor

from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import FORBIDDEN, Transitions, plain_viterbi, viterbi
from ner_experiments.modules.forward_backward import (
    negative_log_likelihood,
    plain_likelihood,
)
from ner_experiments.modules.kernels import cpu

LENGTHS = torch.tensor([11, 1, 5, 2, 20, 7])
MASK = torch.arange(20) < LENGTHS.unsqueeze(1)


def run_in_threads(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run kernels, and only kernels, in this many threads for any amount of work."""
    monkeypatch.setattr(cpu, "CRF_GRAIN", 1)
    monkeypatch.setattr(cpu, "CHUNKS_PER_THREAD", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: number)


@pytest.fixture(autouse=True)
def _two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    run_in_threads(2, monkeypatch)


@pytest.mark.parametrize("forbidden", [0.0, FORBIDDEN], ids=["free", "constrained"])
@pytest.mark.parametrize("scale", [0.3, 3.0, 30.0, 1e3, 1e4])
@pytest.mark.parametrize("num_tags", [1, 5, 16, 37])
def test_kernels_equal_the_plain_version(num_tags: int, scale: float, forbidden: float) -> None:
    tensors = [scale * torch.randn(6, 20, num_tags), *make_transitions(num_tags, min(scale, 100), forbidden)]
    check_against_plain(tensors, MASK)


def test_products_handle_typical_scores_and_report_underflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = []

    def run(share: Any, chunks: int, *args: Any) -> list[bool]:
        share(0, chunks, chunks, *args)
        refused.append(int(args[-1].underflowed.sum()))
        return [False]

    monkeypatch.setattr(cpu, "run_chunks", run)
    scores, free = torch.randn(6, 20, 9), make_transitions(9, 1.0)
    constrained = make_transitions(9, 1.0, FORBIDDEN)
    for scale in (0.3, 1.0, 3.0, 10.0, 1e4):
        for transitions in (free, constrained):
            cpu.likelihood(scale * scores, None, MASK, *transitions, weight=1.0, gradient=False)
    assert refused[:-1] == [0] * 9  # of 1e4 too, where one tag has it all, as long as any may follow it
    assert refused[-1] > 0


@pytest.mark.parametrize("num_tags", [3, 20])
def test_ties_go_to_the_same_tag(num_tags: int) -> None:
    for seed in range(20):
        torch.manual_seed(seed)
        scores = torch.randint(2, (6, 20, num_tags)).float()
        transitions = Transitions(*(torch.randint(2, x.shape).float() for x in make_transitions(num_tags, 1)))
        assert torch.equal(viterbi(scores, MASK, transitions), plain_viterbi(scores, MASK, transitions))


def test_results_are_deterministic_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = torch.arange(30) < torch.randint(1, 31, (50, 1))
    scores, gold = torch.randn(50, 30, 9), torch.randint(9, (50, 30))
    scores[::7] *= 1e4  # some refused
    tensors = [scores, *make_transitions(9, 1.0, FORBIDDEN)]
    results = []
    for threads in (1, 1, 2, 3, 5):
        run_in_threads(threads, monkeypatch)
        loss, gradients = derive(negative_log_likelihood, torch.float32, tensors, gold, mask)
        results.append([loss, *gradients, viterbi(scores, mask, Transitions(*tensors[1:]))])
    for result in results[1:]:
        for found, first in zip(result, results[0], strict=True):
            assert torch.equal(found, first)


def test_two_python_threads_at_once() -> None:
    crf = CRF(num_tags=9)
    batches = [torch.randn(6, 20, 9) for _ in range(20)]
    right = [crf.decode(scores, MASK) for scores in batches]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda scores: crf.decode(scores, MASK), batches * 5))
    assert all(torch.equal(*pair) for pair in zip(found, right * 5, strict=True))


def test_backward_again_scaled_and_as_a_graph() -> None:
    check_backward_again(torch.randn(6, 20, 5), torch.randint(5, (6, 20)), MASK)


def test_a_graph_of_scores_alone() -> None:
    scores, gold = torch.randn(6, 20, 5, requires_grad=True), torch.randint(5, (6, 20))
    loss = negative_log_likelihood(scores, gold, MASK, make_transitions(5, 1.0))
    (first,) = torch.autograd.grad(loss, scores, retain_graph=True)
    (graph,) = torch.autograd.grad(loss, scores, create_graph=True)
    torch.testing.assert_close(graph, first)


@pytest.mark.parametrize("forbidden", [0.0, FORBIDDEN], ids=["free", "constrained"])
def test_second_derivatives(forbidden: float) -> None:
    tensors = [torch.randn(2, 3, 3), *make_transitions(3, 1.0, forbidden)]
    inputs = [x.double().requires_grad_() for x in tensors]
    mask, gold = torch.tensor([[True, True, True], [True, False, False]]), torch.zeros(2, 3, dtype=torch.long)

    def loss(scores: Tensor, *transitions: Tensor) -> Tensor:
        return negative_log_likelihood(scores, gold, mask, Transitions(*transitions))

    assert torch.autograd.gradcheck(loss, inputs)
    assert torch.autograd.gradgradcheck(loss, inputs)


def test_nan_stays_nan_and_its_gradient_with_its_sentence() -> None:
    scores = torch.randn(6, 20, 5)
    for number, bad in ((0, float("nan")), (4, float("inf"))):
        scores[number, 0, 2] = bad
    scores.requires_grad_()
    gold = torch.zeros(6, 20, dtype=torch.long)
    loss = negative_log_likelihood(scores, gold, MASK, make_transitions(5, 1.0))
    assert loss.isnan()
    (gradient,) = torch.autograd.grad(loss, scores)
    assert gradient.isnan().any(2).any(1).tolist() == [True, False, False, False, True, False]


def test_scores_of_any_layout() -> None:
    crf, gold = CRF(num_tags=5), torch.randint(5, (6, 20), dtype=torch.int32)
    scores = torch.randn(20, 6, 10)
    strided, mask = scores.transpose(0, 1)[:, :, ::2], torch.cat([MASK, MASK], 1)[:, :20]
    for call in (crf.decode, crf.marginals, lambda scores, mask: crf.loss(scores, gold, mask)):
        assert torch.equal(call(strided, mask), call(strided.contiguous(), MASK))


def test_tags_and_masks_that_would_be_read_or_written_out_of_bounds() -> None:
    crf, scores = CRF(num_tags=5), torch.randn(6, 20, 5)
    gold = torch.zeros(6, 20, dtype=torch.long)
    for tag in (5, -1):
        gold[2, 4] = tag
        with pytest.raises(ValueError, match="tags must be at least 0, and below the number of tags"):
            crf.loss(scores, gold, MASK)
    empty = MASK.clone()
    empty[3] = False
    for call in (crf.decode, lambda scores, mask: crf.loss(scores, mask.long(), mask)):
        with pytest.raises(ValueError, match="mask must have at least one real token in each sentence"):
            call(scores, empty)


@pytest.fixture
def _no_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "numba", None)
    cpu.have_numba.cache_clear()
    yield
    cpu.have_numba.cache_clear()


@pytest.mark.usefixtures("_no_numba")
def test_without_numba_the_plain_version_runs_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    crf, scores, gold = CRF(num_tags=5), torch.randn(6, 20, 5), torch.zeros(6, 20, dtype=torch.long)
    plain = plain_likelihood(scores, gold, MASK, Transitions(crf.start, crf.transitions, crf.end))
    assert torch.equal(crf.loss(scores, gold, MASK), plain)
    crf.decode(scores, MASK)
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "CRF and LSTMs run without their compiled kernels, and are many times"
    )
