"""Waiting for the jobs of a SLURM array: what is printed of them, and which results and errors count."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_slurm
import pytest

from ner_experiments.launch import slurm_array
from ner_experiments.launch.slurm_array import SlurmArray

JOBS = [["model=bilstm", "seed=1"], ["model=bilstm", "seed=2"]]


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fake_slurm.installed(tmp_path, monkeypatch)


@pytest.fixture
def array(tmp_path: Path, states: Path) -> SlurmArray:
    folder = tmp_path / "slurm"
    folder.mkdir()
    return SlurmArray(folder, {"7_0": JOBS[0], "7_1": JOBS[1]})


def are(states: Path, *lines: str) -> None:
    (states / "7").write_text("".join(f"{line}\n" for line in lines))


def leaves(array: SlurmArray, process: str, **outcome: Any) -> None:
    (array.folder / f"{process}_outcome.json").write_text(json.dumps(outcome))


def test_a_line_says_when_a_job_starts_is_put_back_and_ends(
    array: SlurmArray, states: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    are(states, "7_0|PENDING|", "7_1|PENDING|")
    array.poll()
    are(states, "7_0|RUNNING|node3", "7_1|PENDING|")
    array.poll()
    array.poll()
    are(states, "7_0|PENDING|", "7_1|RUNNING|node4")
    array.poll()
    are(states, "7_0|RUNNING|node5", "7_1|RUNNING|node4")
    array.poll()
    leaves(array, "7_1_0", result={"seed": 2})
    array.poll()
    leaves(array, "7_0_0", result={"busy": "folder"})
    assert [it.failed or it.result for it in array.wait()] == [{"busy": "folder"}, {"seed": 2}]
    assert capsys.readouterr().out.splitlines() == [
        "slurm: 7_0 is running on node3: seed=1",
        "slurm: 7_0 is back in the queue: seed=1",
        "slurm: 7_1 is running on node4: seed=2",
        "slurm: 7_0 is running on node5: seed=1",
        "slurm: 7_1 has finished (1 of 2): seed=2",
        f"slurm: job 7, tasks: 2, listed in {array.folder}/7_tasks.txt",
        "slurm: the job keeps running if this command exits; cancel it with `scancel 7`",
        "slurm: 7_0 has left its run to another process (2 of 2): seed=1",
    ]
    assert array.listed.read_text() == "7_0  model=bilstm seed=1\n7_1  model=bilstm seed=2\n"


def test_an_error_counts_when_slurm_will_not_run_the_job_again(array: SlurmArray, states: Path) -> None:
    """Output of a preempted job's dying processes is ignored: the job succeeds when it runs again."""
    leaves(array, "7_0_0", failed="ValueError: msra: not found (traceback: x)")
    leaves(array, "7_1_0", failed="ModuleNotFoundError: No module named 'torch'")
    for state in ("RUNNING", "COMPLETING", "PENDING"):
        are(states, f"7_0|{state}|node", f"7_1|{state}|node")
        array.poll()
        assert array.outcomes == {}
    leaves(array, "7_0_0", result={"seed": 1})
    are(states, "7_0|RUNNING|node", "7_1|FAILED|node")
    assert [it.failed or it.result for it in array.wait()] == [
        {"seed": 1},
        f"ModuleNotFoundError: No module named 'torch' (log: {array.folder}/7_1_0_log.out)",
    ]


def test_a_job_that_ended_without_a_result_is_named_by_its_state(
    array: SlurmArray, states: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(slurm_array, "LATE", 0.0)
    are(states, "7_0|CANCELLED|", "7_1|TIMEOUT|node")
    unwritten = "no result was written (log: " + str(array.folder)
    assert [it.failed or it.result for it in array.wait()] == [
        f"SLURM reports CANCELLED; {unwritten}/7_0_0_log.out)",
        f"SLURM reports TIMEOUT; {unwritten}/7_1_0_log.out)",
    ]
    assert "slurm: 7_0 has failed (1 of 2): seed=1 | SLURM reports CANCELLED" in capsys.readouterr().out


def test_what_slurm_has_forgotten_is_known_to_the_accounting(
    array: SlurmArray, states: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_array, "LATE", 0.0)
    leaves(array, "7_1_0", result={"seed": 2})
    (states / "accounting").write_text("CANCELLED by 1000\n")
    reason = f"SLURM reports CANCELLED by 1000; no result was written (log: {array.folder}/7_0_0_log.out)"
    assert [it.failed or it.result for it in array.wait()] == [reason, {"seed": 2}]


def test_a_result_may_be_seen_later_than_the_end_also_of_a_requeued_job(
    array: SlurmArray, states: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(slurm_array, "time", SimpleNamespace(monotonic=lambda: now))
    for later, state in ((0.0, "PREEMPTED"), (10.0, "PENDING"), (1000.0, "COMPLETED")):
        now = later
        are(states, f"7_0|{state}|node", f"7_1|{state}|node")
        array.poll()
        assert array.outcomes == {}
    for task in ("7_0_0", "7_1_0"):
        leaves(array, task, result={})
    assert [it.failed or it.result for it in array.wait()] == [{}, {}]


def test_while_slurm_does_not_answer_only_results_count(
    array: SlurmArray, states: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(slurm_array, "LATE", 0.0)
    (states / "silent").touch()
    leaves(array, "7_0_0", result={"seed": 1})
    leaves(array, "7_1_0", failed="OSError: disk full")
    array.poll()
    array.poll()
    assert list(array.outcomes) == ["7_0"]
    (states / "silent").unlink()
    array.poll()
    assert list(array.outcomes) == ["7_0", "7_1"]
    told = [line for line in capsys.readouterr().out.splitlines() if "answer" in line]
    assert told == ["slurm: SLURM does not answer; waiting", "slurm: SLURM answers again"]


def test_of_several_processes_the_first_has_the_result_and_any_the_error(
    array: SlurmArray, states: Path
) -> None:
    are(states, "7_0|RUNNING|node", "7_1|FAILED|node")
    leaves(array, "7_0_0", result={"rank": 0})
    leaves(array, "7_0_1", result={"rank": 1})
    leaves(array, "7_1_1", failed="RuntimeError: CUDA out of memory")
    expected = f"RuntimeError: CUDA out of memory (log: {array.folder}/7_1_1_log.out)"
    assert [it.failed or it.result for it in array.wait()] == [{"rank": 0}, expected]
