"""Runs the LSTM units' Triton kernels on CUDA tensors; they are imported and compiled on first use."""

import functools
import importlib
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from ner_experiments.modules.cuda import have_triton, shared_memory

BLOCK = 16


@functools.cache
def kernels() -> Any:
    return importlib.import_module("ner_experiments.modules.lstm_triton")


def serve(gates: Tensor, weights: Tensor) -> bool:
    """Units up to size 64 on a GPU of a data centre, in float32 at least, and up to 32 on any."""
    if not gates.is_cuda or not have_triton():
        return False
    return needed(padded(weights.shape[-1]), weights.dtype) <= shared_memory(gates.get_device())


def needed(width: int, dtype: torch.dtype) -> int:
    """Bytes of shared memory, at most: four matrices, in two parts each, and the state."""
    return width**2 * (36 if dtype == torch.float32 else 53)


def padded(size: int) -> int:
    return max(16, 1 << (size - 1).bit_length())


def steps(
    gates: Float[Tensor, "directions batch time units gates"],
    weights: Float[Tensor, "directions units gates size"],
    peepholes: Float[Tensor, "directions units 3 size"] | None,
    mask: Float[Tensor, "directions units batch size"] | None,
    lengths: Int[Tensor, " batch"],
) -> Float[Tensor, "directions batch time units size"]:
    """The states h of LSTMs from what their input gives the gates; 0 at padding.

    Direction 0 reads from left to right, direction 1 from each sentence's last token to its first. The
    weights read h_{t-1} * mask. Of the peepholes, the input and the forget gate's see c_{t-1}, the output
    gate's sees c_t. The gates' columns, and the weights' rows, are i f g o. Computes in the weights' type.
    """
    directions, units, _, size = weights.shape
    if peepholes is None:
        diagonals = weights.new_zeros(directions, units, 4, size)
    else:
        i, f, o = peepholes.unbind(2)
        diagonals = torch.stack([i, f, torch.zeros_like(i), o], dim=2)
    if mask is None:
        mask = weights.new_ones(directions, units, len(lengths), size)
    inputs = (gates.to(weights.dtype), weights, diagonals, mask, lengths)
    return cast(Tensor, _Steps.apply(*(x.contiguous() for x in inputs)))  # type: ignore[no-untyped-call]


class _Steps(torch.autograd.Function):
    """Its backward pass finds the gates' gradients step by step, and all others as sums over all tokens."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weights: Tensor, *others: Tensor) -> Tensor:
        h = gates.new_zeros(*gates.shape[:4], weights.shape[3])
        acts = gates.new_zeros(*h.shape[:4], 5, h.shape[4])
        launch(kernels().forward, gates, weights, *others, h, acts)
        ctx.save_for_backward(weights, *others, h, acts)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_states: Tensor) -> tuple[Tensor | None, ...]:
        weights, peepholes, mask, lengths, h, acts = ctx.saved_tensors
        by_gates = h.new_zeros(*h.shape[:4], 4, h.shape[4])
        inputs = (by_states.contiguous(), weights, peepholes, mask, lengths, acts, by_gates)
        launch(kernels().backward, *inputs)
        c = acts[..., 4, :]
        seen = torch.stack([before(c), before(c), torch.zeros_like(c), c], dim=4)
        by_peepholes = (by_gates * seen).sum((1, 2))
        read = before(h) * mask.transpose(1, 2).unsqueeze(2)
        by_weights = torch.einsum("dbtugo,dbtui->dugoi", by_gates, read)
        return by_gates.flatten(4), by_weights.flatten(2, 3), by_peepholes, None, None


def before(
    x: Float[Tensor, "directions batch time units size"],
) -> Float[Tensor, "directions batch time units size"]:
    """What each direction had at the token that it read before; 0 at its first, as x is at padding."""
    found = torch.zeros_like(x)
    found[:1, :, 1:] = x[:1, :, :-1]
    found[1:, :, :-1] = x[1:, :, 1:]
    return found


def launch(kernel: Any, states: Tensor, weights: Tensor, *args: Tensor) -> None:
    """A program for each unit of each direction and `BLOCK` sentences; `states` tells how many there are."""
    directions, batch, time, units = states.shape[:4]
    size = weights.shape[3]
    width = padded(size)
    grid = (-(-batch // BLOCK), directions * units)
    with torch.cuda.device(states.get_device()):
        kernel[grid](
            states,
            weights,
            *args,
            batch,
            time,
            units,
            size=size,
            width=width,
            num_warps=width // 8,
            num_stages=1,
        )
