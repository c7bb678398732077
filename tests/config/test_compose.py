"""The suite's composition against Hydra's own, for everything in conf/ and every row in sweeps/."""

import hydra
import pytest
from omegaconf import OmegaConf
from omegaconf.errors import ReadonlyConfigError

from ner_experiments.config import conf
from ner_experiments.config.choices import merged
from ner_experiments.config.compose import compose
from ner_experiments.config.conf import CONFIG_NAME, hydra_context
from ner_experiments.config.row_settings import joined
from ner_experiments.tables import spec

OTHERS = (
    [],
    ["model=bilstm", "model/cell=peephole", "model.hidden_size=7"],
    ["+model.extra={a: 1, b: [2, 3]}", "++data.url=null", "~chars.module"],
    ["+model.num_layers=${seed}", "data_dir='a ${oc.env:HOME} b'"],
    ["trainer=smoke", "trainer={max_epochs: 2}"],
    ["hydra.run.dir=elsewhere", "layers=3"],
)
"""Overrides of values, of parts of parts, of mappings, and for Hydra; additions and removals."""


def choices() -> list[list[str]]:
    """Every option, beside one of each other group; alone if it chooses those of others, or is chosen by them."""
    with hydra_context():
        # a search is made of ranges, which no experiment composes
        options = {group: conf.options(group) for group in conf.groups() if group != "search"}
    alone = [[f"{group}={name}"] for group in ("paper", "data_trainer") for name in options.pop(group)]
    most = max(map(len, options.values()))
    return alone + [
        [f"{group}={names[number % len(names)]}" for group, names in options.items()]
        for number in range(most)
    ]


def rows() -> list[list[str]]:
    tables = map(spec.load, spec.names())
    overrides = {
        joined(table.base, row.run): None for table in tables for row in table.rows if row.run is not None
    }
    return [list(row) for row in overrides]


SOME_ROWS = [
    pytest.param(row, marks=[pytest.mark.slow] * (number % 3 > 0)) for number, row in enumerate(rows()[::4])
]
"""Every twelfth row, and in the slow tests every fourth."""


@pytest.mark.parametrize("overrides", [*OTHERS, *choices(), *SOME_ROWS], ids=" ".join)
def test_a_composition_is_hydras_in_content_order_and_types(overrides: list[str]) -> None:
    with hydra_context():
        expected = hydra.compose(CONFIG_NAME, overrides=overrides)
    found = merged(overrides)
    assert repr(OmegaConf.to_container(found)) == repr(OmegaConf.to_container(expected))
    assert found == expected
    assert OmegaConf.is_struct(found)
    assert "hydra" not in found


def test_one_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"expected a list of overrides, got 'layers=3': compose\(\['layers=3'\]\)"
    ):
        compose("layers=3")


def test_a_change_of_one_composition_does_not_reach_the_next() -> None:
    overrides = ["model=residual", "layers=3", "model.hidden_size=5"]
    before = OmegaConf.to_yaml(merged(overrides))
    changed = merged(overrides)
    changed.model.hidden_size = 6
    del changed.data
    changed.trainer.max_epochs = 1
    assert OmegaConf.to_yaml(merged(overrides)) == before
    assert merged([]).model.hidden_size == 300


def test_a_shared_composition_cannot_be_changed() -> None:
    cfg = compose(["model=residual", "layers=3"])
    assert compose(["model=residual", "layers=3"]) is cfg
    with pytest.raises(ReadonlyConfigError):
        cfg.layers = 4
    with pytest.raises(ReadonlyConfigError):
        cfg.model.hidden_size = 4


@pytest.mark.parametrize(
    ("overrides", "epochs"),
    [
        (["data=toy_en"], 20),
        (["data=toy_zh"], 20),
        (["data=toy_en", "trainer.max_epochs=30"], 30),
        (["data=toy_en", "trainer=smoke"], 1),
        (["data=toy_en", "paper=huang2015"], 10),
        (["data=weibo"], 30),
    ],
)
def test_the_default_trainer_has_fewer_epochs_on_a_toy_corpus_alone(
    overrides: list[str], epochs: int
) -> None:
    assert compose(overrides).trainer.max_epochs == epochs
