"""The setting of Li, Fu & Ma (2020): its parts, its widths and parameters, and how weights start."""

from pathlib import Path

import numpy as np
import pytest
import torch
from encoders import text
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from li2020_models import CONF, INPUT, build
from omegaconf import DictConfig

TRAIN, DEV = text("The house in Ghent", "the USA"), text("GHENT has the House")
GROUPS = ["words=random", "chars=cnn", "features=case", "model=bilstm", "decoder=crf"]
GROUPS += ["direct=none", "penalty=none", "batches=tokens", "optimizer=adam", "schedule=linear"]
GROUPS += ["trainer=default"]


def setting(*overrides: str) -> DictConfig:
    """paper=li2020 over other choices."""
    with initialize_config_dir(str(CONF), version_base=None):
        return compose(overrides=[*(f"+{group}" for group in GROUPS), "+paper=li2020", *overrides])


@pytest.mark.parametrize(("dim", "width"), [(300, 364), (400, 464)], ids=["GloVe", "Twitter"])
def test_the_input_is_as_wide_as_in_the_paper(tmp_path: Path, dim: int, width: int):
    path = tmp_path / "vectors.txt"
    path.write_text(" ".join(["the", *map(str, np.arange(dim))]) + "\n")
    cfg = setting(f"words.input.path={path}")
    total = 0
    for part in (cfg.words, cfg.chars):
        read = instantiate(part.input)
        read.fit(TRAIN, [DEV])
        module = instantiate(part.module)(**read.sizes())
        assert module(torch.from_numpy(read.encode(DEV).table)).shape == (len(DEV.forms), module.output_size)
        total += module.output_size
    assert total == width


def lstm(size: int, hidden: int) -> int:
    return 2 * 4 * hidden * (size + hidden + 1)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("baseline", lstm(100, 100)),
        ("cross", lstm(200, 100)),
        ("attention", lstm(100, 100) + 3 * 5 * 200 * 40),
    ],
)
def test_number_of_parameters_in_the_setting_of_the_paper(name: str, more: int):
    with torch.device("meta"):
        model = build(name)
    assert sum(p.numel() for p in model.parameters()) == lstm(INPUT, 100) + more
    assert model.output_size == (400 if name == "attention" else 200)


def test_weights_start_as_in_the_released_code():
    model = build("attention")
    for layer, size in zip(model.bilstm.layers, (INPUT, 100), strict=True):
        bound = (6 / (size + 100 + 400)) ** 0.5
        for weights in (layer.units.input_weights, layer.units.recurrent_weights):
            assert 0.98 * bound < weights.abs().max() <= bound
        assert [gate.unique().tolist() for gate in layer.units.biases.chunk(4, 2)] == [[0], [1], [0], [0]]
    bound = (6 / (200 + 40)) ** 0.5
    for projection in (model.attention.query, model.attention.key, model.attention.value):
        assert projection.bias is None
        assert 0.99 * bound < projection.weight.abs().max() <= bound
