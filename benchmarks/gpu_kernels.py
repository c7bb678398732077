"""Kernels on a GPU against the loops that they replace and against other libraries, for gpu.py."""

from collections.abc import Callable
from functools import partial
from typing import Any

import crf
import timing
import torch
import units
from torch import Tensor

from ner_experiments.modules import lstm
from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import Transitions, plain_viterbi
from ner_experiments.modules.forward_backward import plain_likelihood
from ner_experiments.modules.units import BiLSTMUnits


def measure_crf(
    batch: int, length: int, tags: int, peers: list[str], rounds: int, device: str
) -> dict[str, Any]:
    makers = {"PyTorch": without_kernels, **{name: crf.PEERS[name] for name in peers}}
    return crf.measure_shape(batch, length, tags, makers, rounds, device)


def without_kernels(ours: CRF) -> crf.Contestant:
    """The suite's CRF in PyTorch."""
    transitions = Transitions(ours.start, ours.transitions, ours.end)
    return crf.Contestant(
        "PyTorch",
        list(ours.parameters()),
        lambda problem: plain_likelihood(*problem, transitions),
        lambda problem: plain_viterbi(problem.scores, problem.mask, transitions),
    )


def measure_units(number: int, size: int, in_graphs: bool, rounds: int, device: str) -> list[dict[str, Any]]:
    torch.backends.cudnn.allow_tf32 = False
    about = {"units": number, "size": size}
    how = (rounds, device, partial(by_step, device), recorded if in_graphs else None)
    return [
        {**about, "ragged": ragged, **units.measure_shape(number, size, ragged, *how)}
        for ragged in (False, True)
    ]


def by_step(device: str, ours: BiLSTMUnits) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """Kernels per time step, also where others are chosen."""

    def states(x: Tensor, lengths: Tensor) -> Tensor:
        return steps(device)(x[None], lengths, ours.weights(), (False, True), None).movedim(0, 3).flatten(3)

    return {"by step": states}


def steps(device: str) -> Callable[..., Tensor]:
    """The kernels per time step; without a GPU, the loop that they replace."""
    return lstm.loop_states if device == "cpu" else partial(lstm.triton_states, by_step=True)


def measure_compiled(number: int, size: int, rounds: int, device: str) -> dict[str, Any]:
    """Times of units, forward and backward, by a loop that `torch.compile` unrolls, and the seconds that this takes."""
    torch.manual_seed(0)
    torch.set_default_device(device)
    ours = BiLSTMUnits(input_size=units.INPUT, num_units=number, unit_size=size, dropout=0.0)
    x = torch.randn(units.BATCH, units.TIME, units.INPUT, requires_grad=True)
    lengths = torch.full((units.BATCH,), units.TIME)
    up = torch.randn(units.BATCH, units.TIME, number, 2 * size)
    ways = {"ours": ours, "torch.compile": torch.compile(partial(units.lock_step, ours))}
    runs = {
        name: partial(units.gradients, units.Contestant(way, list(ours.parameters())), x, lengths, up)
        for name, way in ways.items()
    }
    start = timing.now()
    compiled = runs["torch.compile"]()
    seconds = timing.now() - start
    torch.testing.assert_close(compiled, runs["ours"](), rtol=1e-3, atol=1e-3)
    return {"seconds": seconds, **timing.measure(runs, rounds)}


def measure_recurrence(size: int, peepholes: bool, rounds: int, device: str) -> dict[str, Any]:
    """Times of a BiLSTM on 10 sentences of up to 20 tokens, forward and backward, by a loop and by kernels."""
    torch.manual_seed(0)
    torch.set_default_device(device)
    shapes = ((4 * size, size), (4 * size, size), (4 * size,), (3, size))
    parts = [(torch.randn(2, 1, *shape) * size**-0.5).requires_grad_() for shape in shapes]
    weights = lstm.Weights(*parts if peepholes else parts[:3])
    mask = None if peepholes else 2.0 * torch.randint(2, (2, 1, 10, size))
    x, lengths = torch.randn(1, 10, 20, size, requires_grad=True), torch.arange(11, 21)
    real = torch.arange(20) < lengths[:, None]
    up, leaves = torch.randn(2, 10, 20, 1, size) * real[..., None, None], [x, *parts[: 4 if peepholes else 3]]

    def derived(way: Callable[..., Tensor]) -> list[Tensor]:
        states = way(x, lengths, weights, (False, True), mask)
        return [states.detach(), *torch.autograd.grad(states, leaves, up)]

    runs = {"loop": partial(derived, lstm.loop_states), "by step": partial(derived, steps(device))}
    (loop, *gradients), (states, *others) = (run() for run in runs.values())
    torch.testing.assert_close(states[:, real], loop[:, real], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(others, gradients, rtol=1e-3, atol=1e-4)
    return timing.measure(runs | {f"{name}, graph": recorded(run) for name, run in runs.items()}, rounds)


def recorded(run: Callable[[], Any]) -> Callable[[], Any]:
    """The run as a CUDA graph; without a GPU the run itself."""
    if not torch.cuda.is_available():
        return run
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # compiles kernels and lets libraries choose theirs
        run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay
