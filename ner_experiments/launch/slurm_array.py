"""The tasks of SLURM array jobs: waiting for them, reporting their states, and finding the pending ones."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ner_experiments.config.compose import compose
from ner_experiments.config.row_settings import differing
from ner_experiments.launch.worker import Outcome
from ner_experiments.runs.status import PlannedRun
from ner_experiments.runs.store import experiment_key

ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED"),
    *("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
}
"""States of jobs that will not run again; a requeued job is PENDING."""

FORGOTTEN = ("FORGOTTEN", "")
"""State of a job that SLURM no longer lists, some minutes after its end. SLURM itself has no such state."""

TASKS = "_tasks.txt"
"""Suffix, after the job's id, of a file with a line per task: its id and its overrides, quoted for a shell."""

OUTCOME = "_outcome.json"
"""Suffix, after the ids of task and process, of the file that a process writes: 12_0_0_outcome.json."""

LATE = 15.0
"""Seconds that a network file system may take to show the result of a job that has ended."""


class SlurmArray:
    """The tasks of an array job by id (12_0, 12_1, ...), each with the overrides of its job.

    A sweep of one job is no array; its id is 12. The outcomes are files in `folder`; with several processes per
    task, the first one's result is that of the task.
    """

    def __init__(self, folder: Path, tasks: Mapping[str, Sequence[str]]) -> None:
        self.folder, self.overrides = folder, tasks
        self.id = next(iter(tasks)).partition("_")[0]
        own = [" ".join(items) for items in differing(list(tasks.values()))]
        self.tasks = {task: f": {words}" if words else "" for task, words in zip(tasks, own, strict=True)}
        self.listed = folder / f"{self.id}{TASKS}"
        lines = [f"{task}  {shlex.join(overrides)}\n" for task, overrides in tasks.items()]
        self.listed.write_text("".join(lines), encoding="utf-8")
        self.outcomes: dict[str, Outcome] = {}
        self.states: dict[str, str] = {}
        self.ended_at: dict[str, float] = {}
        self.answers = True

    def wait(self) -> list[Outcome]:
        """Block until all tasks have ended, and return their outcomes in order. A task that fails stops no other."""
        started = time.monotonic()
        say(f"job {self.id}, tasks: {len(self.tasks)}, listed in {self.listed}")
        say(f"the job keeps running if this command exits; cancel it with `scancel {self.id}`")
        while True:
            self.poll()
            if len(self.outcomes) == len(self.tasks):
                return [self.outcomes[task] for task in self.tasks]
            time.sleep(min(15.0, 1.0 + (time.monotonic() - started) / 30))

    def poll(self) -> None:
        """Ask SLURM once for the states of all tasks. While it does not answer, only files with outcomes are read."""
        queue = squeue(self.id)
        if (queue is not None) != self.answers:
            self.answers = queue is not None
            say("SLURM answers again" if self.answers else "SLURM does not answer; waiting")
        files = set(os.listdir(self.folder))  # listing a folder bypasses the cache of a network file system
        for task, words in self.tasks.items():
            if task in self.outcomes:
                continue
            state, node = ("UNKNOWN", "") if queue is None else queue.get(task, FORGOTTEN)
            if (outcome := self.outcome(task, state, files)) is None:
                self.report_change(task, state, node)
                continue
            self.outcomes[task] = outcome
            why = f" | {outcome.failed}" if outcome.failed else ""
            say(f"{task} {verb(outcome)} ({len(self.outcomes)} of {len(self.tasks)}){words}{why}")

    def outcome(self, task: str, state: str, files: set[str]) -> Outcome | None:
        """The outcome of a task; None while it may still succeed: a failed task may be requeued at once."""
        ended = state in ENDED or state == FORGOTTEN[0]
        for name in sorted(files):
            if not (name.startswith(f"{task}_") and name.endswith(OUTCOME)):
                continue
            content = json.loads((self.folder / name).read_text(encoding="utf-8"))
            if "result" in content and name == f"{task}_0{OUTCOME}":
                return Outcome(self.overrides[task], result=content["result"])
            if "failed" in content and ended:
                return Outcome(self.overrides[task], failed=f"{content['failed']} (log: {self.log(name)})")
        if not ended:
            self.ended_at.pop(task, None)
            return None
        if time.monotonic() - self.ended_at.setdefault(task, time.monotonic()) < LATE:
            return None
        log = self.log(f"{task}_0{OUTCOME}")
        why = f"SLURM reports {sacct(task) or state}; no result was written (log: {log})"
        return Outcome(self.overrides[task], failed=why)

    def log(self, outcome: str) -> Path:
        return self.folder / outcome.replace(OUTCOME, "_log.out")

    def report_change(self, task: str, state: str, node: str) -> None:
        before = self.states.get(task)
        if state == "RUNNING" != before:
            say(f"{task} is running on {node}{self.tasks[task]}")
        elif state == "PENDING" and before not in (None, "PENDING"):
            say(f"{task} is back in the queue{self.tasks[task]}")
        if state != "UNKNOWN":
            self.states[task] = state


def say(line: str) -> None:
    print(f"slurm: {line}", flush=True)


def verb(outcome: Outcome) -> str:
    if outcome.failed:
        return "has failed"
    return "has left its run to another process" if outcome.busy else "has finished"


def squeue(job: str) -> dict[str, tuple[str, str]] | None:
    """State and nodes of each task that SLURM still knows; None if it does not answer."""
    command = ["squeue", f"--jobs={job}", "--array", "--states=all", "--noheader", "--format=%i|%T|%N"]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode and "Invalid job id" not in answer.stderr:
        return None
    rows = [line.split("|") for line in answer.stdout.splitlines()]
    return {task: (state, nodes) for task, state, nodes in rows}


def sacct(task: str) -> str:
    """The state in SLURM's accounting, such as "CANCELLED by 1000"; empty without accounting."""
    command = ["sacct", f"--jobs={task}", "--allocations", "--noheader", "--parsable2", "--format=State"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return answer.stdout.partition("\n")[0].strip()


QUEUE_SECONDS = 15.0
"""Seconds between two calls of squeue, which all users of a cluster share."""


class Queue:
    """The pending tasks of the array jobs that `SlurmArray` has listed in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked_at = -QUEUE_SECONDS
        self.pending: dict[tuple[str, int], str] = {}
        self.forgotten: set[Path] = set()

    def waiting(self, planned: Iterable[PlannedRun]) -> dict[PlannedRun, str]:
        """The pending task of each run that has one."""
        if time.monotonic() - self.asked_at >= QUEUE_SECONDS:
            self.asked_at = time.monotonic()
            self.pending = self.ask() if shutil.which("squeue") else {}
        tasks = {run: self.pending.get((run.experiment, run.seed)) for run in planned}
        return {run: task for run, task in tasks.items() if task is not None}

    def ask(self) -> dict[tuple[str, int], str]:
        """The pending tasks, by experiment and seed, of all array jobs that SLURM has not forgotten."""
        pending = {}
        for path in sorted({*self.folder.glob(f"*{TASKS}")} - self.forgotten):
            states = squeue(path.name.removesuffix(TASKS))
            if states is None:  # SLURM does not answer
                continue
            if not states:
                self.forgotten.add(path)
            for line in path.read_text(encoding="utf-8").splitlines():
                task, *overrides = shlex.split(line)
                if states.get(task, ("", ""))[0] == "PENDING":
                    pending[open_run(tuple(overrides))] = task
        return pending


@lru_cache(maxsize=4096)
def open_run(overrides: tuple[str, ...]) -> tuple[str, int]:
    cfg = compose(overrides, "squeue")
    return experiment_key(cfg), cfg.seed
