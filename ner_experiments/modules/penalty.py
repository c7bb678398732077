"""Regularization terms: functions of the model's weights that are added to the loss."""

from typing import Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ner_experiments.utils.ranges import AT_LEAST_0


@runtime_checkable
class HasParallelUnits(Protocol):
    """Interface that the penalty requires of a model, such as `ParallelBiLSTM`."""

    def recurrent_candidates(self) -> Float[Tensor, "directions units size"]: ...


class OrthogonalityPenalty:
    """weight * sum over both directions of || Phi Phi^T - I ||_F^2, where row k of Phi is unit k's vec(W_c).

    Zukov-Gregoric et al. (2018), eq. 1; W_c are the weights from the hidden state to the candidate of the cell update.
    The paper does not say what its sum ranges over. Reading: over the two directions, each with its own Phi.

    The diagonal is included, so each vec(W_c) is also pulled toward norm 1. Glorot initialization gives units of size n
    a squared norm near n. K units therefore start at a penalty near weight * 2 K (n - 1)^2: 1,270 for 16 units of size
    64 and a weight of 0.01.
    """

    def __init__(self, *, weight: float):
        AT_LEAST_0.check("weight", weight)
        self.weight = weight

    def check(self, model: nn.Module) -> None:
        """Raise ValueError if the model has no parallel units."""
        if not isinstance(model, HasParallelUnits):
            raise ValueError(f"OrthogonalityPenalty needs parallel units, {type(model).__name__} has none")

    def __call__(self, model: nn.Module) -> Float[Tensor, ""]:
        """Penalty of the current weights, differentiable; ValueError as `check`."""
        self.check(model)
        phi = cast(HasParallelUnits, model).recurrent_candidates()
        with torch.autocast(phi.device.type, enabled=False):  # bfloat16 cannot resolve products near 1
            gram = phi @ phi.mT
        return (
            self.weight
            * (gram - torch.eye(len(gram[0]), dtype=gram.dtype, device=gram.device)).square().sum()
        )
