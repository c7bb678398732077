"""Dropout whose mask is shared by the time steps of a sentence."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates


class VariationalDropout(nn.Module):
    """Dropout with one mask per sentence, shared by its time steps (Gal & Ghahramani 2016).

    What is kept is divided by 1 - p, so that the mean is that of evaluation, where nothing is dropped.
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
