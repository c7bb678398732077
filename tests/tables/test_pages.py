"""Pages of a table from several places: which archived runs and run folders count, and what is said of the others."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up_trials
import pytest
from tiny_runs import METRICS
from toy_rows import TOY, finish

from ner_experiments.report import table_page
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.runs.run import Run
from ner_experiments.runs.store import FindRuns, corpora_in
from ner_experiments.tables import spec
from ner_experiments.tables.collecting import collect, find
from ner_experiments.tables.experiments import experiments
from ner_experiments.tables.pages import (
    Source,
    corpora,
    in_run_folders,
    on_archived_data,
    page,
    page_of,
    pages,
)
from ner_experiments.tables.reproducibility import reproducibility
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.sweeps import requested
from ner_experiments.tables.table_view import TableView

TABLE = spec.load("yang2020_table13")
FIRST = experiments(TABLE)[0]


def run(read: str, f1: float) -> Run:
    metrics = METRICS | {"checksum": read, "test": {"f1": f1}, "data": {"name": "msra", "checksum": read}}
    return Run(Path(read, "seed-1"), metrics)


def source(read: str, **f1: float) -> FindRuns:
    """Finds runs of the first row by seed, all on the files `read`."""
    runs = {int(seed[1:]): run(read, score) for seed, score in f1.items()}
    return lambda _, label: runs if label == FIRST.row.label else {}


def refused(_cfg: Any, _label: str) -> Mapping[int, Run]:
    raise ValueError("outputs/run read other files")


def at(find: FindRuns, *overrides: str) -> Source:
    return Source(TABLE.name, "somewhere", Path("a"), overrides, find, deviations=overrides)


@pytest.mark.parametrize("name", ["my-corpus", "my corpus", "mine"])
def test_runs_on_a_corpus_are_found_whatever_its_name(name: str, tmp_path: Path) -> None:
    own = [*TOY, f"data.name='{name}'"]
    folder = finish(["paper=yang2020", *own, "model=residual", "layers=4", f"output_dir={tmp_path}"], 1, 2)
    assert corpora_in(tmp_path) == {name}
    table = spec.load("yang2020_table12")
    assert name in corpora(table, own)
    papers, page = pages(table, [], tmp_path, own)
    assert [run.folder for run in page.runs] == [folder]
    assert pages(table, [], tmp_path, TOY) == [papers]
    assert not papers.has_runs


def test_runs_of_both_places_are_one_row_and_those_of_other_files_are_left_out() -> None:
    archived = source("a", s1=0.1, s2=0.2)

    def scores(*sources: FindRuns) -> dict[int, float]:
        return {seed: run.score for seed, run in find(FIRST, sources).runs.items()}

    assert scores(archived, source("a", s2=0.3, s4=0.4)) == {1: 10.0, 2: 30.0, 4: 40.0}
    assert scores(archived, source("a")) == {1: 10.0, 2: 20.0}
    others = source("b", s4=0.4)
    assert scores(archived, others) == {1: 10.0, 2: 20.0}
    remark = "the runs in b read other files than those shown, and are left out"
    assert find(FIRST, [archived, others]).remark == remark


def test_why_runs_do_not_count_is_said() -> None:
    found = TableView(page_of(TABLE, [at(refused)]))
    assert "outputs/run read other files" in str(table_page.results_section(found, {}).points)
    assert "No run of this table counts" in table_page.based_on(found)
    unmeasured = TableView(page_of(TABLE, []))
    assert table_page.based_on(unmeasured) == "No run of this table is finished; published numbers only."
    assert table_page.based_on(unmeasured, elsewhere=True) == "Published numbers only."
    assert find(FIRST, [refused]) == Result(FIRST.row, missing="outputs/run read other files")
    archived = source("a", s1=0.1)
    assert find(FIRST, [archived, refused]) == find(FIRST, [refused, archived]) == find(FIRST, [archived])


def test_settings_are_the_same_in_any_order() -> None:
    places = [
        at(source("a", s1=0.1), "data=weibo", "layers=3"),
        at(source("a", s2=0.2), "layers=3", "data=weibo"),
    ]
    _, both = pages(TABLE, places, None)
    assert both.deviations == ("data=weibo", "layers=3")
    assert [*both.results[0].runs] == [1, 2]


ROWS = ("OntoNotes, Cross", "OntoNotes, Baseline")


def analyzed(read: str, **f1: tuple[float, float]) -> FindRuns:
    """Finds runs of Cross and Baseline by seed, with the same F1 for each length of mention."""

    def archived(place: int, scores: tuple[float, float]) -> ArchivedRun:
        by_length = dict.fromkeys(("1", "2", "3", "more than 3"), scores[place])
        return ArchivedRun(Path(read), run(read, 0.0).metrics, {"figures": {"length": by_length}})

    def found(_: Any, label: str) -> Mapping[int, Run]:
        if label not in ROWS:
            return {}
        return {int(seed[1:]): archived(ROWS.index(label), scores) for seed, scores in f1.items()}

    return found


def test_an_analysis_of_two_places_is_made_of_the_runs_that_count() -> None:
    one, same = analyzed("a", s1=(3, 1), s2=(5, 1)), analyzed("a", s2=(7, 1), s3=(9, 1))
    first = collect(spec.load("li2020_table4"), (), one, same).results[0]
    assert first.row.label == "Cross, OntoNotes, 1"
    assert first.scores == {1: 2.0, 2: 6.0, 3: 8.0}
    of_first = collect(spec.load("li2020_table4"), (), one, analyzed("b", s3=(9, 1))).results[0]
    assert of_first.scores == {1: 2.0, 2: 4.0}
    assert of_first.remark == "the runs in . read other files than those shown, and are left out"


def test_what_a_command_measured_is_of_one_place(tmp_path: Path) -> None:
    table = spec.load("xor")
    for name in "ab":
        trials = {"baseline": made_up_trials.model([3, 3], [3, 2], [0.0, 1e-16, 2e-16])}
        made_up_trials.write(tmp_path / name / "xor", trials)
    sources = [it for name in "abc" for it in in_run_folders(table, tmp_path / name, ())]
    assert page_of(table, sources).places == ("b/xor",)


def on(row: int, data: str, *, archived: bool) -> Result:
    """A row of huang2015_table3 whose run read these files."""
    about = {"name": "conll2000", "checksum": data, "gold": data}
    metrics = {"data": about, "checksum": data, "task": "mentions", "test": {"f1": 0.7}}
    run = ArchivedRun(Path("a"), metrics, {}) if archived else Run(Path("b/seed-1"), metrics)
    return Result(spec.load("huang2015_table3").rows[row], {1: run.score}, {1: run})


def test_rows_on_other_files_than_the_archived_ones_are_not_compared_with_the_paper() -> None:
    published = on(0, "published", archived=True)
    rows = on_archived_data([published, on(1, "published", archived=False), on(2, "cut", archived=False)])
    assert [row.comparable for row in rows] == [True, True, False]
    assert rows[0] == published
    assert rows[2].remark == (
        "not compared with the published number, as its runs read other files of conll2000 than the archived ones of "
        "this table"
    )
    page = Page(spec.load("huang2015_table3"), rows)
    assert rows[2].against is None
    assert [it.rows for it in reproducibility(page)] == [2]
    without_runs = replace(page, results=tuple(replace(row, runs={}) for row in rows))
    assert f"{rows[2].row.label}: {rows[2].remark}." in TableView(without_runs).notes


def test_a_row_with_a_setting_that_is_none_is_refused_without_runs_too(tmp_path: Path) -> None:
    row = replace(TABLE.rows[0], label="b", run=("model.widht=3",))
    with pytest.raises(ValueError, match=r"row 'b': model.widht=3: there is no setting 'model.widht'"):
        page(replace(TABLE, rows=(row,)), [f"output_dir={tmp_path}"], Path("results"))


def test_seeds_of_a_table_are_passed_over_and_said_to_be(caplog: pytest.LogCaptureFixture) -> None:
    assert requested([TABLE.name, "seeds=[1]", "data=weibo"])[1] == ["data=weibo"]
    assert caplog.messages == ["seeds=[1]: passed over; all finished seeds are shown"]
