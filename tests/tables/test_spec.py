"""sweeps/*.yaml: each row against its declared change; test_papers.py holds the figures."""

from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from places import ROOT

from ner_experiments.config.row_settings import joined
from ner_experiments.tables import spec
from ner_experiments.tables.experiments import compose, experiments

NAMES = spec.names()


def test_every_file_is_a_table_and_they_are_in_the_order_of_their_numbers() -> None:
    assert {*NAMES} == {path.stem for path in (ROOT / "sweeps").glob("*.yaml")}
    of_paper = [int(name.removeprefix("yang2020_table")) for name in NAMES if "yang2020_table" in name]
    assert of_paper == [*range(4, 15)]
    assert [name.rstrip("0123456789") for name in NAMES] == sorted(it.rstrip("0123456789") for it in NAMES)


FOLLOWERS = {
    "layers": ["model.num_layers"],
    "model.dropout": ["model.ends_dropout"],
    "trainer.max_epochs": ["trainer.patience"],
    "words.input.path": ["init_from.words.input.path"],
}
"""Settings that take up another's value in conf/."""


def flat(node: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(node, dict):
        return {prefix: node}
    return {
        key: value for name in node for key, value in flat(node[name], f"{prefix}.{name}".strip(".")).items()
    }


def settings_of(overrides: tuple[str, ...]) -> dict[str, Any]:
    return flat(OmegaConf.to_container(compose(overrides, "test"), resolve=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_row_differs_from_its_tables_base_in_what_it_says_alone(name: str) -> None:
    table = spec.load(name)
    if table.command or table.analysis:
        assert not any(row.run for row in table.rows)
        return
    base = settings_of(table.base)
    for experiment in experiments(table):
        own = settings_of(experiment.overrides)
        changed = {key for key in own.keys() | base.keys() if own.get(key, "-") != base.get(key, "-")}
        said = [item.partition("=")[0].replace("/", ".") for item in experiment.row.run or ()]
        said += [follower for key in said for follower in FOLLOWERS.get(key, [])]
        unsaid = {key for key in changed if not any(f"{key}.".startswith(f"{place}.") for place in said)}
        assert not unsaid, experiment.row.label


@pytest.mark.parametrize("name", NAMES)
def test_the_files_of_a_row_are_in_the_data_folder(name: str) -> None:
    table = spec.load(name)
    for experiment in () if table.command else experiments(table, ["data_dir=/corpora"]):
        found = OmegaConf.to_container(experiment.cfg, resolve=True)
        beside = {key: value for key, value in flat(found).items() if str(value).startswith("data/")}
        assert not beside, experiment.row.label


def test_rows_of_one_table_may_count_in_another() -> None:
    """Table 4's rows are rows of table 2: the same settings, written differently."""
    rows = {experiment.row.label: experiment for experiment in experiments(spec.load("huang2015_table2"))}
    (plain, senna) = experiments(spec.load("huang2015_table4"))
    assert plain.cfg == rows["random, BI-LSTM-CRF, POS"].cfg
    assert senna.cfg == rows["Senna, BI-LSTM-CRF, POS"].cfg


def test_of_overrides_with_one_key_the_last_counts() -> None:
    assert joined(("data=msra", "layers=4"), ("layers=3",), ("data=weibo",)) == ("data=weibo", "layers=3")


def test_a_file_that_another_command_changes_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    text = (spec.SWEEPS / "yang2020_table13.yaml").read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    assert spec.read(path).seeds == (1, 2, 3, 4, 5)
    path.write_text(text.replace("[1, 2, 3, 4, 5]", "[1, 2]"), encoding="utf-8")
    assert spec.read(path).seeds == (1, 2)
