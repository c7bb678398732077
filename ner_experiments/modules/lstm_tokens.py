"""The tokens of a padded batch without its padding, in the order in which compiled LSTMs read them."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from ner_experiments.modules import compiled


class Tokens:
    """Where they are for each direction, one of which may read backwards; see `lstm_kernels_batch`."""

    def __init__(self, lengths: Int[Tensor, " batch"], time: int, backwards: tuple[bool, ...]):
        kernels = compiled.kernels().lstm_batch
        numbers = compiled.array(lengths.long())
        order = np.argsort(-numbers, kind="stable")
        ends = np.append(0, numbers[order].cumsum())
        self.batch: Any = kernels.Batch(order, numbers[order], ends[: -1 : kernels.GROUP].copy())
        self.shape = (len(lengths), time)
        self.places = torch.empty(len(backwards), int(ends[-1]), dtype=torch.long)
        for places, back in zip(self.places.numpy(), backwards, strict=True):
            compiled.call(kernels.place, self.batch, back, time, places)

    def of(self, x: Float[Tensor, "inputs batch time size"]) -> Float[Tensor, "directions tokens size"]:
        """From one x for each direction, or one for all."""
        return Gather.apply(x, self.places)  # type: ignore[no-untyped-call]

    def padded(
        self, x: Float[Tensor, "directions tokens size"]
    ) -> Float[Tensor, "directions batch time size"]:
        """Padding is 0."""
        return Scatter.apply(x, self.places, *self.shape)  # type: ignore[no-untyped-call]


class Gather(torch.autograd.Function):
    """x.flatten(1, 2)[:, places], whose gradient needs no addition since no place comes twice."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.inputs, ctx.batch, ctx.time = x.shape[:3]
        return gather(x, places)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_tokens: Tensor) -> tuple[Tensor, None]:
        by_x = scatter(by_tokens, ctx.saved_tensors[0], ctx.batch, ctx.time)
        return by_x if len(by_x) == ctx.inputs else by_x.sum(0, keepdim=True), None


class Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor, batch: int, time: int) -> Tensor:
        ctx.save_for_backward(places)
        return scatter(x, places, batch, time)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_padded: Tensor) -> tuple[Tensor, None, None, None]:
        return gather(by_padded, ctx.saved_tensors[0]), None, None, None


def gather(x: Tensor, places: Tensor) -> Tensor:
    tokens = x.new_empty(*places.shape, x.shape[-1])
    for out, each, where in zip(tokens, x.expand(len(places), -1, -1, -1), places, strict=True):
        torch.index_select(each.reshape(-1, x.shape[-1]), 0, where, out=out)
    return tokens


def scatter(x: Tensor, places: Tensor, batch: int, time: int) -> Tensor:
    padded = x.new_zeros(len(x), batch * time, x.shape[-1])
    for out, each, where in zip(padded, x, places, strict=True):
        out.index_copy_(0, where, each)
    return padded.view(len(x), batch, time, -1)
