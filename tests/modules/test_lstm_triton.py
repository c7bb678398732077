"""The LSTM units' Triton kernels against a loop in float64; on a GPU, or else in Triton's interpreter.

That they compile for a GPU is tested without one.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from gpu_compile import compile_for_gpu
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from ner_experiments.modules.kernels import cuda, trial
from ner_experiments.modules.lstm import Weights, fastest, loop_states, stock_states, triton_states
from ner_experiments.modules.units import BiLSTMUnits

pytest.importorskip("triton")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # and the interpreter, see conftest.py
LENGTHS = [4, 1, 3]


@pytest.fixture(autouse=True)
def _on_the_device() -> Iterator[None]:
    with torch.device(DEVICE):
        yield


def loop(
    gates: Tensor, weights: Tensor, peepholes: Tensor | None, mask: Tensor | None, lengths: Tensor
) -> Tensor:
    """One sentence and unit after the other, token by token."""
    directions, batch, time, units, _ = gates.shape
    size = weights.shape[3]
    found = gates.new_zeros(directions, batch, time, units, size)
    for d, b, k in ((d, b, k) for d in range(directions) for b in range(batch) for k in range(units)):
        h = c = gates.new_zeros(size)
        ci, cf, co = gates.new_zeros(3, size) if peepholes is None else peepholes[d, k]
        tokens = range(int(lengths[b]))
        for t in reversed(tokens) if d == 1 else tokens:
            read = h if mask is None else h * mask[d, k, b]
            i, f, g, o = (gates[d, b, t, k] + weights[d, k] @ read).chunk(4)
            i, f = (i + ci * c).sigmoid(), (f + cf * c).sigmoid()
            c = f * c + i * g.tanh()
            h = (o + co * c).sigmoid() * c.tanh()
            found[d, b, t, k] = h
    return found


def make(
    size: int, units: int, peepholes: bool, mask: bool, lengths: list[int]
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor]:
    batch, time = len(lengths), max(lengths) + 1
    return (
        torch.randn(2, batch, time, units, 4 * size),
        torch.randn(2, units, 4 * size, size) / size**0.5,
        torch.randn(2, units, 3, size) if peepholes else None,
        2.0 * torch.randint(2, (2, units, batch, size)) if mask else None,
        torch.tensor(lengths),
    )


@pytest.mark.parametrize(
    ("size", "units", "peepholes", "mask", "lengths"),
    [
        (1, 1, False, False, LENGTHS),
        (5, 3, True, True, LENGTHS),
        (16, 2, False, True, [2]),
        (33, 1, True, False, LENGTHS),
        (3, 1, True, True, [1 + b % 3 for b in range(35)]),  # more than two blocks
    ],
)
def test_states_and_gradients_equal_a_loop(
    size: int, units: int, peepholes: bool, mask: bool, lengths: list[int]
) -> None:
    check_against_loop(make(size, units, peepholes, mask, lengths), by_step=False)


@pytest.mark.parametrize(
    ("size", "units", "peepholes", "mask", "lengths", "width", "tolerances"),
    [
        (1, 1, True, True, [1 + b % 2 for b in range(17)], 32, {torch.float64: 1e-12}),  # two blocks
        (63, 2, False, True, [1, 2], 64, {torch.float32: 2e-6}),
        (65, 1, True, True, [2, 1], 64, {torch.float64: 1e-12}),  # two programs for a unit
        (300, 1, True, False, [2, 1], 512, {torch.float64: 1e-12}),
    ],
)
def test_states_and_gradients_step_by_step_equal_a_loop(
    size: int,
    units: int,
    peepholes: bool,
    mask: bool,
    lengths: list[int],
    width: int,
    tolerances: dict[torch.dtype, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda, "STEP_WIDTH", width)  # the interpreter takes as long for any
    check_against_loop(make(size, units, peepholes, mask, lengths), tolerances, by_step=True)


def check_against_loop(
    tensors: tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor],
    tolerances: dict[torch.dtype, float] | None = None,
    *,
    by_step: bool,
) -> None:
    lengths = tensors[4]
    states = (*tensors[0].shape[:4], tensors[1].shape[3])
    upstream = torch.randn(states)
    double = [None if x is None else x.double().requires_grad_() for x in tensors[:3]]
    kept = None if tensors[3] is None else tensors[3].double()
    right = loop(*double, kept, lengths)
    derived = [x for x in double if x is not None]
    expected = torch.autograd.grad(right, derived, upstream.double())
    for dtype, tolerance in (tolerances or {torch.float32: 2e-6, torch.float64: 1e-12}).items():
        inputs = [None if x is None else x.to(dtype, copy=True).requires_grad_() for x in tensors[:3]]
        kept = None if tensors[3] is None else tensors[3].to(dtype)
        found = cuda.lstm_states(*inputs, kept, lengths, by_step=by_step)
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), right, rtol=0, atol=tolerance)
        gradients = torch.autograd.grad(found, [x for x in inputs if x is not None], upstream.to(dtype))
        for one, other in zip(gradients, expected, strict=True):
            scale = other.abs().max().clamp(min=1).item()
            torch.testing.assert_close(one.double(), other, rtol=0, atol=5 * scale * tolerance)


def test_parallel_units_by_kernels() -> None:
    units = BiLSTMUnits(input_size=6, num_units=3, unit_size=5, dropout=0.0)
    torch.nn.init.normal_(units.biases)
    x, lengths = torch.randn(3, 4, 6), torch.tensor(LENGTHS)
    gates = torch.einsum("bti,dugi->dbtug", x, units.input_weights) + units.biases[:, None, None]
    ahead, back = cuda.lstm_states(gates, units.recurrent_weights, None, None, lengths, by_step=False)
    found, right = torch.cat([ahead, back], dim=-1), units(x, lengths)
    real = torch.arange(4) < lengths[:, None]
    torch.testing.assert_close(found[real], right[real])
    assert not found[~real].any()
    upstream = torch.randn(3, 4, 3, 10) * real[:, :, None, None]
    for one, other in zip(
        torch.autograd.grad(found, list(units.parameters()), upstream),
        torch.autograd.grad(right, list(units.parameters()), upstream),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("by_step", [False, True], ids=["whole", "by step"])
@pytest.mark.parametrize("backwards", [(False,), (True,), (False, True)])
def test_kernels_read_forward_and_backward(backwards: tuple[bool, ...], by_step: bool) -> None:
    directions = len(backwards)
    parts = [(20, 6), (20, 5), (20,), (3, 5)]
    weights = Weights(*(torch.randn(directions, 2, *shape).requires_grad_() for shape in parts))
    x, lengths = torch.randn(1, 3, 4, 6), torch.tensor(LENGTHS)
    masks = 2.0 * torch.randint(2, (directions, 2, 3, 5))
    real = torch.arange(4) < lengths[:, None]
    upstream = torch.randn(directions, 3, 4, 2, 5) * real[:, :, None, None]
    results = []
    for read in (partial(triton_states, by_step=by_step), loop_states):
        states = read(x, lengths, weights, backwards, masks)
        results.append([states[:, real], *torch.autograd.grad(states, list(weights), upstream)])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


def test_bfloat16_gates_of_any_layout_are_computed_in_the_weights_type() -> None:
    gates, weights, _, _, lengths = make(5, 2, False, False, LENGTHS)
    low = gates.bfloat16().transpose(1, 2).contiguous().transpose(1, 2)
    found, same = (
        cuda.lstm_states(gates, weights, None, None, lengths, by_step=False)
        for gates in (low, low.float().contiguous())
    )
    assert torch.equal(found, same)


@pytest.mark.parametrize("by_step", [False, True])
def test_nothing_synchronizes_with_the_device(by_step: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # A tensor without numbers gives none away.
    monkeypatch.setattr(cuda, "launch_lstm", lambda *args, **sizes: None)
    with torch.device("meta"):
        gates, weights, peepholes, mask, lengths = make(5, 2, True, True, LENGTHS)
        found = cuda.lstm_states(gates, weights.requires_grad_(), peepholes, mask, lengths, by_step=by_step)
        found.sum().backward()
    assert weights.grad is not None


def test_plain_units_in_cudnn_do_not_synchronize_either() -> None:
    with torch.device("meta"):
        weights = Weights(
            *(torch.randn(2, 3, *shape).requires_grad_() for shape in ((20, 6), (20, 5), (20,)))
        )
        stock_states(torch.randn(1, 3, 4, 6), torch.ones(3).long(), weights, (False, True)).sum().backward()
    assert weights.recurrent.grad is not None


@pytest.mark.parametrize(("there", "most"), [(99 * 1024, 32), (163 * 1024, 64), (227 * 1024, 64)])
def test_units_in_shared_memory_run_in_one_launch_plain_larger_ones_by_cudnn_and_others_by_step(
    there: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "have_triton", lambda: True)
    monkeypatch.setattr(cuda, "shared_memory", lambda device: there)
    monkeypatch.setattr(cuda, "works", lambda *_: True)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device == "cuda" and autocast)

    def chosen(size: int, peepholes: bool = False, mask: bool = False) -> object:
        x, weights, lengths = (
            torch.zeros(1, 3, 4, size),
            torch.zeros(2, 1, 4 * size, size),
            torch.ones(3).long(),
        )
        parts = Weights(weights, weights, weights, weights if peepholes else None)
        found = fastest(x, lengths, parts, (False, True), torch.ones(2, 1, 3, size) if mask else None)
        return (found.func, *found.keywords) if isinstance(found, partial) else found

    autocast = False
    by_step = (triton_states, "by_step")
    with FakeTensorMode(), torch.device("cuda"):
        for size in (1, 20, most):
            assert chosen(size) is chosen(size, peepholes=True, mask=True) is triton_states
        assert chosen(most + 1) is stock_states
        assert chosen(most + 1, peepholes=True) == chosen(most + 1, mask=True) == by_step
        autocast = True
        assert chosen(most + 1) == by_step
        monkeypatch.setattr(cuda, "have_triton", lambda: False)
        assert chosen(1) is loop_states
        autocast = False
        assert chosen(1) is stock_states
        assert chosen(1, mask=True) is loop_states


def test_the_trial_runs_and_a_kernel_that_does_not_compile_is_replaced_with_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for by_step in (False, True):
        cuda.try_lstm(torch.float32, 5, torch.device(DEVICE), by_step)
    monkeypatch.setattr(cuda, "have_triton", lambda: True)
    monkeypatch.setattr(cuda, "shared_memory", lambda device: 10**9)
    monkeypatch.setattr(cuda, "try_lstm", refuse)
    with FakeTensorMode():
        weights = torch.zeros(2, 1, 20, 5, device="cuda")
        assert [cuda.supports_lstm(weights, False) for _ in range(2)] == [False, False]
    trial.works.cache_clear()
    (record,) = caplog.records
    assert "LSTM units: the compiled kernels fail here (ValueError: cannot compile)" in record.getMessage()


def refuse(*_: object) -> NoReturn:
    raise ValueError("cannot compile\nat line 3")


@pytest.mark.slow
def test_kernels_compile_for_a_gpu_and_fit_in_its_memory(tmp_path: Path) -> None:
    types = {"time": "i32", "batch": "i32", "units": "i32", "lengths": "*i64"}
    for name in ("forward", "backward"):
        options = {"num_warps": 8, "num_stages": 1}
        found = compile_for_gpu("lstm_triton", name, 64, types, options, cache=tmp_path)
        assert found.spilled == 0
        assert found.shared <= cuda.shared_memory_needed(64, torch.float32)
    for name in ("forward_step", "backward_step"):
        found = compile_for_gpu(
            "lstm_triton", name, cuda.STEP_WIDTH, types | {"t": "i32"}, {}, cache=tmp_path
        )
        assert found.spilled == 0
