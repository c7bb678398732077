"""How far a sweep is, as its launcher shows it: on one live screen in a terminal, elsewhere as lines on stderr.

Times are in seconds.
"""

from __future__ import annotations

import heapq
import io
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from ner_experiments.config.job import Job
from ner_experiments.config.row_settings import labels
from ner_experiments.experiment_data import unread_error
from ner_experiments.launch.worker import Outcome
from ner_experiments.runs.artifacts import METRICS_FILE, read_metrics
from ner_experiments.runs.folder import REUSED
from ner_experiments.runs.progress import EPOCH, SEPARATOR, format_duration, row_and_seed
from ner_experiments.runs.status import (
    DONE,
    FAILED,
    INTERRUPTED,
    RUNNING,
    WAITING,
    Status,
    planned_run,
    status_of_folder,
    sweep_statuses,
)
from ner_experiments.tables.experiments import experiments
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.locks import LOCK_FILE
from ner_experiments.utils.text import percent

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ner_experiments.tables.spec import Table

REFRESH = 2.0
"""Seconds between two looks at the files of the running jobs."""


OVERHEAD = 300_000.0
"""Weights of an encoder whose products take as long as all else of a step does, found by trial."""


class SweepProgress:
    """Context in which a launcher runs its jobs, and says which have started and ended, by their numbers.

    What jobs print passes through: lines of stdout, which are notes such as those on a corpus, once in the whole sweep.

    noted: such lines of earlier batches of jobs, as those of a search, to which this one's are added.
    """

    def __init__(self, jobs: Sequence[Job], at_a_time: int, noted: set[str] | None = None) -> None:
        self.jobs, configs = jobs, [job.cfg for job in jobs]
        rows = [
            job.row or label for job, label in zip(jobs, labels([job.overrides for job in jobs]), strict=True)
        ]
        self.planned = [planned_run(row, cfg) for row, cfg in zip(rows, configs, strict=True)]
        self.corpora = [cfg.data.name for cfg in configs]
        self.sizes = [
            size * cfg.trainer.max_epochs for size, cfg in zip(sizes(configs), configs, strict=True)
        ]
        self.output, self.at_a_time = Path(configs[0].output_dir), at_a_time
        self.statuses = [Status(run.label, run.seed, WAITING) for run in self.planned]
        before = sweep_statuses(self.planned, self.output)
        self.finished = {number for number, status in enumerate(before) if status.state == DONE}
        self.started_at: dict[int, float] = {}
        self.seconds: dict[int, float] = {}
        self.epochs: dict[int, int] = {}
        self.noted = set[str]() if noted is None else noted
        self.is_live = sys.stderr.isatty() and any(cfg.runtime.progress for cfg in configs)
        self.stdout, self.stderr = sys.stdout, sys.stderr
        self.polled = 0.0
        self.context = ExitStack()

    @classmethod
    def of_sweep(cls, table: Table, place: Sequence[str]) -> SweepProgress:
        """How far a recorded sweep is, by the files of its runs: for a process that does not run it.

        place: the overrides that say where the runs are.
        """
        jobs = [
            Job((*row.overrides, f"seed={seed}"), table.name, row.row.label)
            for row in experiments(table, place)
            for seed in table.seeds
        ]
        found = cls(jobs, at_a_time=1)
        found.statuses = sweep_statuses(found.planned, found.output)
        for number, status in enumerate(found.statuses):
            folder = Path(status.folder)
            if status.state == DONE:
                found.seconds[number] = read_metrics(folder / METRICS_FILE)["seconds"]
            elif status.state == RUNNING:
                found.started_at[number] = time.monotonic() - max(
                    0.0, time.time() - (folder / LOCK_FILE).stat().st_mtime
                )
        found.at_a_time = max(1, len(found.started_at))
        return found

    @property
    def has_ended(self) -> bool:
        """Whether no job runs or waits."""
        return not {RUNNING, WAITING} & {status.state for status in self.statuses}

    def __enter__(self) -> SweepProgress:
        if self.is_live:
            from rich.console import Console  # slow to import, and only for a terminal
            from rich.live import Live

            self.console = Console(file=self.stderr)
            live = Live(
                get_renderable=self.screen,
                console=self.console,
                refresh_per_second=1,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self.context.enter_context(live)
            self.context.enter_context(redirect_stderr(Lines(self.print)))
        self.context.enter_context(redirect_stdout(Lines(self.note)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.context.close()
        if kind is not None and len(self.statuses) > 1:
            by_files = sweep_statuses(self.planned, self.output)  # some have ended while they were stopped
            pairs = zip(self.statuses, by_files, strict=True)
            done = sum(DONE in (status.state, found.state) for status, found in pairs)
            print(f"Ended with {done} of {len(self.statuses)} runs done.", file=self.stderr, flush=True)

    # What is printed

    def note(self, line: str) -> None:
        """Show a line of a job's stdout, unless it was shown before, or says of a job what its own line says."""
        if line not in self.noted and not line.endswith(REUSED):
            self.noted.add(line)
            self.write(line, self.stdout)

    def print(self, line: str) -> None:
        """Show a line of a job's stderr, but no lines of epochs beside a live screen, which has them."""
        if not (self.is_live and f"{SEPARATOR}{EPOCH}" in line):
            self.write(line, self.stderr)

    def write(self, line: str, file: TextIO) -> None:
        if self.is_live and file.isatty():
            from rich.text import Text  # slow to import, and only for a terminal

            # above the screen, whose own markup the option markup=False would turn off
            self.console.print(Text(line))
        else:
            print(line, file=file, flush=True)

    def started(self, number: int) -> None:
        self.statuses[number] = replace(self.statuses[number], state=RUNNING, reason="starting")
        self.started_at[number] = time.monotonic()
        self.epochs.pop(number, None)

    def repeats(self, number: int, reason: str) -> None:
        """Take that a job has failed beside others on its GPU, where it will run alone."""
        run = self.planned[number]
        self.statuses[number] = Status(run.label, run.seed, WAITING, reason="to run alone")
        said = f"failed beside other jobs on its GPU, and will run again alone: {reason.partition('. ')[0]}"
        self.print(f"{row_and_seed(run.label, run.seed)} {said}")

    def has_ended_an_epoch(self, number: int) -> bool:
        """Whether a running job has ended an epoch since this was last asked."""
        self.look()
        status = self.statuses[number]
        is_own = status.silent is not None and status.silent < time.monotonic() - self.started_at[number]
        if status.epoch is None or not is_own:  # what an interrupted command has left
            return False
        before = self.epochs.setdefault(number, status.epoch)
        self.epochs[number] = status.epoch
        return status.epoch > before

    def ended(self, number: int, found: Outcome) -> None:
        """Take the outcome of a job, and print it where there is no screen."""
        run = self.planned[number]
        wall = time.monotonic() - self.started_at[number]
        if found.failed:
            status = Status(run.label, run.seed, FAILED, reason=found.failed)
            save_reasons([found], [self.jobs[number]])
        elif found.busy:
            status = Status(run.label, run.seed, WAITING, reason="another command trains it")
        else:
            done = Status(run.label, run.seed, DONE)
            status = status_of_folder(Path(found.result["folder"]), run.label) or done
            trained = found.result["seconds"]  # more than `wall` if the run was trained before
            is_first = len(self.seconds) < self.at_a_time  # its process has also compiled kernels, perhaps
            self.seconds[number] = trained if trained and is_first else max(wall, trained)
        self.statuses[number] = status
        if not self.is_live:
            text = outcome(status, None if number in self.finished else wall)
            self.print(f"{row_and_seed(run.label, run.seed)} {text}")
            if len(self.planned) > 1:
                self.print(self.counts())

    def result(self, number: int) -> Mapping[str, Any] | None:
        """The result of a job whose process died after the run was finished, such as while a logger ended; or None."""
        (status,) = sweep_statuses([self.planned[number]], self.output)
        return result_of(status) if status.state == DONE and number not in self.finished else None

    def look(self) -> None:
        """Read the files of the running jobs, unless they were read a moment ago."""
        running = [number for number, it in enumerate(self.statuses) if it.state == RUNNING]
        if running and time.monotonic() - self.polled >= REFRESH:
            self.polled = time.monotonic()
            found = sweep_statuses([self.planned[number] for number in running], self.output)
            for number, status in zip(running, found, strict=True):
                if status.state == RUNNING == self.statuses[number].state:  # it may have ended meanwhile
                    self.statuses[number] = status

    def screen(self) -> RenderableType:
        """The table of all jobs. Called by a thread, so that training in this process does not hold it up."""
        from ner_experiments.launch.status_table import fitting_table

        self.look()
        return fitting_table(self.statuses, self.console, self.counts())

    # How far it is

    def counts(self) -> str:
        """`7 of 18 done, 2 running, 1 failed, about 3:40 left`."""
        states = [status.state for status in self.statuses]
        parts = [f"{states.count(DONE)} of {len(states)} done"]
        parts += [f"{states.count(it)} {it}" for it in (RUNNING, FAILED) if it in states]
        left = None if self.has_ended else self.left()
        return ", ".join(
            parts + ([f"about {format_duration(max(1.0, left))} left"] if left is not None else [])
        )

    def left(self) -> float | None:
        """Seconds until the last job ends, if each takes as long as those that have ended; None if nothing is known.

        Jobs of a row take equally long. That of another row is estimated by its size (weights of the encoder times
        epochs) from jobs on the same corpus. Before any has ended, the running ones count with their own estimates.
        """
        now, taken = time.monotonic(), dict(self.seconds)
        running = [number for number, it in enumerate(self.statuses) if it.state == RUNNING]
        if not taken:
            for number in running:
                if (bounds := self.statuses[number].left) is not None:
                    # not the time since its start, in which it may have compiled kernels
                    taken[number] = self.statuses[number].trained + fmean(bounds)
        free = [0.0] * self.at_a_time
        waiting = [number for number, it in enumerate(self.statuses) if it.state == WAITING]
        for number in [*running, *waiting]:
            if (seconds := self.expected(number, taken)) is None:
                return None
            if number in running:
                seconds = max(0.0, seconds - (now - self.started_at[number]))
                if (bounds := self.statuses[number].left) is not None:
                    seconds = min(max(seconds, bounds[0]), bounds[1])
            heapq.heapreplace(free, free[0] + seconds)
        return max(free)

    def expected(self, number: int, taken: dict[int, float]) -> float | None:
        """The seconds that a job takes in all, given those of others by their numbers; 0 if its run was finished."""
        if number in self.finished:
            return 0.0
        row = self.planned[number].label
        if of_row := [seconds for other, seconds in taken.items() if self.planned[other].label == row]:
            return fmean(of_row)
        alike = [other for other in taken if self.corpora[other] == self.corpora[number]]
        whole = sum(self.sizes[other] for other in alike)
        return self.sizes[number] * sum(taken[other] for other in alike) / whole if whole else None


def save_reasons(outcomes: Sequence[Outcome], jobs: Sequence[Job]) -> None:
    """Write why jobs failed that could not write it themselves, so that `watch` says the same.

    Such a job was refused before anything was read, or its worker was killed.
    """
    if not any(found.failed for found in outcomes):
        return
    with suppress(ValueError, OSError):  # such as a full disk; the summary has the reasons as well
        planned = [planned_run("", job.cfg) for job in jobs]
        statuses = sweep_statuses(planned, Path(jobs[0].cfg.output_dir))
        for found, job, status in zip(outcomes, jobs, statuses, strict=True):
            if found.failed and status.state in (WAITING, INTERRUPTED):
                path = Path(status.folder) / "error.txt" if status.folder else unread_error(job.cfg)
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic_write(path) as part:
                    part.write_text(f"{found.failed}\n", encoding="utf-8")


def finished_results(jobs: Sequence[Job]) -> list[Outcome]:
    """The outcomes of jobs by the files of their runs; empty unless all are finished."""
    planned = [planned_run("", job.cfg) for job in jobs]
    statuses = sweep_statuses(planned, Path(jobs[0].cfg.output_dir))
    if {status.state for status in statuses} != {DONE}:
        return []
    return [Outcome(job.overrides, result_of(status)) for job, status in zip(jobs, statuses, strict=True)]


def result_of(status: Status) -> dict[str, Any]:
    """The result of `worker.run` for a finished run."""
    return {"folder": status.folder, **read_metrics(Path(status.folder) / METRICS_FILE)}


class Lines(io.TextIOBase):
    """A stream that passes on whole lines."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self.show, self.rest = show, ""

    def write(self, text: str) -> int:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            self.show(line)
        return len(text)


class Tail:
    """The lines that a process has written to a file since the last read; whole lines alone.

    Not a pipe: a process that outlives this one to write its checkpoint could no longer print.
    """

    def __init__(self, path: Path, show: Callable[[str], None]) -> None:
        self.path, self.show, self.position, self.rest = path, show, 0, b""

    def read(self) -> None:
        with self.path.open("rb") as file:
            file.seek(self.position)
            new = file.read()
        self.position += len(new)
        *lines, self.rest = (self.rest + new).split(b"\n")
        for line in lines:
            self.show(line.decode(errors="replace"))


def outcome(status: Status, seconds: float | None) -> str:
    """`done: dev 86.99 in epoch 4, 1:58`, or why it is not. seconds: None if the run was finished before."""
    if status.state != DONE:
        return f"{status.state}: {status.reason}"
    score = "" if status.dev is None else f": dev {percent(status.dev)} in epoch {status.best_epoch}"
    return f"finished before{score}" if seconds is None else f"done{score}, {format_duration(seconds)}"


def sizes(configs: Sequence[Any]) -> list[float]:
    """Numbers that are larger for larger models, and equal for the same one."""
    if all(cfg.model == configs[0].model for cfg in configs):
        return [1.0] * len(configs)
    from ner_experiments.build import encoder_size  # slow to import: PyTorch

    return [float(encoder_size(cfg)) + OVERHEAD for cfg in configs]
