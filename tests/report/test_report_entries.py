"""Runs of one table in several folders: which of them a page uses, and its statement about the others."""

from pathlib import Path
from typing import Any

import pytest
from toy_rows import finish

from ner_experiments.report import entries, index_page, write
from ner_experiments.report.entries import Entry
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.runs.run import Run
from ner_experiments.tables import spec
from ner_experiments.tables.scores import Page, Result

ROWS = ("OntoNotes, Cross", "OntoNotes, Baseline")


def archived(place: str, metrics: dict[str, Any], f1: float) -> ArchivedRun:
    """A run with the same F1 for each length of mention."""
    by_length = dict.fromkeys(("1", "2", "3", "more than 3"), f1)
    return ArchivedRun(Path(place), metrics, {"figures": {"length": by_length}})


def analysed(place: str, **f1: tuple[float, float]) -> Entry:
    """Entry of table 4 for runs of Cross and Baseline by seed, all on the files of `place`."""
    rows = {row.label: row for row in spec.load("li2020_table1").rows}
    found = []
    for label, row in rows.items():
        scores = {int(seed[1:]): pair[ROWS.index(label)] for seed, pair in f1.items() if label in ROWS}
        same = {"checksum": place, "identity": label, "test": {}}
        runs = {seed: archived(place, {**same, "seed": seed}, score) for seed, score in scores.items()}
        found.append(Result(row, scores, runs))
    results = (Result(rows[ROWS[0]], {0: 99.0}),)
    return Entry(Page(spec.load("li2020_table4"), results, places=(place,), analyzed=tuple(found)))


def of_settings(*deviations: str) -> Entry:
    table = spec.load("yang2020_table13")
    metrics = {"identity": "abc", "seed": 1, "checksum": "a", "seconds": 60}
    runs = {1: Run(Path("/".join(deviations)), metrics)}
    results = (Result(table.rows[0], {1: 50.0}, runs), *map(Result, table.rows[1:]))
    return Entry(Page(table, results, deviations, places=("somewhere",)))


def test_the_index_counts_a_run_once_and_names_papers_by_all_their_authors(tmp_path: Path) -> None:
    class Caught:
        def write(self, name: str, template: str, context: dict[str, Any]) -> None:
            self.context = context

    caught: Any = Caught()
    index_page.write(caught, [of_settings(), of_settings("layers=3"), analysed("a")], tmp_path)
    assert ("finished runs", "1") in caught.context["facts"]
    assert caught.context["papers"] == [
        ("yang2020", "Yang & Xu (2020)"),
        ("li2020", "Li, Fu & Ma (2020)"),
    ]


def test_rows_that_an_analysis_alone_speaks_of_have_their_page() -> None:
    rows = write.row_pages([analysed("a", s1=(3, 1))])
    assert [row.uses[0].label for row in rows.values()] == ["OntoNotes, Baseline", "OntoNotes, Cross"]


def test_errors_of_a_table_are_those_of_its_own_runs() -> None:
    """The page of a row has the runs of all tables."""
    one, more = analysed("a", s1=(3, 1)), analysed("a", s1=(3, 1), s2=(5, 1))
    rows = write.row_pages([one, more])
    for entry, seeds in ((one, [1]), (more, [1, 2])):
        for result in entry.page.analyzed:
            if result.runs:
                assert [*rows[write.row_name(result)].runs] == [1, 2]
                assert [*write.errors_of(result, rows).runs] == seeds


def test_a_table_that_does_not_fit_the_overrides_is_named_and_ends_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    finish(["data=toy_en", f"output_dir={tmp_path / 'outputs'}"], 1, 2)
    names = ["huang2015_table3", "yang2020_table12"]
    found = entries.entries(
        tmp_path / "none", tmp_path / "outputs", [*map(spec.load, names)], ["data=toy_en"]
    )
    assert [entry.page.table.name for entry in found] == names
    assert "huang2015_table3: rows 'LSTM, POS' and 'LSTM, chunks' are one experiment" in caplog.text
    with pytest.raises(ValueError, match="are one experiment"):
        entries.entries(tmp_path / "none", tmp_path / "outputs", [spec.load(names[0])], ["data=toy_en"])


def test_what_is_archived_anew_of_a_run_is_another_input_of_its_page() -> None:
    """Such as an error analysis that an archived run lacked: its metrics stay as they are."""
    before, after = (archived("a", {"checksum": "a", "seed": 1}, f1) for f1 in (50.0, 60.0))
    assert entries.run_inputs(before) != entries.run_inputs(after)
    own = Run(Path("b"), before.metrics)
    assert entries.run_inputs(own) == entries.run_inputs(Run(Path("c"), after.metrics))
