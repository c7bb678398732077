"""One job of a SLURM array: it is requeued at its time limit, and its errors are one line."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fake_slurm
import pytest
from submitit.core import submission
from submitit.core.utils import DelayedSubmission, UncompletedJobError

from ner_experiments.launch import worker
from ner_experiments.launch.slurm import ArrayTask


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fake_slurm.installed(tmp_path, monkeypatch)


@pytest.fixture
def _own_signals() -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGCONT, signal.SIGUSR2)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def task(tmp_path: Path, states: Path, monkeypatch: pytest.MonkeyPatch, _own_signals: None) -> Path:
    """Task 7_1 as sbatch leaves it to `submission.process_job`; may reach its time limit once."""
    names = {"ARRAY_JOB_ID": "7", "ARRAY_TASK_ID": "1", "JOB_ID": "8", "NTASKS": "1", "PROCID": "0"}
    for name, value in names.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    delayed = DelayedSubmission(ArrayTask({"config": {"seed": 2}}))
    delayed.set_timeout(1, 1)
    delayed.dump(tmp_path / "7_1_submitted.pkl")
    return tmp_path


def outcome(task: Path) -> Any:
    return json.loads((task / "7_1_0_outcome.json").read_text())


def test_near_its_time_limit_a_job_is_put_back_and_may_finish_its_step(
    task: Path, states: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def is_stopped(message: worker.Message) -> dict[str, Any]:
        """As training does: on SIGTERM, which the first process leaves to it, it ends after its step."""
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        signal.signal(signal.SIGTERM, lambda *_: steps.append("told to stop"))
        signal.raise_signal(signal.SIGUSR2)
        steps.append("step")
        signal.raise_signal(signal.SIGTERM)
        steps.append("saved")
        raise SystemExit(143)

    monkeypatch.setattr(worker, "run", is_stopped)
    with pytest.raises(SystemExit, match="143"):
        submission.process_job(task)
    assert steps == ["step", "told to stop", "saved"]
    assert (states / "scontrol").read_text() == "requeue 7_1\n"
    assert not (task / "7_1_0_outcome.json").exists()
    monkeypatch.setattr(worker, "run", dict)
    submission.process_job(task)
    assert outcome(task) == {"result": {"config": {"seed": 2}}}


def test_a_job_that_reaches_its_time_limit_too_often_fails(
    task: Path, states: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reaches_it(message: worker.Message) -> dict[str, Any]:
        signal.raise_signal(signal.SIGUSR2)
        raise SystemExit(143)

    monkeypatch.setattr(worker, "run", reaches_it)
    with pytest.raises(SystemExit):
        submission.process_job(task)
    with pytest.raises(UncompletedJobError, match="timed-out too many times"):
        submission.process_job(task)
    assert (states / "scontrol").read_text() == "requeue 7_1\n"
    assert "timed-out too many times" in outcome(task)["failed"]


def test_whatever_goes_wrong_in_a_job_is_one_line_of_moderate_length(
    task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(message: worker.Message) -> dict[str, Any]:
        raise ValueError("two\nlines " + "and more " * 500)

    monkeypatch.setattr(worker, "run", fails)
    with pytest.raises(ValueError, match=r"^two\nlines and more and"):
        submission.process_job(task)
    line = outcome(task)["failed"]
    assert line.startswith("two lines and more and")
    assert line.endswith(" ...")
    assert len(line) < 610
