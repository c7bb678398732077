"""The table at the end of a sweep, from the outcomes of its jobs."""

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from ner_experiments.launch import summary
from ner_experiments.launch.worker import Outcome, outcome_of_process
from ner_experiments.tables.short_runs import hints
from ner_experiments.tables.spec import Row, Table

TOGETHER = ["data=toy_en", "model=residual"]


def result(f1: float, seed: int, **changes: Any) -> dict[str, Any]:
    scores = {"dev": {"f1": f1 + 0.01}, "test": {"f1": f1}, "best_epoch": seed, "seconds": 2.0 * seed}
    return {"task": "mentions", "folder": f"outputs/a/seed-{seed}", "parameters": 1234, **scores, **changes}


def job(layers: int, seed: int, f1: float) -> Outcome:
    return Outcome([*TOGETHER, f"layers={layers}", f"seed={seed}"], result(f1, seed))


def printed(jobs: list[Outcome], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    num_failed = summary.show(jobs)
    return num_failed, capsys.readouterr().out


def test_a_row_has_the_mean_and_deviation_of_its_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    scores = [0.8, 0.81, 0.84]
    jobs = [job(2, seed, f1) for seed, f1 in enumerate(scores, start=1)] + [job(3, 1, 0.7)]
    num_failed, text = printed(jobs, capsys)
    assert num_failed == 0
    deviation = 100 * statistics.stdev(scores)
    lines = [line.split() for line in text.splitlines()]
    assert lines[1] == TOGETHER
    test = f"{100 * statistics.fmean(scores):.2f}", "±", f"{deviation:.2f}"
    dev = f"{100 * statistics.fmean(scores) + 1:.2f}", "±", f"{deviation:.2f}"
    assert ["layers=2", "3", *dev, *test, "2", "1,234", "4.0"] in lines
    assert ["layers=3", "1", "71.00", "70.00", "1", "1,234", "2.0"] in lines
    assert "layers=2: outputs/a/seed-1, outputs/a/seed-2, outputs/a/seed-3" in text


def test_the_runs_of_earlier_commands_are_counted_and_no_folders_listed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    finished = {"layers=2": [result(0.8, 1), result(0.9, 2)], "layers=3": [result(0.7, 3)]}
    rows = tuple(Row(label=label, run=(label,)) for label in finished)
    table = Table(name="a", title="A", source="none", base=tuple(TOGETHER), rows=rows, seeds=(1,))
    settings = summary.shared_settings(table, ["output_dir=here"])
    assert summary.show([job(2, 2, 0.9)], finished, settings) == 0
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines()]
    assert lines[1] == TOGETHER  # without layers=2, which only the row of the job has
    assert [line[:2] for line in lines if line[:1] and line[0] in finished] == [
        ["layers=2", "2"],
        ["layers=3", "1"],
    ]
    assert "outputs/" not in text
    assert "seed=" not in text


def test_a_failed_job_is_named_with_its_reason_and_the_others_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wrong = Outcome([*TOGETHER, "layers=0", "seed=1"], failed="num_layers must be at least 1, got 0")
    num_failed, text = printed([job(2, 1, 0.8), wrong], capsys)
    assert num_failed == 1
    assert "1 of 2 jobs failed; repeat the command to retry (interrupted runs resume):" in text
    assert "\n  layers=0 seed=1\n    num_layers must be at least 1, got 0" in text
    assert "layers=2: outputs/a/seed-1" in text


def test_a_dev_score_of_zero_is_reported_with_settings_to_try(
    capsys: pytest.CaptureFixture[str],
) -> None:
    zero = {"dev": {"f1": 0.0}, "test": {"f1": 0.0}}
    jobs = [
        Outcome([*TOGETHER, "layers=2", "seed=1"], result(0.0, 1, **zero)),
        Outcome([*TOGETHER, "layers=2", "seed=2"], result(0.5, 2)),
        job(3, 1, 0.7),
    ]
    _, text = printed(jobs, capsys)
    assert "1 of 2 runs of layers=2: dev F1 is 0, which usually" in text
    assert "a larger optimizer.lr." in text
    assert "layers=3: dev" not in text
    summary.show_run(result(0.0, 1, **zero))
    assert "the run: dev F1 is 0, which usually means too few training steps" in capsys.readouterr().out


def test_a_hint_names_its_rows_once_and_counts_most() -> None:
    zero = {"dev": {"f1": 0.0}, "hint": "set more epochs"}
    rows = {f"layers={number}": [result(0.0, 1, **zero)] for number in range(5)}
    assert hints(rows) == ["layers=0, layers=1, layers=2 and 2 more: set more epochs"]
    longer = {"task": "mentions", "dev": {"f1": 0.5}}
    assert hints({"layers=2": [*rows["layers=2"], longer]}) == ["1 of 2 runs of layers=2: set more epochs"]


def test_without_a_finished_job_there_is_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    num_failed, text = printed([Outcome(["layers=0"], failed="too few")], capsys)
    assert (num_failed, text) == (
        1,
        "\n1 of 1 jobs failed; repeat the command to retry (interrupted runs resume):\n  layers=0\n    too few\n",
    )


def test_a_single_run_of_a_corpus_without_test(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(0.5, 3)
    del found["test"]
    summary.show_run(found)
    text = capsys.readouterr().out
    assert ["1", "51.00", "-", "3", "1,234", "6.0"] in [line.split() for line in text.splitlines()]
    assert text.endswith("\noutputs/a/seed-3\n")


def test_tags_are_scored_by_accuracy(capsys: pytest.CaptureFixture[str]) -> None:
    found = result(0.0, 1, task="tags", dev={"accuracy": 0.9}, test={"accuracy": 0.8})
    summary.show_run(found)
    text = capsys.readouterr().out
    assert "dev accuracy" in text
    assert ["1", "90.00", "80.00", "1", "1,234", "2.0"] in [line.split() for line in text.splitlines()]


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (143, "stopped; repeat the command to resume"),
        (-9, "worker killed by SIGKILL, possibly out of memory"),
        (-11, "worker killed by SIGSEGV"),
        (3, "worker ended with status 3"),
    ],
)
def test_a_process_without_an_outcome_says_how_it_ended(tmp_path: Path, status: int, line: str) -> None:
    assert outcome_of_process(tmp_path / "none", ["seed=1"], status) == Outcome(["seed=1"], failed=line)


def test_the_outcome_of_a_process_is_that_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "outcome"
    path.write_text(json.dumps({"result": {"busy": "outputs/a"}}))
    assert outcome_of_process(path, ["seed=1"], 0).busy == "outputs/a"
    path.write_text(json.dumps({"failed": "no such corpus"}))
    assert outcome_of_process(path, ["seed=1"], 1) == Outcome(["seed=1"], failed="no such corpus")
