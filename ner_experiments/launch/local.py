"""`hydra/launcher=local`, the default: the jobs of a sweep side by side on this machine, in worker processes.

A worker takes one job after another, so what is imported and compiled serves all of its jobs. Even where only one job
runs at a time it has a process of its own, so that a job that is killed, as by a lack of memory, ends no other.

The command line imports this file at every start, so PyTorch is imported where it is used.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from ner_experiments.config.job import Job
from ner_experiments.config.processes import num_processes
from ner_experiments.config.values import check_ranges, lack_of_gpu
from ner_experiments.launch import worker
from ner_experiments.launch.packing import GPU_ERROR, Packing, Slot, mps
from ner_experiments.launch.sweep_progress import SweepProgress, Tail, sizes
from ner_experiments.launch.worker import Outcome, title
from ner_experiments.training.preemption import STOPPING
from ner_experiments.utils.machine import available_memory, usable_cores

PROGRAM = (sys.executable, "-m", "ner_experiments.launch.worker")
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
    """A process, and the job that it is working on."""

    process: subprocess.Popen[bytes]
    slot: Slot
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


@dataclass
class LocalLauncher:
    """Runs the jobs in worker processes; a job that crashes or runs out of memory stops no other.

    No job outlives the sweep: when it is stopped or dies, its jobs write their checkpoints and end.

    jobs: how many run at a time; 0: `jobs_per_gpu` on each GPU or, without GPUs, one per core, if memory allows.
    jobs_per_gpu: how many share a GPU; 0: as many as its free memory and the cores allow, going by what one has taken.
    gpus: the indices of the GPUs to use; by default all GPUs. Their number must be a multiple of `gpus_per_job`.
    gpus_per_job: how many GPUs each job gets; above 1 no GPU is shared.
    minutes: the time limit of a job, which is resumed when the command is repeated; 0: none.
    """

    jobs: int = 0
    jobs_per_gpu: int = 0
    gpus: list[int] | None = None
    gpus_per_job: int = 1
    minutes: float = 0.0

    def __post_init__(self) -> None:
        check_ranges(vars(self), prefix="hydra.launcher.")
        if self.jobs_per_gpu > 1 and self.gpus_per_job > 1:
            raise ValueError(
                f"hydra.launcher.jobs_per_gpu={self.jobs_per_gpu}: jobs that have several GPUs each "
                f"(hydra.launcher.gpus_per_job={self.gpus_per_job}) share none"
            )
        self.peak, self.noted = 0, set[str]()
        self.slots = slots(self.gpus, self.gpus_per_job) if self.gpus is not None or not lack_of_gpu() else []

    def launch(self, jobs: Sequence[Job], logging: Mapping[str, Any]) -> list[Outcome]:
        """The outcomes of jobs, which log as `launch_settings.logging` says."""
        configs = [job.cfg for job in jobs]
        packing = self.packing(configs)
        if packing.at_a_time < len(jobs) and packing.most > 1:
            # so that a long job is less likely to run alone at the end, and none takes more memory than the first
            large = sizes(configs)
            packing.waiting.sort(key=lambda n: -large[n])
        if len(jobs) > 1:
            print(announcement(jobs, packing), file=sys.stderr, flush=True)
        tasks = [
            Task(n, job, worker.message(job, logging), num_processes(job.cfg) > 1)
            for n, job in enumerate(jobs)
        ]
        return self.work(tasks, packing)

    def packing(self, configs: Sequence[DictConfig]) -> Packing:
        """How many of the jobs may run at a time, and where."""
        devices = self.slots if any(cfg.runtime.accelerator != "cpu" for cfg in configs) else []
        several = self.gpus_per_job > 1 or any(num_processes(cfg) > 1 for cfg in configs)
        cores = max(cfg.runtime.threads * num_processes(cfg) for cfg in configs)
        most = self.jobs or self.jobs_per_gpu * len(devices) or spare(devices, cores)
        if not devices:
            per_slot = most
        elif self.jobs or self.jobs_per_gpu:
            per_slot = self.jobs_per_gpu or ceil(self.jobs / len(devices))
        else:
            per_slot = int(several or len(configs) <= len(devices))
        return Packing(devices, range(len(configs)), most, per_slot, self.peak)

    def work(self, tasks: Sequence[Task], packing: Packing) -> list[Outcome]:
        results: dict[int, Outcome] = {}
        workers: list[Worker] = []
        with (
            SweepProgress([task.job for task in tasks], packing.at_a_time, self.noted) as progress,
            tempfile.TemporaryDirectory() as name,
            mps(packing) as environment,
            stop_on_exit(workers),
        ):
            folder = Path(name)
            while packing.has_work:
                while (next_job := packing.start()) is not None:
                    number, slot = next_job
                    with deferred_signals():  # a worker that is not in the list yet would not be stopped
                        workers.append(self.start(tasks[number], slot, environment, folder, progress))
                time.sleep(0.05)
                for each in workers:
                    each.show_output()
                    self.stop_if_late(each)
                    if packing.is_measuring and progress.has_ended_an_epoch(each.task.number):
                        packing.measure(each.task.number)
                for each in [each for each in workers if each.is_done]:
                    task, found = each.task, self.result(each, progress)
                    allocated = found.result.get("peak_memory_bytes", {}).get("device")
                    if packing.is_measuring and allocated and task.number not in progress.finished:
                        packing.measure(task.number, allocated)
                    runs_again = packing.ended(task.number, found.failed)
                    if (following := self.following(each, found, tasks, packing)) is not None:
                        each.give(following, folder / f"{following.number}.json")
                        progress.started(following.number)
                    else:
                        workers.remove(each)
                        each.process.communicate()  # closes its stdin, and waits for its end
                    each.show_output()
                    if runs_again:
                        progress.repeats(task.number, found.failed)
                        each.outcome.unlink()
                    else:
                        results[task.number] = found
                        progress.ended(task.number, found)
                if packing.peak != self.peak:
                    self.peak, progress.at_a_time = packing.peak, packing.at_a_time
                    needs = f"a job is expected to take {packing.peak / 1e9:.1f} GB of GPU memory"
                    progress.print(f"{packing.at_a_time} at a time from now on: {needs}")
        return [results[number] for number in range(len(tasks))]

    def following(self, each: Worker, found: Outcome, tasks: Sequence[Task], packing: Packing) -> Task | None:
        """The job that a process takes after the one that it has ended; None if the process is to end."""
        if each.process.poll() is not None or each.late or GPU_ERROR.search(found.failed):
            return None
        if not packing.has_place(each.slot) or tasks[packing.waiting[0]].several:
            return None
        return tasks[packing.take(each.slot)]

    def start(
        self,
        task: Task,
        slot: Slot,
        environment: dict[str, str],
        folder: Path,
        progress: SweepProgress,
    ) -> Worker:
        """Start a process for a job, with more variables in its environment."""
        outcome = folder / f"{task.number}.json"
        program = [*PROGRAM]
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
                | environment
                # an index is then that of nvidia-smi, whatever the order of speeds
                | (
                    {}
                    if slot.name is None
                    else {"CUDA_VISIBLE_DEVICES": slot.name, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
                ),
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

    def result(self, each: Worker, progress: SweepProgress) -> Outcome:
        if not each.outcome.exists() and (found := progress.result(each.task.number)):
            return Outcome(each.task.job.overrides, found)
        if each.late and not each.outcome.exists():
            reason = f"stopped after {self.minutes:g} minutes; repeat the command to resume"
            return Outcome(each.task.job.overrides, failed=reason)
        return worker.outcome_of_process(each.outcome, each.task.job.overrides, each.process.returncode or 0)


@dataclass
class BasicLauncher:
    """Runs the jobs one after another in this process."""

    def __post_init__(self) -> None:
        self.noted = set[str]()

    def launch(self, jobs: Sequence[Job], logging: Mapping[str, Any]) -> list[Outcome]:
        results = []
        if len(jobs) > 1:
            print(f"{title(jobs)}, one after another", file=sys.stderr, flush=True)
        with SweepProgress(jobs, at_a_time=1, noted=self.noted) as progress:
            for number, job in enumerate(jobs):
                progress.started(number)
                results.append(Outcome(job.overrides, **worker.outcome(worker.message(job, logging))))
                progress.ended(number, results[-1])
        return results


def spare(devices: Sequence[str], cores: int) -> int:
    """Number of jobs that can run at a time on so many `cores` each; at least one, and one per slot of `devices`.

    The load by other programs is ignored: it may come from an interrupted sweep whose jobs are still ending.
    """
    possible = max(len(devices), usable_cores() // cores)
    return max(1, min(possible, available_memory() // MEMORY))


def announcement(jobs: Sequence[Job], packing: Packing) -> str:
    gpus = sum(slot.name is not None for slot in packing.slots)
    number, unit = (gpus, "GPU") if gpus else (usable_cores(), "core")
    more = ", more as soon as one has shown how much GPU memory it takes" if packing.is_measuring else ""
    advice = "; one after another: hydra/launcher=basic" if packing.most > 1 else ""
    return (
        f"{title(jobs)}, {packing.at_a_time} at a time ({number} {unit}{'s' * (number != 1)}){more}{advice}"
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
    names = [*map(str.strip, visible.split(","))] if visible else [*map(str, range(count))]
    return [",".join(names[gpu] for gpu in chosen[i : i + size]) for i in range(0, len(chosen), size)]


@contextmanager
def stop_on_exit(workers: Sequence[Worker]) -> Iterator[None]:
    """Pass SIGTERM and Ctrl-C on to the jobs, give them time to write their checkpoints, and show their last lines.

    Further SIGTERM do nothing meanwhile: `timeout` sends two at once, to its command and to the group of processes.
    """

    def exit_(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(STOPPING, file=sys.stderr, flush=True)
        sys.exit(143)

    before = signal.signal(signal.SIGTERM, exit_)
    try:
        yield
    except KeyboardInterrupt:
        print(STOPPING, file=sys.stderr, flush=True)
        raise SystemExit(128 + signal.SIGINT) from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            for each in workers:
                each.stop(signal.SIGTERM)
            for each in workers:
                try:
                    each.process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    each.stop(signal.SIGKILL)
                    each.process.wait()
                each.show_output()
        finally:
            signal.signal(signal.SIGTERM, before)
