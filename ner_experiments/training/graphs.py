"""Training steps as CUDA graphs: the kernels of forward, loss and backward, hundreds per step, in one launch.

There is a graph per shape of a batch. Clipping and the optimizer are outside, so that Lightning's loop is that of every
run. Batches are rounded up to few shapes (`indexed_text.ROUNDED`); their fillers change no loss and no gradient, but a
batch of another shape draws other dropout masks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ner_experiments.data.encoder import Batch
from ner_experiments.modules.lookup import WithoutWaiting

BY_DEFAULT = False
"""Whether `runtime.cuda_graphs=auto` means true on a GPU: once benchmarks/gpu.sh has shown that graphs are right."""

Losses = dict[str, Tensor]
Record = Callable[[Callable[[], Losses]], tuple[Callable[[], object], Losses]]
"""From a function on tensors that stay in place to its replay, and the tensors to which a replay writes the result."""


class Graphs:
    """Steps by the shape of the batch: eager at first, which compiles kernels; then recorded; from then on replayed.

    losses: the loss of a batch, under this name, and what else is reported. `gradients` are those of the last replay.
    """

    def __init__(
        self, losses: Callable[[Batch], Losses], weights: Sequence[nn.Parameter], record: Record
    ) -> None:
        self.losses, self.weights, self.record = losses, weights, record
        self.gradients: list[Tensor | None] = []
        self.recorded: dict[Hashable, Recorded | None] = {}
        self.eager = False
        """Whether the next step has to keep its autograd graph, for a callback that reads it."""
        self.replays = 0

    def step(self, batch: Batch) -> Losses:
        """The losses of the batch: with an autograd graph, or of a replay, after which `set_gradients` is due."""
        shape = shape_of(batch)
        with WithoutWaiting():
            if self.eager or shape not in self.recorded:
                self.recorded.setdefault(shape, None)
                return self.losses(batch)
            self.recorded[shape] = recorded = self.recorded[shape] or Recorded(self, batch)
            self.replays += 1
            return recorded(batch)

    def set_gradients(self) -> None:
        """Give the weights the gradients of the last replay, where Lightning would compute them."""
        for weight, gradient in zip(self.weights, self.gradients, strict=True):
            weight.grad = gradient


class Recorded:
    """The step of one shape: writes losses and gradients from a copy of the batch that stays in place."""

    def __init__(self, graphs: Graphs, batch: Batch) -> None:
        self.batch = replace(batch, **{name: copied(getattr(batch, name)) for name in READ})
        graphs.gradients = graphs.gradients or [torch.zeros_like(weight) for weight in graphs.weights]
        self.replay, self.losses = graphs.record(partial(self.run, graphs))

    def run(self, graphs: Graphs) -> Losses:
        losses = graphs.losses(self.batch)
        with torch.autocast(losses["loss"].device.type, enabled=False):  # as outside of a step
            found = torch.autograd.grad(losses["loss"], graphs.weights, allow_unused=True)
        for number, gradient in enumerate(found):
            if gradient is None:
                graphs.gradients[number] = None
            elif (place := graphs.gradients[number]) is not None:
                place.copy_(gradient)
        return {name: loss.detach() for name, loss in losses.items()}

    def __call__(self, batch: Batch) -> Losses:
        for place, now in zip(tensors(self.batch), tensors(batch), strict=True):
            place.copy_(now)
        self.replay()
        return {name: loss.clone() for name, loss in self.losses.items()}


READ = ("lengths", "mask", "tags", "inputs", "places", "real")
"""The parts of a batch that a step reads."""


def copied(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {name: copied(each) for name, each in part.items()}
    if isinstance(part, tuple):
        return type(part)(*map(copied, part))
    return None if part is None else part.clone()


def tensors(batch: Batch) -> Iterator[Tensor]:
    for name in READ:
        yield from flat(getattr(batch, name))


def flat(part: Any) -> Iterator[Tensor]:
    if isinstance(part, Tensor):
        yield part
    elif part is not None:
        for each in part.values() if isinstance(part, Mapping) else part:
            yield from flat(each)


def shape_of(batch: Batch) -> Hashable:
    return tuple(each.shape for each in tensors(batch))


def recorder(device: torch.device) -> Record:
    """CUDA graphs that share their memory; without CUDA, `repeated`, which computes the same step by step."""
    return partial(captured, torch.cuda.graph_pool_handle()) if device.type == "cuda" else repeated


def captured(pool: Any, run: Callable[[], Losses]) -> tuple[Callable[[], object], Losses]:
    """A CUDA graph of the function. Raises ValueError with the way out if CUDA refuses to record a kernel."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, pool=pool):
            losses = run()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:  # leaves CUDA in doubt, so that the run cannot go on without graphs
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"a training step cannot be recorded as a CUDA graph here: {reason}; without: runtime.cuda_graphs=false"
        ) from error
    return graph.replay, losses


def repeated(run: Callable[[], Losses]) -> tuple[Callable[[], object], Losses]:
    """The function again for each replay, into the tensors of its first result; recording draws no random numbers."""
    with torch.random.fork_rng(devices=[]):
        losses = run()

    def replay() -> None:
        for name, loss in run().items():
            losses[name].copy_(loss)

    return replay, losses
