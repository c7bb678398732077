"""A user's table that extends a published one: the published rows precede its own."""

from pathlib import Path

import pytest

from ner_experiments.tables import spec
from ner_experiments.tables.experiments import experiments

OWN = "title: t\nsource: ours\nextends: yang2020_table12\nrows: [{label: ours, run: [model=cross]}]\n"


def own(folder: Path, text: str) -> Path:
    path = folder / "own.yaml"
    path.write_text(text)
    return path


def test_rows_notes_and_base_are_the_published_ones_and_then_its_own(tmp_path: Path) -> None:
    published = spec.load("yang2020_table12")
    table = spec.read(own(tmp_path, OWN + "notes: [mine]\n"))
    assert table.rows[:-1] == published.rows
    assert table.rows[-1].label == "ours"
    assert (table.base, table.seeds) == (published.base, published.seeds)
    assert table.notes == (*published.notes, "mine")


def test_it_may_have_seeds_of_its_own(tmp_path: Path) -> None:
    assert spec.read(own(tmp_path, OWN + "seeds: [7]\n")).seeds == (7,)


def test_a_published_row_is_the_same_experiment_in_both(tmp_path: Path) -> None:
    published = experiments(spec.load("yang2020_table12"))
    *rows, added = experiments(spec.read(own(tmp_path, OWN)))
    assert [row.cfg for row in rows] == [row.cfg for row in published]
    assert {**added.cfg, "model": 0, "layers": 2} == {**published[0].cfg, "model": 0}
    assert added.cfg.model._target_.endswith("cross.CrossBiLSTM")


def test_a_table_that_extends_is_not_extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec, "SWEEPS", tmp_path)
    own(tmp_path, OWN.replace("yang2020_table12", "own"))
    with pytest.raises(ValueError, match=r"own.yaml: extends must be a table of runs .*; own has extends"):
        spec.load("own")
