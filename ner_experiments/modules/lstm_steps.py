"""The time loop of LSTMs on a CPU, by compiled kernels, over sentences without padding."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from ner_experiments.modules import compiled
from ner_experiments.modules.lstm_tokens import Tokens

GRAIN = 8_000_000
"""Work of a chunk, about 0.6 ms, in the unit of `num_chunks`."""
LARGE = 20_000_000
"""Work of a chunk that is worth a thread by itself."""
BLOCK = 128
"""States of the units that are taken together: enough for whole vectors, and little enough for the cache."""


def serve(x: Tensor) -> bool:
    return compiled.serve(x) and x.dtype in (torch.float32, torch.float64)


def num_blocks(units: int, size: int) -> int:
    """How many the units of a direction are cut into, each with as many."""
    most = max(1, BLOCK // size)
    return next(blocks for blocks in range(-(-units // most), units + 1) if units % blocks == 0)


def steps(
    x: Float[Tensor, "directions tokens in"],
    into: Float[Tensor, "blocks gates_of_block in"],
    biases: Float[Tensor, "blocks gates_of_block"],
    recurrent: Float[Tensor, "directions units gates size"],
    tokens: Tokens,
    *,
    peepholes: Float[Tensor, "directions 3 width"] | None,
    masks: Float[Tensor, "directions batch width"] | None,
) -> Float[Tensor, "directions tokens width"]:
    """The states of `lstms.read`; `width` is all units' states.

    What x is multiplied by, and the biases, are those of the directions' blocks of units: each has the gates
    i f g o of all its units.
    """
    parts = (x, into, biases, recurrent, peepholes, masks, tokens.batch)
    return Steps.apply(*parts)  # type: ignore[no-untyped-call]


class Steps(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        into: Tensor,
        biases: Tensor,
        recurrent: Tensor,
        peepholes: Tensor | None,
        masks: Tensor | None,
        batch: Any,
    ) -> Tensor:
        directions, units, _, size = recurrent.shape
        blocks, tokens, width = len(into), x.shape[1], into.shape[1] // 4
        gates = products(x, into, biases).to(recurrent.dtype).view(blocks, tokens, 4, width)
        layer = make_layer(recurrent, blocks, peepholes, masks, batch, ahead=True)
        kept = tokens if any(ctx.needs_input_grad) else 0
        states = gates.new_empty(directions, tokens, units * size)
        trace = [gates, *(gates.new_empty(blocks, kept, width) for _ in range(2))]
        arrays = compiled.kernels().lstm_batch.Trace(*map(compiled.array, trace))
        chunks, per_thread = num_chunks(gates, size, layer)
        ahead = compiled.kernels().lstm_ahead.ahead
        compiled.run(ahead, chunks, batch, layer, size, states.numpy(), arrays, per_thread=per_thread)
        ctx.save_for_backward(x, into, recurrent, peepholes, masks, *trace)
        ctx.batch = batch
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_states: Tensor) -> tuple[Tensor | None, ...]:
        x, into, recurrent, peepholes, masks, *trace = ctx.saved_tensors
        directions, units, _, size = recurrent.shape
        kernels = compiled.kernels()
        layer = make_layer(recurrent, len(into), peepholes, masks, ctx.batch, ahead=False)
        by_gates = torch.empty_like(trace[0])
        by_peepholes = by_states.new_zeros(
            layer.parts * (peepholes is not None), directions, 3, by_states.shape[2]
        )
        lanes = kernels.tiles.VECTOR // by_states.element_size()
        wide = -(-size // lanes) * lanes
        by_weights = by_states.new_zeros(directions * units * (units > 1), 4 * size, wide)
        gradient = kernels.lstm_back.Gradient(by_gates.numpy(), by_peepholes.numpy(), by_weights.numpy())
        arrays = kernels.lstm_batch.Trace(*map(compiled.array, trace))
        chunks, per_thread = num_chunks(by_gates, size, layer)
        args = ctx.batch, layer, arrays, compiled.array(by_states), size, gradient
        compiled.run(kernels.lstm_back.back, chunks, *args, per_thread=per_thread)
        if units > 1:
            by_recurrent = by_weights[..., :size].reshape_as(recurrent)
        else:
            by_recurrent = (by_gates.flatten(2).mT @ trace[2]).view_as(recurrent)
        return (
            *by_factors(by_gates.flatten(2).to(x.dtype), x, into, by_input=ctx.needs_input_grad[0]),
            by_recurrent,
            by_peepholes.sum(0) if peepholes is not None else None,
            None,
            None,
        )


def products(
    x: Float[Tensor, "directions tokens in"],
    into: Float[Tensor, "blocks gates_of_block in"],
    biases: Float[Tensor, "blocks gates_of_block"],
) -> Float[Tensor, "blocks tokens gates_of_block"]:
    sums = x.new_empty(len(into), x.shape[1], into.shape[1])
    for block, (out, weights, bias) in enumerate(zip(sums, into, biases, strict=True)):
        torch.addmm(bias, x[block * len(x) // len(into)], weights.T, out=out)
    return sums


def by_factors(
    by_sums: Float[Tensor, "blocks tokens gates_of_block"],
    x: Float[Tensor, "directions tokens in"],
    into: Float[Tensor, "blocks gates_of_block in"],
    *,
    by_input: bool,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The gradients of `products` by x, if asked for, by weights and by biases.

    One product of all blocks would be one of matrices whose rows are powers of two apart, which takes twice
    as long.
    """
    by_x, by_into = torch.zeros_like(x) if by_input else None, torch.empty_like(into)
    for block, (by, weights) in enumerate(zip(by_sums, into, strict=True)):
        direction = block * len(x) // len(into)
        torch.mm(by.T, x[direction], out=by_into[block])
        if by_x is not None:
            by_x[direction].addmm_(by, weights)
    return by_x, by_into, by_sums.sum(1)


def make_layer(
    recurrent: Tensor,
    blocks: int,
    peepholes: Tensor | None,
    masks: Tensor | None,
    batch: Any,
    *,
    ahead: bool,
) -> Any:
    kernels = compiled.kernels()
    directions, units, _, size = recurrent.shape
    pack = kernels.lstm_units.pack_ahead if ahead else kernels.lstm_units.pack_back
    packed = compiled.call(pack, compiled.array(recurrent).reshape(directions * units, 4, size, size))
    nothing = recurrent.new_empty(0, 0, units * size)
    return kernels.lstm_batch.Layer(
        packed,
        compiled.array(nothing if peepholes is None else peepholes),
        compiled.array(nothing if masks is None else masks),
        blocks // directions,
        1 if units > 1 else len(batch.firsts),
    )


def num_chunks(gates: Tensor, size: int, layer: Any) -> tuple[int, int]:
    """And how many a thread should have at least. A token takes about as long as width (size + 32)."""
    blocks, tokens, _, width = gates.shape
    jobs = blocks * layer.parts
    work = blocks * tokens * width * (size + 32)
    chunks = int(max(1, min(compiled.MOST_CHUNKS, jobs, work // GRAIN)))
    return chunks, 1 if work > LARGE * chunks else compiled.CHUNKS_PER_THREAD
