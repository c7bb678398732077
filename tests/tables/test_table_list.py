"""The list of tables: how much of each is measured, and whether the paper's best row is ours."""

import json
from pathlib import Path
from typing import Any

import pytest
from in_process import Ner
from places import RESULTS
from toy_rows import TOY, finish

from ner_experiments.main import cli
from ner_experiments.runs.run import Run
from ner_experiments.tables import spec
from ner_experiments.tables.pairs import published_best_holds
from ner_experiments.tables.results_folder import SUMMARIES, summaries
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Row, Table

ONE_CORPUS = Run(Path("anywhere"), {"data": {"checksum": "abc", "name": "toy", "gold": "abc"}})
"""A run of which only the corpus is known."""


def page(*rows: tuple[float | None, list[float]], comparable: bool = True) -> Page:
    """Rows with their published numbers and our scores."""
    results = []
    for number, (published, scores) in enumerate(rows):
        by_seed = dict(enumerate(scores, start=1))
        row = Row(label=f"row {number}", published=published, run=())
        results.append(Result(row, by_seed, dict.fromkeys(by_seed, ONE_CORPUS), comparable))
    table = Table(name="a", title="b", source="c", rows=tuple(result.row for result in results))
    return Page(table, tuple(results))


HIGH, MIDDLE, LOW = [90.0, 90.1, 89.9], [88.0, 88.1, 88.2], [80.0, 80.2, 80.1]


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([(92.0, HIGH), (91.0, MIDDLE), (85.0, LOW)], "holds"),
        ([(91.0, HIGH), (92.0, MIDDLE), (85.0, LOW)], "does not hold"),
        ([(92.0, HIGH), (91.0, [90.2, 89.8, 90.1])], "undecided"),
        ([(92.0, [90.0]), (91.0, [80.0])], "undecided"),
        ([(92.0, HIGH), (92.0, LOW)], ""),
        ([(92.0, HIGH), (None, LOW)], ""),
        ([(92.0, HIGH)], ""),
    ],
)
def test_the_papers_best_row_holds_if_it_is_ahead_of_all_others(
    rows: list[tuple[float | None, list[float]]], verdict: str
) -> None:
    assert published_best_holds(page(*rows)) == verdict


def test_other_data_say_nothing_of_the_papers_best_row() -> None:
    assert published_best_holds(page((92.0, HIGH), (91.0, LOW), comparable=False)) == ""


def write_summary(**changes: Any) -> None:
    """Write results/tables.jsonl, with a line for a table of which one row is measured."""
    line = {"settings": "", "stand_ins": [], "place": "x", "measured": 1, "seeds": [5, 5], "runs": 5}
    Path("results").mkdir()
    text = json.dumps(line | {"hours": 0.1, "best_row": ""} | changes)
    (Path("results") / SUMMARIES).write_text(f"{text}\n", encoding="utf-8")


def test_the_list_says_whose_runs_a_table_is_computed_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner
) -> None:
    monkeypatch.chdir(tmp_path)
    write_summary(table="li2020_table1", rows=10)
    (found,) = [it for it in ner("table").splitlines() if it.startswith("li2020_table3 ")]
    assert found.endswith("; computed from the runs of li2020_table1")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x", "not JSON (Expecting value at character 1)"),
        ("[]", "expected a JSON object"),
        ("{}", "a summary: table is missing"),
        (
            '{"table": "xor", "seeds": [1]}',
            "a summary: seeds must be the fewest and the most of a row, got [1]",
        ),
    ],
)
def test_a_damaged_summary_is_named(
    line: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / SUMMARIES).write_text(f"{line}\n", encoding="utf-8")
    assert cli(["table"]) == 1
    error = f"results/{SUMMARIES}:1: {message}; `ner-experiments tables` writes this file\n"
    assert capsys.readouterr().err == error


def test_the_list_says_what_the_archive_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ner("table").splitlines()
    assert [line.split()[0] for line in lines] == spec.names()
    assert all("; 0 of " in line for line in lines)
    write_summary(table="yang2020_table9", rows=9, best_row="undecided")
    (found,) = [line for line in ner("table").splitlines() if "; 0 of " not in line]
    assert found.startswith("yang2020_table9 ")
    assert found.endswith("; 1 of 9 rows, up to 5 seeds, published best row: undecided")


def test_the_list_counts_published_rows_that_are_finished_in_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ner: Ner
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(spec, "SWEEPS", tmp_path / "sweeps")
    rows = [
        {"label": f"{layers} layers", "run": [f"layers={layers}"], "published": 90.0 + layers}
        for layers in (2, 3)
    ]
    table = {
        "title": "Depth",
        "source": "A (2020)",
        "base": ["model=residual", *TOY],
        "seeds": [1, 2],
        "rows": rows,
    }
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps" / "depth.yaml").write_text(json.dumps(table), encoding="utf-8")
    assert ner("table").endswith("; 0 of 2 rows\n")
    for layers, wrong in ((2, 10), (3, 1)):
        finish(["model=residual", *TOY, f"layers={layers}", "output_dir=outputs"], 1, wrong)
    assert ner("table").endswith("; 2 of 2 rows, up to 1 seed, published best row: undecided\n")


def test_the_archive_is_summarized_table_by_table() -> None:
    found = summaries(RESULTS)
    (only,) = found["yang2020_table9"]
    assert (only.measured, only.rows, only.seeds) == (1, 9, (5, 5))
    assert {line.table for lines in found.values() for line in lines} <= set(spec.names())
