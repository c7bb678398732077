"""The tables and settings of the papers, transcribed a second time in tests/papers/, against sweeps/ and conf/.

The transcriptions were made from the papers' texts by another hand than sweeps/ and conf/.
"""

import re
from itertools import chain
from typing import Any

import pytest
from omegaconf import OmegaConf
from places import ROOT

from ner_experiments.config.compose import compose
from ner_experiments.tables import spec

PAPERS = ROOT / "tests" / "papers"
FIGURES: Any = OmegaConf.to_container(OmegaConf.load(PAPERS / "figures.yaml"))
SETTINGS: Any = OmegaConf.to_container(OmegaConf.load(PAPERS / "settings.yaml"))
CELL = re.compile(r"(?P<parts>[-\d./]+)(?:±(?P<sd>[\d.]+))?(?:\*(?P<runs>\d+))?")


def cells(table: str) -> list[dict[str, Any]]:
    """Figures that each row of ours must state, in the order of its table: by the paper's row, then by its column."""
    rows = []
    for line in FIGURES[table]:
        _label, _part, *columns = (part.strip() for part in line.split(","))
        rows.append([figure(table, cell) | {"cited": "(c)" in line} for cell in columns])
    if table in ("li2020_table3", "li2020_table4", "li2020_table5"):
        assert len({len(row) for row in rows}) == 1
    return list(chain(*rows))


def figure(table: str, cell: str) -> dict[str, Any]:
    found = CELL.fullmatch(cell)
    assert found, cell
    first, *more = (float(part) for part in found["parts"].split("/"))
    stated: dict[str, Any] = {"published": first}
    if table == "huang2015_table3":
        stated["drop"] = more[0]
    elif more:
        stated = {"published": more[1], "precision": first, "recall": more[0]}
    if found["sd"]:
        stated["sd"] = float(found["sd"])
    if found["runs"]:
        stated["runs"] = int(found["runs"])
    return stated


@pytest.mark.parametrize("table", FIGURES)
def test_the_figures_of_a_table_are_those_that_the_paper_prints(table: str) -> None:
    rows = spec.load(table).rows
    stated = [
        {"published": row.published, "cited": row.cited}
        | ({"sd": row.sd} if row.sd is not None else {})
        | ({"runs": row.runs} if row.runs is not None else {})
        | dict(row.also)
        for row in rows
    ]
    assert stated == cells(table)


def test_every_table_of_a_paper_with_figures_is_transcribed() -> None:
    of_papers = {name for name in spec.names() if "_table" in name}
    assert of_papers == {*FIGURES, "yang2020_table14"}  # which has two examples and no number
    trained = {name for name in of_papers if any(row.run is not None for row in spec.load(name).rows)}
    assert trained == {name for part in SETTINGS.values() for name in part["tables"]}


@pytest.mark.parametrize("name", [name for name in spec.names() if name.startswith("ours_")])
def test_a_published_figure_in_a_table_of_ours_is_that_of_a_row_of_the_same_model(name: str) -> None:
    """The figure is written in the paper's table alone; a row of ours names the row that it repeats."""
    table = spec.load(name)
    for row in table.rows:
        assert (row.published is None) == (not row.repeats), row.label
        if row.repeats:
            paper = spec.load(row.repeats[0])
            (other,) = (each for each in paper.rows if each.label == row.repeats[1])
            assert other.run is not None
            assert row.run is not None
            assert (row.published, row.sd, row.runs) == (other.published, other.sd, other.runs)
            own, theirs = (compose([*it.base, *run]) for it, run in ((table, row.run), (paper, other.run)))
            assert own.data.name == theirs.data.name, row.label
            assert own.model._target_ == theirs.model._target_, row.label
            assert own.layers == theirs.layers, row.label


def test_where_a_paper_contradicts_itself_a_note_says_so() -> None:
    for table, other in (("yang2020_table5", "89.65"), ("yang2020_table7", "92.22")):
        (row,) = (row for row in spec.load(table).rows if not row.cited)
        assert other in row.note


def of_row(part: dict[str, Any], label: str) -> dict[str, Any]:
    """The settings that the paper states for the row of a label."""
    stated = dict(part["settings"])
    for text, settings in part["where"].items():
        if re.search(rf"(^|\W){re.escape(text)}(\W|$)", label):
            stated |= settings
    return stated


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_of_every_row_are_those_that_the_paper_states(name: str) -> None:
    part, held, wrong = SETTINGS[name], set(), []
    for table in map(spec.load, part["tables"]):
        for row in table.rows:
            if row.run is None:
                continue
            cfg = compose([*table.base, *row.run], table.name)
            for key, expected in of_row(part, row.label).items():
                found = OmegaConf.select(cfg, key)
                if found is None:
                    continue
                held.add(key)
                if isinstance(expected, str):
                    expected = expected.replace("${data_dir}", cfg.data_dir)
                found = OmegaConf.to_container(found) if OmegaConf.is_config(found) else found
                if found != expected:
                    wrong.append(f"{table.name}, {row.label}: {key} is {found}, the paper has {expected}")
    assert not wrong, "\n".join(wrong)
    stated = {key for settings in (part["settings"], *part["where"].values()) for key in settings}
    assert held == stated
