"""The time loop of LSTMs on a CPU, by compiled kernels, over sentences without padding."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from ner_experiments.modules import compiled

GRAIN = 8_000_000
"""Work of a chunk, about 0.6 ms, in the unit of `num_chunks`."""
LARGE = 20_000_000
"""Work of a chunk that is worth a thread by itself."""
BLOCK = 128
"""States of the units that are taken together: enough for whole vectors, and little enough for the cache."""


class Tokens:
    """Where the tokens of a padded batch are, sentence by sentence."""

    def __init__(self, lengths: Int[Tensor, " batch"], time: int):
        self.lengths = lengths
        self.shape = (len(lengths), time)
        real = torch.arange(time) < lengths[:, None]
        self.places = real.flatten().nonzero().squeeze(1)

    def of(self, x: Float[Tensor, "inputs batch time size"]) -> Float[Tensor, "inputs tokens size"]:
        if len(self.places) == x.shape[1] * x.shape[2]:
            return x.flatten(1, 2)
        return Gather.apply(x, self.places)  # type: ignore[no-untyped-call]

    def padded(self, x: Float[Tensor, "inputs tokens size"]) -> Float[Tensor, "inputs batch time size"]:
        """Padding is 0."""
        batch, time = self.shape
        if x.shape[1] == batch * time:
            return x.view(len(x), batch, time, -1)
        return Scatter.apply(x, self.places, batch, time)  # type: ignore[no-untyped-call]


class Gather(torch.autograd.Function):
    """x.flatten(1, 2)[:, places], whose gradient needs no addition since no place comes twice."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.batch, ctx.time = x.shape[1:3]
        return x.flatten(1, 2).index_select(1, places)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_tokens: Tensor) -> tuple[Tensor, None]:
        return scatter(by_tokens, ctx.saved_tensors[0], ctx.batch, ctx.time), None


class Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor, batch: int, time: int) -> Tensor:
        ctx.save_for_backward(places)
        return scatter(x, places, batch, time)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_padded: Tensor) -> tuple[Tensor, None, None, None]:
        return by_padded.flatten(1, 2).index_select(1, ctx.saved_tensors[0]), None, None, None


def scatter(x: Tensor, places: Tensor, batch: int, time: int) -> Tensor:
    padded = x.new_zeros(len(x), batch * time, x.shape[2]).index_copy_(1, places, x)
    return padded.view(len(x), batch, time, -1)


def serve(x: Tensor) -> bool:
    return compiled.serve(x) and x.dtype in (torch.float32, torch.float64)


def steps(
    gates: Float[Tensor, "directions tokens 4 width"],
    recurrent: Float[Tensor, "directions units gates size"],
    lengths: Int[Tensor, " batch"],
    *,
    backwards: tuple[bool, ...],
    peepholes: Float[Tensor, "directions 3 width"] | None,
    masks: Float[Tensor, "directions batch width"] | None,
) -> Float[Tensor, "directions tokens width"]:
    """The states of `lstms.read`, from what x gives the gates i f g o; `width` is all units' states."""
    return Steps.apply(gates, recurrent, peepholes, masks, lengths, backwards)  # type: ignore[no-untyped-call]


class Steps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        recurrent: Tensor,
        peepholes: Tensor | None,
        masks: Tensor | None,
        lengths: Tensor,
        backwards: tuple[bool, ...],
    ) -> Tensor:
        directions, tokens, _, width = gates.shape
        batch = make_batch(lengths, backwards)
        layer = make_layer(recurrent, peepholes, masks, len(lengths), transposed=True)
        kept = tokens if any(ctx.needs_input_grad) else 0
        states = gates.new_empty(directions, tokens, width)
        trace = [gates.new_empty(directions, kept, *shape) for shape in ((4, width), (width,), (width,))]
        size = recurrent.shape[-1]
        arrays = compiled.kernels().lstm_batch.Trace(*map(compiled.array, trace))
        chunks, per_thread = num_chunks(gates, size, layer)
        ahead = compiled.kernels().lstm_ahead.ahead
        args = batch, layer, compiled.array(gates), size, states.numpy(), arrays
        compiled.run(ahead, chunks, *args, per_thread=per_thread)
        ctx.save_for_backward(recurrent, peepholes, masks, lengths, *trace)
        ctx.backwards = backwards
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_states: Tensor) -> tuple[Tensor | None, ...]:
        recurrent, peepholes, masks, lengths, *trace = ctx.saved_tensors
        directions, units, _, size = recurrent.shape
        tokens, width = by_states.shape[1:]
        batch = make_batch(lengths, ctx.backwards)
        layer = make_layer(recurrent, peepholes, masks, len(lengths), transposed=False)
        by_gates = by_states.new_empty(directions, tokens, 4, width)
        by_peepholes = by_states.new_zeros(layer.parts * (peepholes is not None), directions, 3, width)
        lanes = compiled.kernels().tiles.VECTOR // by_states.element_size()
        wide = -(-size // lanes) * lanes
        by_weights = by_states.new_zeros(directions * units * (units > 1), 4 * size, wide)
        kernels = compiled.kernels()
        gradient = kernels.lstm_back.Gradient(by_gates.numpy(), by_peepholes.numpy(), by_weights.numpy())
        arrays = kernels.lstm_batch.Trace(*map(compiled.array, trace))
        chunks, per_thread = num_chunks(by_gates, size, layer)
        args = batch, layer, arrays, compiled.array(by_states), size, gradient
        compiled.run(kernels.lstm_back.back, chunks, *args, per_thread=per_thread)
        if units > 1:
            by_recurrent = by_weights[..., :size].reshape_as(recurrent)
        else:
            by_recurrent = (by_gates.flatten(2).mT @ trace[2]).view_as(recurrent)
        return (
            by_gates,
            by_recurrent,
            by_peepholes.sum(0) if peepholes is not None else None,
            None,
            None,
            None,
        )


def make_batch(lengths: Tensor, backwards: tuple[bool, ...]) -> Any:
    numbers = compiled.array(lengths.long())
    order = np.argsort(-numbers, kind="stable")
    return compiled.kernels().lstm_batch.Batch(
        numbers, order, numbers.cumsum() - numbers, np.array(backwards)
    )


def make_layer(
    recurrent: Tensor, peepholes: Tensor | None, masks: Tensor | None, sentences: int, *, transposed: bool
) -> Any:
    kernels = compiled.kernels()
    directions, units, _, size = recurrent.shape
    blocks = -(-units * size // max(size, BLOCK)) if units > 1 else 1
    read = compiled.array(recurrent).reshape(-1, size, size)
    packed = compiled.call(kernels.tiles.pack, read.transpose(0, 2, 1) if transposed else read)
    nothing = recurrent.new_empty(0, 0, units * size)
    return kernels.lstm_batch.Layer(
        packed.reshape(directions * units, 4, -1),
        compiled.array(nothing if peepholes is None else peepholes),
        compiled.array(nothing if masks is None else masks),
        blocks,
        1 if units > 1 else -(-sentences // kernels.lstm_batch.GROUP),
    )


def num_chunks(gates: Tensor, size: int, layer: Any) -> tuple[int, int]:
    """And how many a thread should have at least. A token takes about as long as width (size + 32)."""
    directions, tokens, _, width = gates.shape
    jobs = directions * layer.blocks * layer.parts
    work = directions * tokens * width * (size + 32)
    chunks = int(max(1, min(compiled.MOST_CHUNKS, jobs, work // GRAIN)))
    return chunks, 1 if work > LARGE * chunks else compiled.CHUNKS_PER_THREAD
