"""Settings that the rows of each published table compare, read from their overrides, against the papers' captions."""

import pytest

from ner_experiments.config.row_settings import (
    compared,
    differing,
    distinguishing,
    joined,
    labels,
    numeric,
    settings,
    shared,
    varying,
)
from ner_experiments.tables import spec

COMPARED = {
    "huang2015_table2": ["data", "direct", "model", "decoder", "words"],
    "huang2015_table3": ["data", "model", "decoder"],
    "huang2015_table4": ["words"],
    "huang2015_table5": ["words"],
    "huang2015_table6": ["direct", "words"],
    "li2020_table1": ["data", "model"],
    "ours_huang2015_glove": ["data", "direct", "model", "decoder"],
    "ours_huang2015_pos": ["model", "decoder"],
    "ours_huang2015_readings": [
        *("data", "optimizer.lr", "direct.context.input.window", "words", "model.dropout"),
        *("direct.context.input.min_count", "direct.spelling.input.min_count", "data.held_out", "decoder"),
    ],
    "ours_huang2015_schemes": ["data", "model", "decoder"],
    "ours_li2020_conll2003": ["model"],
    "ours_yang2020_english": [
        *("model", "model/dense", "model/activation", "model.dropout", "model/cell"),
    ],
    "ours_yang2020_small": [
        *("model", "layers", "model.dropout", "model/dense", "model/norm", "model/activation", "model/cell")
    ],
    "ours_zukov2018_level": ["decoder", "model.dropout", "chars"],
    "ours_zukov2018_readings": ["optimizer.lr", "penalty.weight"],
    "yang2020_table10": ["words.input.path"],
    "yang2020_table11": ["model"],
    "yang2020_table12": ["model", "layers"],
    "yang2020_table13": ["model/dense", "model/norm", "model/activation", "model.dropout", "model/cell"],
    "yang2020_table14": ["model"],
    "zukov2018_table2": ["model.num_units"],
    "zukov2018_table3": ["model.num_units", "model.unit_size"],
    "zukov2018_table4": ["model.unit_size"],
    "zukov2018_table5": ["chars", "penalty", "model/init", "model.dropout", "model/pool"],
}
TRAINED = [name for name in spec.names() if any(row.run is not None for row in spec.load(name).rows)]


def rows_of(name: str) -> list[dict[str, str]]:
    table = spec.load(name)
    return [settings(joined(table.base, row.run)) for row in table.rows if row.run is not None]


@pytest.mark.parametrize("name", TRAINED)
def test_what_rows_compare_is_what_the_table_is_about(name: str) -> None:
    """No setting is compared where a single row of ours stands beside cited ones."""
    rows = rows_of(name)
    assert compared(rows) == COMPARED.get(name, [])
    assert set(compared(rows)) <= set(varying(rows))
    assert (len(rows) > 1) == (name in COMPARED)


@pytest.mark.parametrize("name", TRAINED)
def test_rows_that_are_alike_in_what_is_compared_are_one(name: str) -> None:
    rows = rows_of(name)
    keys = compared(rows)
    assert len({tuple(row.get(key) for key in keys) for row in rows}) == len(rows)


def test_what_goes_with_a_corpus_follows_from_it_and_a_number_from_a_choice() -> None:
    ner = {"data": "conll2003", "direct": "ner", "trainer.max_epochs": "5", "model": "lstm"}
    chunks = {"data": "conll2000", "direct": "chunking", "trainer.max_epochs": "9", "model": "lstm"}
    assert compared([ner, chunks]) == ["data"]
    assert compared([ner, chunks, ner | {"direct": "ner_gazetteer"}]) == ["data", "direct"]
    tuned = [{"optimizer": "sgd", "optimizer.lr": "0.1"}, {"optimizer": "adam", "optimizer.lr": "0.001"}]
    assert compared(tuned) == ["optimizer"]
    assert compared([*tuned, {"optimizer": "adam", "optimizer.lr": "0.01"}]) == ["optimizer.lr"]


@pytest.mark.parametrize("place", ["${data_dir}/glove.txt", "/corpora/glove.txt"])
def test_where_a_file_lies_is_not_compared(place: str) -> None:
    rows = [{"words": "vectors", "words.input.path": place}, {"words": "random"}]
    assert varying(rows) == ["words", "words.input.path"]
    assert compared(rows) == ["words"]


def test_a_number_is_one_that_every_row_has() -> None:
    rows = [{"layers": "2", "model.dropout": "0.0"}, {"layers": "3"}]
    assert numeric(rows, ["layers", "model.dropout"]) == ["layers"]


def test_rows_are_labeled_by_the_overrides_that_not_all_have() -> None:
    rows = [
        ["model=lstm", "layers=2", "seed=1"],
        ["model=lstm", "layers=3", "seed=2"],
        ["layers=2", "~chars"],
    ]
    assert differing(rows) == [
        ["model=lstm", "layers=2", "seed=1"],
        ["model=lstm", "layers=3", "seed=2"],
        ["layers=2", "~chars"],
    ]
    assert differing(rows[:2]) == [["layers=2", "seed=1"], ["layers=3", "seed=2"]]
    assert shared(rows[:2]) == ["model=lstm"]
    assert labels(rows[:2]) == ["layers=2", "layers=3"]
    assert labels([["layers=2", "seed=1"], ["layers=2", "seed=2"]]) == ["all", "all"]
    assert (differing([]), shared([]), labels([])) == ([], [], [])


def test_as_few_settings_as_distinguish_the_choices_are_taken() -> None:
    choices = ["a", "b", "c", "a"]
    halves = {"one": "xyyx", "other": "xxyx", "neither": "xxxx"}
    assert distinguishing(halves, choices) == ["one", "other"]
    assert distinguishing(halves | {"all": "xyzx"}, choices) == ["all"]
    # `free` does not follow from a
    assert distinguishing({"one": "xyyx", "free": "xxyy"}, choices) == ["one"]
    assert distinguishing({"neither": "xxxx"}, choices) == []


def test_an_added_setting_has_the_key_of_a_changed_one() -> None:
    assert settings(["layers=2", "+init_from.optimizer.lr=0.1"]) == {
        "layers": "2",
        "init_from.optimizer.lr": "0.1",
    }
