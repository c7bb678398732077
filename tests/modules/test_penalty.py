"""The orthogonality penalty of Zukov-Gregoric et al. (2018), eq. 1, against NumPy and finite differences."""

import numpy as np
import pytest
import torch
from hydra.utils import instantiate

from ner_experiments.config.compose import compose
from ner_experiments.models.bilstm import BiLSTM
from ner_experiments.models.parallel import ParallelBiLSTM
from ner_experiments.modules.penalty import OrthogonalityPenalty

UNITS, SIZE = 3, 4


def small() -> ParallelBiLSTM:
    return ParallelBiLSTM(input_size=5, num_units=UNITS, unit_size=SIZE, dropout=0.1).double()


def by_numpy(model: ParallelBiLSTM) -> float:
    weights = model.units.recurrent_weights.detach().numpy()
    total = 0.0
    for direction in weights:
        phi = np.stack([unit[2 * SIZE : 3 * SIZE].ravel() for unit in direction])  # i f g o
        total += np.linalg.norm(phi @ phi.T - np.eye(UNITS), "fro") ** 2
    return 0.01 * total


def test_penalty_is_that_of_equation_1():
    model = small()
    penalty = instantiate(compose(["penalty=orthogonality"]).penalty)
    assert penalty(model).item() == pytest.approx(by_numpy(model), rel=1e-12)
    assert penalty(model.float()).item() == pytest.approx(by_numpy(model.double()), rel=1e-5)


def test_penalty_is_zero_for_orthonormal_units_under_autocast_too():
    model = small().float()
    rows = torch.linalg.qr(torch.randn(SIZE**2, 2 * UNITS)).Q.T
    model.units.recurrent_weights.data[:, :, 2 * SIZE : 3 * SIZE] = rows.view(2, UNITS, SIZE, SIZE)
    penalty = OrthogonalityPenalty(weight=1.0)
    assert penalty(model) < 1e-10
    with torch.autocast("cpu", torch.bfloat16):
        assert penalty(model) < 1e-10


def test_gradient_of_the_penalty_is_that_of_finite_differences():
    model, penalty = small(), OrthogonalityPenalty(weight=0.01)
    assert torch.autograd.gradcheck(lambda _: penalty(model), model.units.recurrent_weights)


def test_penalty_needs_parallel_units():
    model = BiLSTM(input_size=2, hidden_size=3, dropout=0.0)
    with pytest.raises(ValueError, match=r"^OrthogonalityPenalty needs parallel units, BiLSTM has none$"):
        OrthogonalityPenalty(weight=0.01)(model)


@pytest.mark.parametrize("weight", [-0.01, float("nan")])
def test_weight_of_the_penalty_must_not_be_negative(weight: float):
    with pytest.raises(ValueError, match=rf"^weight must be at least 0, got {weight}$"):
        OrthogonalityPenalty(weight=weight)
