"""The CRF with its Triton kernels: padding, layouts, precision, and the conditions for using them."""

import itertools
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from crf_checks import make_transitions
from crf_on_a_gpu import DEVICE, LENGTHS, use_kernels
from gpu_compile import compile_for_gpu
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from ner_experiments.modules.crf import CRF
from ner_experiments.modules.forward_backward import (
    negative_log_likelihood,
    plain_likelihood,
)
from ner_experiments.modules.kernels import cuda, trial
from ner_experiments.modules.kernels import cuda as crf_cuda

pytest.importorskip("triton")

MASK = torch.arange(5) < LENGTHS.unsqueeze(1)
supports_crf = crf_cuda.supports_crf
on_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")


@pytest.fixture(autouse=True)
def _use_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys.modules[__name__], "MASK", MASK.to(DEVICE))
    with use_kernels(monkeypatch):
        yield


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


def test_more_tags_than_fit_in_registers_run_the_plain_version() -> None:
    scores, transitions = torch.randn(3, 5, 129), make_transitions(129, 1.0)
    gold = torch.randint(129, (3, 5))
    assert not crf_cuda.supports_crf(scores)
    assert torch.equal(
        negative_log_likelihood(scores, gold, MASK, transitions),
        plain_likelihood(scores, gold, MASK, transitions),
    )


def everything(crf: CRF, scores: Tensor, gold: Tensor, mask: Tensor) -> list[Tensor]:
    loss = crf.loss(scores, gold, mask)
    gradients = torch.autograd.grad(loss, [scores, *crf.parameters()])
    with torch.no_grad():
        return [loss, *gradients, crf.marginals(scores, mask), crf.decode(scores, mask)]


def test_nothing_synchronizes_with_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    # A tensor without numbers gives none away.
    monkeypatch.setattr(crf_cuda, "supports_crf", lambda scores: True)
    monkeypatch.setattr(crf_cuda, "launch_crf", lambda *args: None)
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
def test_without_triton_the_plain_version_runs_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert not supports_crf(torch.zeros(1, 1, 2, device="cpu"))
    assert not caplog.records
    with FakeTensorMode():
        scores = torch.zeros(1, 1, 2, device="cuda")
    assert not supports_crf(scores)
    assert not supports_crf(scores)
    assert [record.getMessage()[:45] for record in caplog.records] == [
        "the CRF and the LSTM units run without CUDA k"
    ]


def test_the_trial_runs_and_a_kernel_that_does_not_compile_is_replaced_with_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cuda.try_crf(torch.float32, 5, torch.device(DEVICE))

    def refuse(*_: object) -> NoReturn:
        raise ValueError("cannot compile\nat line 3")

    monkeypatch.setattr(cuda, "have_triton", lambda: True)
    monkeypatch.setattr(cuda, "try_crf", refuse)
    with FakeTensorMode():
        scores = torch.zeros(1, 1, 2, device="cuda")
        assert [supports_crf(scores), supports_crf(scores)] == [False, False]
    trial.works.cache_clear()
    (record,) = caplog.records
    assert "CRF: the compiled kernels fail here (ValueError: cannot compile)" in record.getMessage()


@on_gpu
def test_a_gpu_equals_a_cpu_deterministically_without_sync() -> None:
    crf, scores = CRF(num_tags=9), torch.randn(64, 50, 9, requires_grad=True)
    mask, gold = torch.arange(50) < torch.randint(1, 51, (64, 1)), torch.randint(9, (64, 50))
    first = everything(crf, scores, gold, mask)
    try:
        with warnings.catch_warnings(action="ignore"):  # that the mode is a prototype
            torch.cuda.set_sync_debug_mode("error")
        again = everything(crf, scores, gold, mask)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    leaf = scores.detach().cpu().requires_grad_()
    with torch.device("cpu"):
        right = everything(crf.cpu(), leaf, gold.cpu(), mask.cpu())
    for found, expected in zip(first, right, strict=True):
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_kernels_compile_for_a_gpu_and_fit_in_its_registers(tmp_path: Path) -> None:
    types = {"time": "i32", "tags": "*i64", "lengths": "*i32", "losses": "*fp64"}
    for name, size in itertools.product(("forward", "backward", "viterbi"), (20, 73)):
        warps = {20: 1, 73: 16}[size]
        found = compile_for_gpu("crf_triton", name, size, types, {"num_warps": warps}, cache=tmp_path)
        assert found.spilled == 0
        assert found.shared <= 48 * 1024
