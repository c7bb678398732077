"""Terms that are added to the loss and look at the model's weights only."""

from typing import Protocol, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn


class HasParallelUnits(Protocol):
    """What the penalty needs of a model; `ParallelBiLSTM` has it."""

    def recurrent_candidates(self) -> Float[Tensor, "directions units size"]: ...


class OrthogonalityPenalty:
    """weight * sum over both directions of || Phi Phi^T - I ||_F^2, where row k of Phi is unit k's vec(W_c).

    Zukov-Gregoric et al. (2018), eq. 1; W_c leads from the hidden state to the candidate of the cell update.
    The paper does not say over what its sum runs: reading, over the directions, each with its own Phi.

    The diagonal counts, so that each vec(W_c) is also drawn to norm 1. Glorot's start gives units of size n a
    squared norm near n, hence K units a penalty near weight * 2 K (n - 1)^2: some 1,270 for 16 x 64 and 0.01.
    """

    def __init__(self, *, weight: float):
        if not weight >= 0:
            raise ValueError(f"weight must be at least 0, got {weight}")
        self.weight = weight

    def __call__(self, model: nn.Module) -> Float[Tensor, ""]:
        """Of the weights as they are now, differentiable; ValueError if the model has no parallel units."""
        try:
            candidates = cast(HasParallelUnits, model).recurrent_candidates
        except AttributeError:
            name = type(model).__name__
            raise ValueError(f"OrthogonalityPenalty needs parallel units, {name} has none") from None
        phi = candidates()
        with torch.autocast(phi.device.type, enabled=False):  # in bfloat16, products near 1 are noise
            gram = phi @ phi.mT
        return self.weight * (gram - torch.eye(len(gram[0])).to(gram)).square().sum()
