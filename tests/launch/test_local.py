"""How many jobs of a sweep run side by side, and that they are the runs that they would be one after another."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from places import ROOT
from waiting import until

from ner_experiments.config.job import Job
from ner_experiments.launch import local
from ner_experiments.launch.local import LocalLauncher, spare
from ner_experiments.launch.packing import Packing, Slot
from ner_experiments.launch.worker import Outcome

TINY = ["data.max_sentences=60", "model.hidden_size=8", "optimizer.lr=0.01", "runtime.accelerator=cpu"]


@pytest.mark.parametrize(
    ("devices", "cores_per_job", "usable", "memory", "expected"),
    [
        ([], 1, 8, 64, 8),
        ([], 4, 8, 64, 2),
        ([], 16, 8, 64, 1),
        ([], 1, 8, 5, 2),
        ([], 1, 8, 0, 1),
        (["0", "1", "2"], 1, 8, 64, 8),
        (["0", "1", "2"], 4, 8, 64, 3),
    ],
)
def test_jobs_share_gpus_or_cores_and_fit_into_memory(
    devices: list[str],
    cores_per_job: int,
    usable: int,
    memory: int,
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "usable_cores", lambda: usable)
    monkeypatch.setattr(local, "available_memory", lambda: memory * 2**30)
    assert spare(devices, cores_per_job) == expected


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("number", [1, 2])
def test_every_job_runs_in_a_worker_as_many_at_a_time_as_there_are_cores(
    cores: int, number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[int] = []

    def work(self: Any, tasks: Sequence[local.Task], packing: Packing) -> list[Outcome]:
        started.append(packing.at_a_time)
        return [Outcome(task.job.overrides) for task in tasks]

    monkeypatch.setattr(local, "usable_cores", lambda: cores)
    monkeypatch.setattr(LocalLauncher, "work", work)
    LocalLauncher().launch([Job((*TINY, f"seed={seed}"), "mine") for seed in range(number)], {})
    assert started == [min(cores, number)]
    said = {1: "(1 core)\n", 2: "(2 cores); one after another: hydra/launcher=basic\n"}[cores]
    assert capsys.readouterr().err == (f"2 jobs of mine, {cores} at a time {said}" if number == 2 else "")


def test_the_largest_models_start_first(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def work(self: Any, tasks: Sequence[local.Task], packing: Packing) -> list[Outcome]:
        started.extend(" ".join(tasks[number].job.overrides) for number in packing.waiting)
        return [Outcome(task.job.overrides) for task in tasks]

    monkeypatch.setattr(local, "usable_cores", lambda: 2)
    monkeypatch.setattr(LocalLauncher, "work", work)
    layers = [f"model=residual layers={n}" for n in (1, 3, 2)]
    broken = "model=lstm model._target_=ner_experiments.models.Missing"
    LocalLauncher().launch([Job(tuple(line.split())) for line in (broken, *layers, *layers)], {})
    assert started == [layers[1], layers[1], layers[2], layers[2], layers[0], layers[0], broken]
    started.clear()
    of_one_size = ["trainer.patience=8", "seed=3", "seed=2"]
    LocalLauncher().launch([Job((item,)) for item in of_one_size], {})
    assert started == of_one_size


def test_the_basic_launcher_runs_jobs_here_with_the_composed_config(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[Any] = []
    result = {"folder": "none/seed-1", "seconds": 0.0}
    monkeypatch.setattr("ner_experiments.train.train", lambda cfg, wait: ran.append(cfg) or result)
    jobs = [Job(("layers=1", "model=residual", f"seed={seed}"), "mine", "a b") for seed in (1, 2)]
    results = local.BasicLauncher().launch(jobs, {"job_logging": None, "verbose": False})
    assert results == [Outcome(job.overrides, result) for job in jobs]
    assert [(cfg.seed, cfg.sweep.name, cfg.sweep.row) for cfg in ran] == [
        (1, "mine", "a b"),
        (2, "mine", "a b"),
    ]
    assert capsys.readouterr().err.splitlines() == [
        "2 jobs of mine, one after another",
        "a b seed=1 done, 0:00",
        "1 of 2 done, about 0:01 left",
        "a b seed=2 done, 0:00",
        "2 of 2 done",
    ]


def test_the_time_of_a_job_begins_when_its_worker_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker has had another job before, and must not be stopped for the time that this one took."""
    now, signals = 0.0, list[int]()
    monkeypatch.setattr(local, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(local.os, "killpg", lambda process, number: signals.append(number))
    process: Any = SimpleNamespace(pid=0, poll=lambda: None, stdin=BytesIO())
    task = local.Task(0, Job(()), {}, several=False)
    worker = local.Worker(process, Slot(), task, tmp_path / "0.json", started=now)
    launcher = LocalLauncher(jobs=1, minutes=1.0)
    now = 59.0
    worker.give(task, tmp_path / "1.json")
    now = 118.0
    launcher.stop_if_late(worker)
    assert (signals, worker.late) == ([], False)
    now = 120.0
    launcher.stop_if_late(worker)
    launcher.stop_if_late(worker)
    assert (signals, worker.late) == ([signal.SIGTERM], True)
    now = 120.0 + local.GRACE
    launcher.stop_if_late(worker)
    assert signals == [signal.SIGTERM, signal.SIGKILL]


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_a_repeated_sigterm_is_no_harder_than_one(first: signal.Signals) -> None:
    """`timeout` sends one to its command and, at once, another to the group of processes: here while jobs stop."""
    hard, stopped = list[int](), list[int]()

    def stop(number: int) -> None:
        signal.raise_signal(signal.SIGTERM)
        stopped.append(number)

    process = SimpleNamespace(wait=lambda _: signal.raise_signal(signal.SIGTERM))
    worker: Any = SimpleNamespace(stop=stop, process=process, show_output=lambda: None)

    def harder(number: int, _: Any) -> None:
        hard.append(number)

    before = signal.signal(signal.SIGTERM, harder)
    try:
        with pytest.raises(SystemExit) as ended, local.stop_on_exit([worker, worker]):
            signal.raise_signal(first)
        assert signal.getsignal(signal.SIGTERM) is harder
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (ended.value.code, hard, stopped) == (128 + first, [], 2 * [signal.SIGTERM])


def start(*arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(ROOT / "run.py"), "-m", *TINY, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_runs_side_by_side_are_those_of_a_sweep_in_turn(tmp_path: Path) -> None:
    """Three jobs and two workers: one has two jobs. The weights are the same to the bit."""
    choices = {"local": "hydra.launcher.jobs=2", "basic": "hydra/launcher=basic"}
    sweep = ["seed=1,2,3", "trainer.max_epochs=1"]
    two = [start(*sweep, choice, f"output_dir={tmp_path}/{name}") for name, choice in choices.items()]
    printed, in_turn = (process.communicate(timeout=300)[0] for process in two)
    assert [process.returncode for process in two] == [0, 0], printed + in_turn
    assert "3 jobs of seeds, 2 at a time" in printed
    assert re.findall(r"\d of 3 done", printed) == [f"{n} of 3 done" for n in (1, 2, 3)]
    assert "at a time" not in in_turn
    for path in (tmp_path / "local").glob("*/seed-*/model.safetensors"):
        other = tmp_path / "basic" / path.relative_to(tmp_path / "local")
        assert path.read_bytes() == other.read_bytes()
    assert len([*(tmp_path / "local").glob("*/seed-*/metrics.json")]) == 3


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_one_job(tmp_path: Path) -> None:
    """Another takes the remaining jobs, also on the only core of a machine, where no second job could run."""
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cores)})
        process = start("seed=1,2,3", "trainer.max_epochs=2", f"output_dir={tmp_path}")
    finally:
        os.sched_setaffinity(0, cores)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    until(lambda: any(tmp_path.glob("*/seed-1/log.csv")))
    (worker,) = map(int, children.read_text().split())
    os.kill(worker, signal.SIGKILL)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 1, printed
    assert "worker killed by SIGKILL, possibly out of memory" in printed
    assert "1 of 3 jobs failed" in printed
    assert len([*tmp_path.glob("*/seed-[23]/metrics.json")]) == 2
