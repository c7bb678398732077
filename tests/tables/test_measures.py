"""Measures of rows of an analysis: figures of runs, and their differences per seed."""

import re
from typing import Any

import pytest

from ner_experiments.data.tags import CHUNK_TAGS, LENGTHS
from ner_experiments.tables import spec
from ner_experiments.tables.spec import Figures, Measure

FIGURES: dict[tuple[str, str], dict[int, Figures]] = {
    ("Cross", "type"): {1: {"": {"PER": 80.0}}, 2: {"": {"PER": 70.0}}, 4: {"": {"PER": 10.0}}},
    ("Baseline", "type"): {2: {"": {"PER": 64.0}}, 1: {"": {"PER": 79.0}}, 3: {"": {"PER": 1.0}}},
    ("Att", "chunk"): {1: {"": {"B": 90.0}, "C1": {"B": 12.0}}, 7: {"": {"B": 80.0}, "C1": {"B": 80.0}}},
    ("late", "type"): {9: {"": {"PER": 1.0}}},
}


def figures(label: str, figure: str) -> dict[int, Figures]:
    return FIGURES.get((label, figure), {})


def scores(**settings: str) -> dict[int, float]:
    return Measure(**settings).scores(figures)


def test_a_figure_is_taken_seed_by_seed() -> None:
    assert scores(of="Cross", figure="type", key="PER") == {1: 80.0, 2: 70.0, 4: 10.0}
    assert scores(of="Att", figure="chunk", key="B", only="C1") == {1: 12.0, 7: 80.0}
    assert scores(of="untrained", figure="type", key="PER") == {}


def test_a_difference_is_taken_over_the_seeds_that_both_rows_have() -> None:
    assert scores(of="Cross", over="Baseline", figure="type", key="PER") == {1: 1.0, 2: 6.0}
    assert scores(of="Att", over="Att", figure="chunk", key="B", only="C1") == {1: -78.0, 7: 0.0}
    assert scores(of="Cross", over="untrained", figure="type", key="PER") == {}


def test_what_runs_do_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="the corpus of 'Cross' has no type 'LOC'"):
        scores(of="Cross", figure="type", key="LOC")
    with pytest.raises(ValueError, match="the model of 'Att' has no part 'C2'"):
        scores(of="Att", figure="chunk", key="B", only="C2")
    with pytest.raises(ValueError, match="'late' and 'Cross' have no seed in common"):
        scores(of="late", over="Cross", figure="type", key="PER")


TYPES = {"creative work": "creative-work", "work of art": "WORK_OF_ART"}


@pytest.mark.parametrize("number", [3, 4, 5])
def test_each_row_measures_what_its_label_says(number: int) -> None:
    for row in spec.load(f"li2020_table{number}").rows:
        measure = row.measure
        assert measure is not None
        if number == 5:
            tag, rest = re.fullmatch(r"(\w), (.*)", row.label).groups()  # type: ignore[union-attr]
            assert (measure.figure, measure.key) == ("chunk", tag)
            assert measure.of == ("OntoNotes, Baseline" if rest == "Baseline" else "OntoNotes, Att")
            assert measure.over == ("" if "all" in rest else "OntoNotes, Att")
            assert measure.only == (rest.split()[-1] if "only" in rest else "")
            continue
        model, data, key = row.label.split(", ")
        assert (measure.of, measure.over) == (f"{data}, {model}", f"{data}, Baseline")
        assert measure.figure == ("type" if number == 3 else "length")
        expected = TYPES.get(key, key) if number == 4 or data == "WNUT" else TYPES.get(key, key.upper())
        assert measure.key == expected


def test_all_keys_of_length_and_chunk_are_measured() -> None:
    def keys(number: int) -> set[Any]:
        return {row.measure.key for row in spec.load(f"li2020_table{number}").rows if row.measure}

    assert keys(4) == set(LENGTHS)
    assert keys(5) == set(CHUNK_TAGS)
