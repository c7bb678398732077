"""`hydra/launcher=local`, the default: the jobs of a sweep side by side on this machine, in worker processes.

A worker takes one job after another, so what is imported and compiled serves all of its jobs. Even where only one job
runs at a time it has a process of its own, so that a job that is killed, as by a lack of memory, ends no other.

Hydra imports this file at every start, so what is slow to import is imported where it is used.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from ner_experiments.config.job import Job, as_job
from ner_experiments.config.processes import num_processes
from ner_experiments.config.values import check_ranges, lack_of_gpu
from ner_experiments.launch import worker
from ner_experiments.launch.sweep_progress import SweepProgress, Tail, sizes
from ner_experiments.launch.worker import Outcome
from ner_experiments.training.preemption import STOPPING
from ner_experiments.utils.machine import available_memory, usable_cores


@dataclass
class LocalLauncherConfig:
    """jobs: how many run at a time; 0: as many as there are GPUs or, without GPUs, cores, if memory allows.

    gpus: the CUDA indices to use; by default all GPUs. Their number must be a multiple of `gpus_per_job`.
    gpus_per_job: how many GPUs each job gets.
    minutes: the time limit of a job, which is resumed when the command is repeated; 0: none.
    """

    _target_: str = "hydra_plugins.ner_experiments_plugins.LocalLauncher"
    jobs: int = 0
    gpus: list[int] | None = None
    gpus_per_job: int = 1
    minutes: float = 0.0


@dataclass
class BasicLauncherConfig:
    """`hydra/launcher=basic` has no settings."""

    _target_: str = "hydra_plugins.ner_experiments_plugins.BasicLauncher"


GRACE = 60.0
"""Seconds that a stopped job has to write its checkpoint before it is killed."""
MEMORY = 2 * 2**30
"""Bytes that a job is expected to need; end to end, training takes 0.8 GB (benchmarks/README.md)."""


@dataclass(frozen=True)
class Task:
    """A job of the sweep, by its number, and its `worker.message`.

    several: whether it starts further processes that train its model with it.
    """

    number: int
    job: Job
    message: worker.Message
    several: bool


@dataclass
class Worker:
    """A process, and the job that it is working on. slot: its CUDA_VISIBLE_DEVICES."""

    process: subprocess.Popen[bytes]
    slot: str | None
    task: Task
    outcome: Path
    tails: Sequence[Tail] = ()
    started: float = field(default_factory=time.monotonic)
    late: bool = False

    def show_output(self) -> None:
        """Show what the process has printed since the last call."""
        for tail in self.tails:
            tail.read()

    def give(self, task: Task, outcome: Path) -> None:
        """Hand a job to the process, which waits for one."""
        self.task, self.outcome, self.started = task, outcome, time.monotonic()
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps([str(outcome), task.message]).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the process has died, which `is_done` reports

    @property
    def is_done(self) -> bool:
        return self.process.poll() is not None or (not self.task.several and self.outcome.exists())

    def stop(self, signal_: signal.Signals) -> None:
        """Send a signal to all processes of the job, of which there are several if they train one model together."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal_)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Context in which SIGINT and SIGTERM wait, to be handled at its end."""
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = {number: signal.signal(number, lambda it, _: received.append(it)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        for it in received:
            os.kill(os.getpid(), it)


class LocalLauncher(Launcher):
    """Runs the jobs in worker processes; a job that crashes or runs out of memory stops no other.

    No job outlives the sweep: when it is stopped or dies, its jobs write their checkpoints and end.
    """

    def __init__(self, jobs: int, gpus: Sequence[int] | None, gpus_per_job: int, minutes: float) -> None:
        check_ranges(
            {"jobs": jobs, "gpus_per_job": gpus_per_job, "minutes": minutes}, prefix="hydra.launcher."
        )
        self.jobs, self.minutes, self.gpus = jobs, minutes, gpus
        self.slots = slots(gpus, gpus_per_job) if gpus is not None or not lack_of_gpu() else []
        self.logging: dict[str, Any] = {}

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Store only how jobs log: each brings its own config."""
        self.logging = worker.logging_of(config)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        jobs = [*map(as_job, job_overrides)]
        configs = [job.cfg for job in jobs]
        devices = self.slots if any(cfg.runtime.accelerator != "cpu" for cfg in configs) else []
        cores = max(cfg.runtime.threads * num_processes(cfg) for cfg in configs)
        at_a_time = min(self.jobs or spare(devices, cores), len(jobs))
        numbers = [*range(len(jobs))]
        if 1 < at_a_time < len(jobs):  # so that a long job is less likely to run alone at the end
            large = sizes(configs)
            numbers.sort(key=lambda n: -large[n])
        if at_a_time > 1:
            print(announcement(len(jobs), at_a_time, devices), file=sys.stderr, flush=True)
        tasks = [
            Task(n, jobs[n], worker.message(jobs[n], self.logging), num_processes(configs[n]) > 1)
            for n in numbers
        ]
        return [it.for_hydra() for it in self.work(tasks, at_a_time, devices)]

    def work(self, tasks: Sequence[Task], at_a_time: int, devices: Sequence[str]) -> list[Outcome]:
        waiting = list(tasks)[::-1]
        results: dict[int, Outcome] = {}
        workers: list[Worker] = []
        jobs = [task.job for task in sorted(tasks, key=lambda task: task.number)]
        with (
            SweepProgress(jobs, at_a_time) as progress,
            tempfile.TemporaryDirectory() as folder,
            last_words(workers),
            stop_on_exit(workers),
        ):
            while waiting or workers:
                while waiting and len(workers) < at_a_time:
                    with deferred_signals():  # a worker that is not in the list yet would not be stopped
                        workers.append(self.start(waiting.pop(), Path(folder), workers, devices, progress))
                time.sleep(0.05)
                for each in workers:
                    each.show_output()
                    self.stop_if_late(each)
                for each in [each for each in workers if each.is_done]:
                    number = each.task.number
                    results[number] = self.result(each)
                    if each.process.poll() is None and waiting and not waiting[-1].several and not each.late:
                        task = waiting.pop()
                        each.give(task, Path(folder) / f"{task.number}.json")
                        progress.started(task.number)
                    else:
                        workers.remove(each)
                        each.process.communicate()  # closes its stdin, and waits for its end
                    each.show_output()
                    progress.ended(number, results[number])
        return [results[number] for number in range(len(tasks))]

    def start(
        self,
        task: Task,
        folder: Path,
        workers: Sequence[Worker],
        devices: Sequence[str],
        progress: SweepProgress,
    ) -> Worker:
        """Start a process for a job, on the slot with the fewest jobs."""
        load = {slot: sum(each.slot == slot for each in workers) for slot in devices}
        slot = min(load, key=load.__getitem__) if load else None
        outcome = folder / f"{task.number}.json"
        program = [sys.executable, "-m", "ner_experiments.launch.worker"]
        if task.several:  # further processes of the job repeat this command line, so the job has to be in it
            given = folder / f"{task.number}_job.json"
            given.write_text(json.dumps([str(outcome), task.message]), encoding="utf-8")
            program += ["--job", str(given)]
        printed = {
            folder / f"{task.number}.out": progress.note,
            folder / f"{task.number}.err": progress.print,
        }
        with ExitStack() as files:
            out, err = (files.enter_context(path.open("wb")) for path in printed)
            process = subprocess.Popen(
                program,
                stdin=subprocess.PIPE,  # closes when this process ends, which stops the job
                stdout=out,
                stderr=err,
                env={**os.environ, "PYTHONPATH": worker.python_path(), "PYTHONUNBUFFERED": "1"}
                | ({} if slot is None else {"CUDA_VISIBLE_DEVICES": slot}),
                start_new_session=True,
            )
        progress.started(task.number)
        started = Worker(process, slot, task, outcome, [Tail(path, show) for path, show in printed.items()])
        if not task.several:
            started.give(task, outcome)
        return started

    def stop_if_late(self, each: Worker) -> None:
        seconds = time.monotonic() - each.started
        if not self.minutes or seconds <= 60 * self.minutes:
            return
        if not each.late:
            each.stop(signal.SIGTERM)
            each.late = True
        elif seconds > 60 * self.minutes + GRACE:
            each.stop(signal.SIGKILL)

    def result(self, each: Worker) -> Outcome:
        if each.late and not each.outcome.exists():
            reason = f"stopped after {self.minutes:g} minutes; repeat the command to resume"
            return Outcome(each.task.job.overrides, failed=reason)
        return worker.outcome_of_process(each.outcome, each.task.job.overrides, each.process.returncode or 0)


class BasicLauncher(Launcher):
    """Runs the jobs one after another in this process, in place of Hydra's launcher of this name.

    Hydra's composes the settings of Hydra itself again for every job.
    """

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.logging = worker.logging_of(config)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        jobs = [*map(as_job, job_overrides)]
        results = []
        with SweepProgress(jobs, at_a_time=1) as progress:
            for number, job in enumerate(jobs):
                progress.started(number)
                found = Outcome(job.overrides, **worker.outcome(worker.message(job, self.logging)))
                progress.ended(number, found)
                results.append(found.for_hydra())
        return results


def spare(devices: Sequence[str], cores: int) -> int:
    """Number of jobs, each on a slot of `devices` or on `cores` cores, that can run at a time; at least one.

    The load by other programs is ignored: it may come from an interrupted sweep whose jobs are still ending.
    """
    possible = len(devices) or usable_cores() // cores
    return max(1, min(possible, available_memory() // MEMORY))


def announcement(jobs: int, at_a_time: int, devices: Sequence[str]) -> str:
    return (
        f"{jobs} jobs, {at_a_time} at a time ({f'{len(devices)} GPUs' if devices else f'{usable_cores()} cores'}); "
        "with hydra/launcher=basic they would run one after another"
    )


def slots(gpus: Sequence[int] | None, size: int) -> list[str]:
    """CUDA_VISIBLE_DEVICES of each slot; empty without GPUs. ValueError if the GPUs cannot be divided evenly."""
    import torch  # takes a second

    count = torch.cuda.device_count()
    if gpus is not None and not gpus:
        raise ValueError("hydra.launcher.gpus must name a GPU, got []; without GPUs: runtime.accelerator=cpu")
    chosen = list(range(count)) if gpus is None else list(gpus)
    if wrong := [gpu for gpu in chosen if not 0 <= gpu < count]:
        raise ValueError(f"hydra.launcher.gpus: there is no GPU {wrong[0]}; this machine has {count}")
    if len(chosen) % size:
        raise ValueError(f"hydra.launcher: {len(chosen)} GPUs cannot be divided into slots of {size}")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else list(map(str, range(count)))
    return [",".join(names[gpu] for gpu in chosen[i : i + size]) for i in range(0, len(chosen), size)]


@contextmanager
def last_words(workers: Sequence[Worker]) -> Iterator[None]:
    """Show what the workers have printed when they have ended."""
    try:
        yield
    finally:
        for each in workers:
            each.show_output()


@contextmanager
def stop_on_exit(workers: Sequence[Worker]) -> Iterator[None]:
    """Pass SIGTERM and Ctrl-C on to the jobs, and give them time to write their checkpoints."""

    def exit_(*_: Any) -> None:
        print(STOPPING, file=sys.stderr, flush=True)
        sys.exit(143)

    before = signal.signal(signal.SIGTERM, exit_)
    try:
        yield
    except KeyboardInterrupt:
        print(STOPPING, file=sys.stderr, flush=True)
        raise SystemExit(128 + signal.SIGINT) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        for each in workers:
            each.stop(signal.SIGTERM)
        for each in workers:
            try:
                each.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                each.stop(signal.SIGKILL)
                each.process.wait()
