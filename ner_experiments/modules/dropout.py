"""Dropout: with independent elements, and with one mask for all time steps of a sentence."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates

RESOLUTION = 1 << 16


class Dropout(nn.Dropout):
    """`nn.Dropout`, four times as fast on a CPU, where p is rounded to a multiple of 2^-16."""

    def forward(self, input: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        dropped = round(self.p * RESOLUTION)
        if not self.training or not input.is_cpu or dropped in (0, RESOLUTION):
            return super().forward(input)
        mask = random_shorts(input.numel()).view(input.shape) >= dropped - RESOLUTION // 2
        return input * mask.to(input.dtype).mul_(RESOLUTION / (RESOLUTION - dropped))


def random_shorts(number: int) -> Int[Tensor, " number"]:
    """Uniform random int16 numbers; one 64-bit step of the generator yields four."""
    return torch.empty(-(-number // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)[:number]


class VariationalDropout(nn.Module):
    """Dropout with one mask per sentence, shared by its time steps (Gal & Ghahramani 2016).

    Elements that are not dropped are divided by 1 - p, so that their mean equals that in evaluation mode.
    """

    def __init__(self, p: float):
        super().__init__()
        check_rates(p=p)
        self.p = p

    def forward(self, x: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch time size"]:
        if not self.training or self.p == 0:
            return x
        mask = torch.empty_like(x[:, :1]).bernoulli_(1 - self.p)
        return x * (mask / (1 - self.p))

    def extra_repr(self) -> str:
        return f"p={self.p}"
