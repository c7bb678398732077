"""`hydra/launcher=local` runs the jobs of a sweep side by side on this machine, each in its own process.

Hydra imports this file at every start, so what is slow to import is imported where it is used.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from ner_experiments.config.values import check_ranges
from ner_experiments.launch import worker
from ner_experiments.training.preemption import STOPPING


@dataclass
class LocalLauncherConfig:
    """jobs: how many run at a time; 0: one per slot, or without GPUs one per processor.

    gpus: the CUDA indices to use; by default all GPUs. A slot is `gpus_per_job` of them.
    gpus_per_job: how many GPUs each job gets.
    minutes: the time limit of a job, which is resumed when the command is rerun; 0: none.
    """

    _target_: str = "hydra_plugins.ner_experiments_plugins.LocalLauncher"
    jobs: int = 0
    gpus: list[int] | None = None
    gpus_per_job: int = 1
    minutes: float = 0.0


GRACE = 60.0
"""Seconds that a stopped job has to write its checkpoint before it is killed."""


@dataclass
class Running:
    """A job and its process. slot: its CUDA_VISIBLE_DEVICES."""

    number: int
    overrides: Sequence[str]
    process: subprocess.Popen[bytes]
    outcome: Path
    slot: str | None
    started: float = field(default_factory=time.monotonic)
    late: bool = False

    def stop(self, signal_: signal.Signals) -> None:
        """Send a signal to all processes of the job, of which there are several if they train one model together."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal_)


class LocalLauncher(Launcher):
    """Starts one process per job; a job that crashes or runs out of memory stops no other.

    No job outlives the sweep: when it is stopped or dies, its jobs write their checkpoints and end.
    """

    def __init__(self, jobs: int, gpus: Sequence[int] | None, gpus_per_job: int, minutes: float) -> None:
        check_ranges(
            {"jobs": jobs, "gpus_per_job": gpus_per_job, "minutes": minutes}, prefix="hydra.launcher."
        )
        self.jobs, self.minutes = jobs, minutes
        self.slots = slots(gpus, gpus_per_job)
        self.hydra_overrides: list[str] = []

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Store only the overrides of Hydra itself: each job composes its own config."""
        self.hydra_overrides = worker.hydra_overrides(config)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        waiting = list(enumerate(job_overrides))[::-1]
        results: dict[int, JobReturn] = {}
        running: list[Running] = []
        with tempfile.TemporaryDirectory() as folder, stop_on_exit(running):
            while waiting or running:
                while waiting and len(running) < self.max_running:
                    running.append(self.start(*waiting.pop(), Path(folder), running))
                time.sleep(0.1)
                for job in running:
                    self.stop_if_late(job)
                for job in [job for job in running if job.process.poll() is not None]:
                    running.remove(job)
                    results[job.number] = self.result(job)
                    self.report(results, len(job_overrides), len(running))
        return [results[number] for number in range(len(job_overrides))]

    @property
    def max_running(self) -> int:
        return self.jobs or len(self.slots) or len(os.sched_getaffinity(0))

    def start(
        self, number: int, overrides: Sequence[str], folder: Path, running: Sequence[Running]
    ) -> Running:
        """Start a job on the slot with the fewest jobs."""
        load = {slot: sum(job.slot == slot for job in running) for slot in self.slots}
        slot = min(load, key=load.__getitem__) if load else None
        outcome = folder / f"{number}.json"
        program = [sys.executable, "-m", "ner_experiments.launch.worker", str(outcome)]
        devices = {} if slot is None else {"CUDA_VISIBLE_DEVICES": slot}
        process = subprocess.Popen(
            [*program, *self.hydra_overrides, *overrides],
            stdin=subprocess.PIPE,  # ends with this process, which stops the job
            env={**os.environ, "PYTHONPATH": worker.python_path(), **devices},
            start_new_session=True,
        )
        return Running(number, overrides, process, outcome, slot)

    def stop_if_late(self, job: Running) -> None:
        seconds = time.monotonic() - job.started
        if not self.minutes or seconds <= 60 * self.minutes:
            return
        if not job.late:
            job.stop(signal.SIGTERM)
            job.late = True
        elif seconds > 60 * self.minutes + GRACE:
            job.stop(signal.SIGKILL)

    def result(self, job: Running) -> JobReturn:
        if job.late and not job.outcome.exists():
            reason = f"stopped after {self.minutes:g} minutes; rerun the command to resume"
            return worker.failed(job.overrides, reason)
        return worker.job_return(job.outcome, job.overrides, job.process.returncode)

    @staticmethod
    def report(results: dict[int, JobReturn], total: int, running: int) -> None:
        bad = sum(result.status.name == "FAILED" for result in results.values())
        failed = f", {bad} of them failed" if bad else ""
        print(f"{len(results)} of {total} jobs done{failed}, {running} running", file=sys.stderr, flush=True)


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
def stop_on_exit(running: Sequence[Running]) -> Iterator[None]:
    """Pass SIGTERM and Ctrl-C on to the jobs, and give them time to write their checkpoints."""

    def exit_(*_: Any) -> None:
        sys.exit(143)

    before = signal.signal(signal.SIGTERM, exit_)
    try:
        yield
    except KeyboardInterrupt:
        print(STOPPING, file=sys.stderr, flush=True)
        raise SystemExit(128 + signal.SIGINT) from None
    finally:
        signal.signal(signal.SIGTERM, before)
        for job in running:
            job.stop(signal.SIGTERM)
        for job in running:
            try:
                job.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                job.stop(signal.SIGKILL)
                job.process.wait()
