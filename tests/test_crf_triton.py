"""The CRF's Triton kernels against the plain version in float64; on a GPU, or else in Triton's interpreter.

That they compile for a GPU is tested without one.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from crf_checks import check_backward_again
from gpu_compile import compile_for_gpu
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from ner_experiments.modules import compiled, crf_cuda, cuda
from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import (
    FORBIDDEN,
    Transitions,
    centred,
    plain_viterbi,
    viterbi,
)
from ner_experiments.modules.forward_backward import (
    marginals,
    negative_log_likelihood,
    plain_likelihood,
    posterior,
)

pytest.importorskip("triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # and the interpreter, see conftest.py
LENGTHS = torch.tensor([5, 1, 3])
MASK = torch.arange(5) < LENGTHS.unsqueeze(1)
serve = crf_cuda.serve
on_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")


@pytest.fixture(autouse=True)
def _kernels_serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU's tensors too, where the interpreter stands for a GPU. What is made is made on the device."""
    if DEVICE == "cpu":
        monkeypatch.setattr(compiled, "serve", lambda scores: False)
        monkeypatch.setattr(crf_cuda, "serve", lambda scores: scores.shape[2] <= crf_cuda.MOST_TAGS)
    monkeypatch.setattr(sys.modules[__name__], "MASK", MASK.to(DEVICE))
    with torch.device(DEVICE):
        yield


def make_transitions(num_tags: int, scale: float, forbidden: float = 0.0) -> Transitions:
    """About half of the transitions may be forbidden, but none from and to the first tag."""
    pairs = scale * torch.randn(num_tags, num_tags)
    start, end = scale * torch.randn(num_tags), scale * torch.randn(num_tags)
    if forbidden:
        for scores in (pairs[1:, 1:], start[1:], end[1:]):
            scores[torch.rand(scores.shape) < 0.5] = forbidden
    return Transitions(start, pairs, end)


def derive(function: Any, dtype: torch.dtype, tensors: list[Tensor], tags: Tensor) -> Any:
    """The loss, and its gradients."""
    scores, *transitions = (x.to(dtype, copy=True).requires_grad_() for x in tensors)
    loss = function(scores, tags, MASK, Transitions(*transitions))
    return loss.detach(), torch.autograd.grad(loss, [scores, *transitions])


@pytest.mark.parametrize(
    ("num_tags", "scale", "forbidden"),
    [
        *[(num_tags, 1.0, 0.0) for num_tags in (1, 2, 37)],
        *itertools.product([9, 73], [0.3, 30.0, 1e4], [0.0, FORBIDDEN]),
        (9, 1.0, -1e4),
    ],
)
def test_kernels_equal_the_plain_version(num_tags: int, scale: float, forbidden: float) -> None:
    tensors = [scale * torch.randn(3, 5, num_tags), *make_transitions(num_tags, min(scale, 100), forbidden)]
    gold = torch.zeros(3, 5, dtype=torch.long)  # always permitted
    right, right_gradients = derive(plain_likelihood, torch.float64, tensors, gold)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        loss, gradients = derive(negative_log_likelihood, dtype, tensors, gold)
        torch.testing.assert_close(loss.double(), right, rtol=min(tolerance, 1e-6), atol=tolerance)
        for found, expected in zip(gradients, right_gradients, strict=True):
            assert found.dtype == dtype
            torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=2 * tolerance)

        scores, *transitions = (x.to(dtype) for x in tensors)
        found = marginals(scores, MASK, Transitions(*transitions))
        double = Transitions(*(x.double() for x in transitions))
        expected = posterior(centred(scores.double(), MASK), MASK, double).marginals
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=tolerance)
        best = plain_viterbi(scores, MASK, Transitions(*transitions))
        assert torch.equal(viterbi(scores, MASK, Transitions(*transitions)), best)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernels_equal_sums_over_all_tag_sequences(dtype: torch.dtype) -> None:
    scores, (start, pairs, end) = torch.randn(3, 5, 3, dtype=dtype), make_transitions(3, 1.0)
    transitions = Transitions(start.to(dtype), pairs.to(dtype), end.to(dtype))
    gold = torch.randint(3, (3, 5))
    losses, found = [], viterbi(scores, MASK, transitions).tolist()
    of_tokens = marginals(scores, MASK, transitions)
    for b, length in enumerate(LENGTHS.tolist()):
        total = {
            tags: (start[tags[0]] + end[tags[-1]]).item()
            + sum(scores[b, t, tag].item() for t, tag in enumerate(tags))
            + sum(pairs[move].item() for move in itertools.pairwise(tags))
            for tags in itertools.product(range(3), repeat=length)
        }
        log_z = math.log(math.fsum(map(math.exp, total.values())))
        losses.append(log_z - total[tuple(gold[b, :length].tolist())])
        assert found[b] == [*max(total, key=lambda tags: total[tags]), *[0] * (5 - length)]
        for t, tag in itertools.product(range(length), range(3)):
            right = math.fsum(math.exp(x - log_z) for tags, x in total.items() if tags[t] == tag)
            assert of_tokens[b, t, tag].item() == pytest.approx(right, abs=1e-6)
    for derived in (False, True):
        loss = negative_log_likelihood(scores.requires_grad_(derived), gold, MASK, transitions)
        assert loss.item() == pytest.approx(sum(losses) / 3, rel=1e-6)


def test_many_tokens_stay_exact() -> None:
    scores, transitions = 10 + torch.randn(1, 60, 5), make_transitions(5, 1.0)
    mask, gold = torch.ones(1, 60, dtype=torch.bool), torch.randint(5, (1, 60))
    double = Transitions(*(x.double() for x in transitions))
    loss = negative_log_likelihood(scores, gold, mask, transitions)
    right = plain_likelihood(scores.double(), gold, mask, double)
    assert loss.item() == pytest.approx(right.item(), rel=3e-7)
    expected = posterior(centred(scores.double(), mask), mask, double).marginals
    found = marginals(scores, mask, transitions)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=3e-6)
    torch.testing.assert_close(found.sum(2), torch.ones(1, 60), rtol=0, atol=1e-5)


@pytest.mark.parametrize("better", [5.0, 17.0, 300.0])
def test_one_path_through_improbable_tags_is_found(better: float) -> None:
    # The other tag is better at each token, but only itself may follow it, and it may not end the sentence.
    pairs = torch.tensor([[0.0, 0.0], [FORBIDDEN, 0.0]])
    transitions = Transitions(torch.zeros(2), pairs, torch.tensor([0.0, FORBIDDEN]))
    scores = torch.tensor([0.0, better]).expand(1, 6, 2).clone().requires_grad_()
    mask, gold = torch.ones(1, 6, dtype=torch.bool), torch.zeros(1, 6, dtype=torch.long)
    loss = negative_log_likelihood(scores, gold, mask, transitions)
    assert loss.item() == pytest.approx(0, abs=1e-3)
    (gradient,) = torch.autograd.grad(loss, scores)
    torch.testing.assert_close(gradient, torch.zeros(1, 6, 2))
    assert not viterbi(scores.detach(), mask, transitions).any()


def test_minus_infinity_forbids_where_another_way_is_left() -> None:
    scores, gold = torch.randn(3, 5, 9), torch.zeros(3, 5, dtype=torch.long)
    found, right = (
        derive(negative_log_likelihood, torch.float32, [scores, *transitions], gold)
        for transitions in (
            Transitions(*(x.clamp(min=-1e6).where(x > -1e6, -math.inf) for x in forbidden))
            if infinite
            else forbidden
            for forbidden, infinite in itertools.product([make_transitions(9, 1.0, FORBIDDEN)], [True, False])
        )
    )
    torch.testing.assert_close(found, right)


@pytest.mark.parametrize("num_tags", [3, 20])
def test_ties_go_to_the_same_tag(num_tags: int) -> None:
    for seed in range(5):
        torch.manual_seed(seed)
        scores = torch.randint(2, (3, 5, num_tags)).float()
        transitions = Transitions(
            *(torch.randint(2, x.shape).float() for x in make_transitions(num_tags, 1.0))
        )
        assert torch.equal(viterbi(scores, MASK, transitions), plain_viterbi(scores, MASK, transitions))


def test_backward_again_scaled_and_as_a_graph() -> None:
    check_backward_again(torch.randn(3, 5, 5), torch.randint(5, (3, 5)), MASK)


def test_second_derivatives() -> None:
    tensors = [torch.randn(3, 5, 3), *make_transitions(3, 1.0)]
    inputs = [x.double().requires_grad_() for x in tensors]
    gold, seconds = torch.randint(3, (3, 5)), []
    for function in (negative_log_likelihood, plain_likelihood):
        loss = function(inputs[0], gold, MASK, Transitions(*inputs[1:]))
        gradients = torch.autograd.grad(loss, inputs, create_graph=True)
        seconds.append(torch.autograd.grad(sum(x.square().sum() for x in gradients), inputs))
    torch.testing.assert_close(*seconds)


def test_padding_changes_nothing_and_a_batch_equals_its_sentences() -> None:
    crf, real, tags = CRF(num_tags=5), torch.randn(3, 5, 5), torch.randint(5, (3, 5))

    def results(scores: Tensor, tags: Tensor, mask: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        scores = scores.clone().requires_grad_()
        loss = crf.loss(scores, tags, mask)
        by_scores, *others = torch.autograd.grad(loss, [scores, *crf.parameters()])
        with torch.no_grad():
            return [by_scores, crf.marginals(scores, mask), crf.decode(scores, mask)], [loss, *others]

    by_token, whole = results(real, tags, MASK)
    for score, tag in ((math.nan, -100), (math.inf, 7), (1e9, 2**40)):
        scores, gold = real.masked_fill(~MASK[..., None], score), tags.masked_fill(~MASK, tag)
        others = results(scores, gold, MASK)
        assert all(torch.equal(*pair) for pair in zip(others[0] + others[1], by_token + whole, strict=True))
        assert not any(other[~MASK].any() for other in others[0])
    for b, n in enumerate(LENGTHS.tolist()):
        found, _ = results(real[b : b + 1, :n], tags[b : b + 1, :n], MASK[b : b + 1, :n])
        torch.testing.assert_close(found[0][0] / 3, by_token[0][b, :n])
        assert all(
            torch.equal(one[0], all_[b, :n]) for one, all_ in zip(found[1:], by_token[1:], strict=True)
        )


def test_scores_of_any_layout() -> None:
    crf, gold = CRF(num_tags=5), torch.randint(5, (3, 5), dtype=torch.int32)
    strided = torch.randn(5, 3, 10).transpose(0, 1)[:, :, ::2]
    mask = MASK.t().contiguous().t()
    calls: list[Callable] = [crf.decode, crf.marginals, lambda scores, mask: crf.loss(scores, gold, mask)]
    for call in calls:
        with torch.no_grad():
            assert torch.equal(call(strided, mask), call(strided.contiguous(), MASK))


def test_autocast_and_bfloat16_scores_are_computed_in_float32() -> None:
    crf, low, gold = CRF(num_tags=5), (1e3 * torch.randn(3, 5, 5)).bfloat16(), torch.randint(5, (3, 5))
    results = []
    for scores, autocast in ((low, True), (low, False), (low.float(), False)):
        with torch.autocast(DEVICE, torch.bfloat16, enabled=autocast):
            loss = crf.loss(scores, gold, MASK)
            (gradient,) = torch.autograd.grad(loss, crf.transitions)
            results.append([loss, gradient, crf.decode(scores, MASK).float()])
    for result in results:
        for found, right in zip(result, results[2], strict=True):
            assert found.dtype == torch.float32
            assert torch.equal(found, right)


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:All-NaN")  # numpy, in the interpreter
def test_nan_stays_nan_and_its_gradient_with_its_sentence() -> None:
    scores = torch.randn(3, 5, 5)
    for number, bad in ((0, math.nan), (2, math.inf)):
        scores[number, 0, 2] = bad
    transitions = make_transitions(5, 1.0)
    viterbi(scores, MASK, transitions)  # reads within bounds whatever it meets
    scores.requires_grad_()
    loss = negative_log_likelihood(scores, torch.zeros(3, 5, dtype=torch.long), MASK, transitions)
    assert loss.isnan()
    (gradient,) = torch.autograd.grad(loss, scores)
    assert gradient.isnan().any(2).any(1).tolist() == [True, False, True]


@pytest.mark.parametrize("tag", [5, -1, 2**40])
def test_no_tag_and_no_token_make_the_loss_nan(tag: int) -> None:
    scores, transitions = torch.randn(3, 5, 5, requires_grad=True), make_transitions(5, 1.0)
    gold, mask = torch.zeros(3, 5, dtype=torch.long), MASK.clone()
    gold[0, 3] = tag
    loss = negative_log_likelihood(scores, gold, mask, transitions)
    loss.backward()  # writes within bounds
    assert loss.isnan()
    mask[1:] = False
    assert negative_log_likelihood(scores, torch.zeros_like(gold), mask, transitions).isnan()
    assert not viterbi(scores.detach(), mask, transitions)[1:].any()


def test_more_tags_than_the_registers_hold_take_the_plain_version() -> None:
    scores, transitions = torch.randn(3, 5, 129), make_transitions(129, 1.0)
    gold = torch.randint(129, (3, 5))
    assert not crf_cuda.serve(scores)
    assert torch.equal(
        negative_log_likelihood(scores, gold, MASK, transitions),
        plain_likelihood(scores, gold, MASK, transitions),
    )


def everything(crf: CRF, scores: Tensor, gold: Tensor, mask: Tensor) -> list[Tensor]:
    loss = crf.loss(scores, gold, mask)
    gradients = torch.autograd.grad(loss, [scores, *crf.parameters()])
    with torch.no_grad():
        return [loss, *gradients, crf.marginals(scores, mask), crf.decode(scores, mask)]


def test_nobody_waits_for_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    # A tensor without numbers gives none away.
    monkeypatch.setattr(crf_cuda, "serve", lambda scores: True)
    monkeypatch.setattr(crf_cuda, "launch", lambda *args: None)
    with torch.device("meta"):
        scores, mask = torch.randn(3, 5, 4, requires_grad=True), torch.ones(3, 5, dtype=torch.bool)
        found = everything(CRF(num_tags=4), scores, torch.zeros(3, 5, dtype=torch.long), mask)
        assert all(x.is_meta for x in found)


@pytest.fixture
def _no_triton(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "triton", None)
    cuda.have_triton.cache_clear()
    yield
    cuda.have_triton.cache_clear()


@pytest.mark.usefixtures("_no_triton")
def test_without_triton_nothing_is_served_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    assert not serve(torch.zeros(1, 1, 2, device="cpu"))
    assert not caplog.records
    with FakeTensorMode():
        scores = torch.zeros(1, 1, 2, device="cuda")
    assert not serve(scores)
    assert not serve(scores)
    assert [record.getMessage()[:44] for record in caplog.records] == [
        "the CRF and the LSTM units do without CUDA k"
    ]


@on_gpu
def test_a_gpu_gives_what_a_cpu_gives_the_same_bits_again_and_is_not_waited_for() -> None:
    crf, scores = CRF(num_tags=9), torch.randn(64, 50, 9, requires_grad=True)
    mask, gold = torch.arange(50) < torch.randint(1, 51, (64, 1)), torch.randint(9, (64, 50))
    first = everything(crf, scores, gold, mask)
    torch.cuda.set_sync_debug_mode("error")
    try:
        again = everything(crf, scores, gold, mask)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    leaf = scores.detach().cpu().requires_grad_()
    with torch.device("cpu"):
        right = everything(crf.cpu(), leaf, gold.cpu(), mask.cpu())
    for found, expected in zip(first, right, strict=True):
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_kernels_compile_for_a_gpu_and_fit_in_its_registers(tmp_path: Path) -> None:
    types = {"time": "i32", "tags": "*i64", "lengths": "*i32", "losses": "*fp64"}
    for name, size in itertools.product(("forward", "backward", "viterbi"), (20, 73)):
        warps = {20: 1, 73: 16}[size]
        found = compile_for_gpu("crf_triton", name, size, types, {"num_warps": warps}, cache=tmp_path)
        assert found.spilled == 0
        assert found.shared <= 48 * 1024
