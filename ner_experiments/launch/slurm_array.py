"""An array job of SLURM: waits for its tasks, says what they do, and tells results from failures.

Which runs of a sweep wait in SLURM's queue: as squeue says, where there is one.
"""

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
from typing import Any

from ner_experiments.launch.summary import apart
from ner_experiments.runs.status import Wanted
from ner_experiments.tables import experiments

Outcome = dict[str, Any] | str
"""What a task returned, or in one line why it did not."""

ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED"),
    *("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
}
"""SLURM's states of jobs that will not run again; what is put back into its queue is PENDING."""

FORGOTTEN = ("FORGOTTEN", "")
"""Not SLURM's: of a job that it does not know any more, as minutes after its end."""

TASKS = "_tasks.txt"
"""Behind the job's id: a line for each task, its id and its overrides, quoted as a shell reads them."""

OUTCOME = "_outcome.json"
"""A process of a task leaves this behind the task's id and its own number among them: 12_0_0_outcome.json."""

LATE = 15.0
"""Seconds that a result may need, after its job has ended, to be seen through a network file system."""


class SlurmArray:
    """The tasks of one array job by their ids, 12_0 12_1 ..., each with its job's overrides.

    A sweep of one job is no array: its id is 12. What they leave lies in `folder`. With several
    processes per task the first one's result is the task's.
    """

    def __init__(self, folder: Path, tasks: Mapping[str, Sequence[str]]) -> None:
        self.folder = folder
        self.id = next(iter(tasks)).partition("_")[0]
        own = apart(list(tasks.values()))
        self.tasks = {task: f": {words}" if words else "" for task, words in zip(tasks, own, strict=True)}
        self.listed = folder / f"{self.id}{TASKS}"
        lines = [f"{task}  {shlex.join(overrides)}\n" for task, overrides in tasks.items()]
        self.listed.write_text("".join(lines), encoding="utf-8")
        self.outcomes: dict[str, Outcome] = {}
        self.states: dict[str, str] = {}
        self.ended_at: dict[str, float] = {}
        self.answers = True

    def wait(self) -> list[Outcome]:
        """In the order of the tasks. A task that fails, or is cancelled, stops no other."""
        started = time.monotonic()
        say(f"job {self.id}, tasks: {len(self.tasks)}, listed in {self.listed}")
        say(f"it goes on if this command is ended; `scancel {self.id}` ends it")
        while True:
            self.look()
            if len(self.outcomes) == len(self.tasks):
                return [self.outcomes[task] for task in self.tasks]
            time.sleep(min(15.0, 1.0 + (time.monotonic() - started) / 30))

    def look(self) -> None:
        """Asks SLURM once, for all tasks. While it does not answer only results count."""
        queue = squeue(self.id)
        if (queue is not None) != self.answers:
            self.answers = queue is not None
            say("SLURM answers again" if self.answers else "SLURM does not answer; waiting")
        files = set(os.listdir(self.folder))  # unlike a look for one file, not from a network cache
        for task, words in self.tasks.items():
            if task in self.outcomes:
                continue
            state, node = ("UNKNOWN", "") if queue is None else queue.get(task, FORGOTTEN)
            if (outcome := self.outcome(task, state, files)) is None:
                self.follow(task, state, node)
                continue
            self.outcomes[task] = outcome
            why = f" | {outcome}" if isinstance(outcome, str) else ""
            say(f"{task} {verb(outcome)} ({len(self.outcomes)} of {len(self.tasks)}){words}{why}")

    def outcome(self, task: str, state: str, files: set[str]) -> Outcome | None:
        """None while the task may still succeed: one that failed may be back in the queue a moment later."""
        ended = state in ENDED or state == FORGOTTEN[0]
        for name in sorted(files):
            if not (name.startswith(f"{task}_") and name.endswith(OUTCOME)):
                continue
            content = json.loads((self.folder / name).read_text(encoding="utf-8"))
            if "result" in content and name == f"{task}_0{OUTCOME}":
                return dict(content["result"])
            if "failed" in content and ended:
                return f"{content['failed']} (log: {self.log(name)})"
        if not ended:
            self.ended_at.pop(task, None)
            return None
        if time.monotonic() - self.ended_at.setdefault(task, time.monotonic()) < LATE:
            return None
        log = self.log(f"{task}_0{OUTCOME}")
        return f"SLURM has it as {sacct(task) or state}, without a result (log: {log})"

    def log(self, outcome: str) -> Path:
        return self.folder / outcome.replace(OUTCOME, "_log.out")

    def follow(self, task: str, state: str, node: str) -> None:
        before = self.states.get(task)
        if state == "RUNNING" != before:
            say(f"{task} runs on {node}{self.tasks[task]}")
        elif state == "PENDING" and before not in (None, "PENDING"):
            say(f"{task} is back in the queue{self.tasks[task]}")
        if state != "UNKNOWN":
            self.states[task] = state


def say(line: str) -> None:
    print(f"slurm: {line}", flush=True)


def verb(outcome: Outcome) -> str:
    if isinstance(outcome, str):
        return "has failed"
    return "has left its run to another process" if "busy" in outcome else "has finished"


def squeue(job: str) -> dict[str, tuple[str, str]] | None:
    """State and nodes of each task that SLURM still knows; None while it does not answer."""
    command = ["squeue", f"--jobs={job}", "--array", "--states=all", "--noheader", "--format=%i|%T|%N"]
    asked = subprocess.run(command, capture_output=True, text=True)
    if asked.returncode and "Invalid job id" not in asked.stderr:
        return None
    rows = [line.split("|") for line in asked.stdout.splitlines()]
    return {task: (state, nodes) for task, state, nodes in rows}


def sacct(task: str) -> str:
    """The state as the accounting has it, such as "CANCELLED by 1000"; empty where there is none."""
    command = ["sacct", f"--jobs={task}", "--allocations", "--noheader", "--parsable2", "--format=State"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return asked.stdout.partition("\n")[0].strip()


PAUSE = 15.0
"""Seconds before SLURM is asked again, for whose answers all users of a cluster wait."""


class Queue:
    """Of the array jobs that are listed in a folder, as `SlurmArray` lists them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = -PAUSE
        self.pending: dict[tuple[str, int], str] = {}
        self.forgotten: set[Path] = set()

    def waiting(self, wanted: Iterable[Wanted]) -> dict[Wanted, str]:
        """The task of each run that has one in the queue."""
        if time.monotonic() - self.asked >= PAUSE:
            self.asked = time.monotonic()
            self.pending = self.ask() if shutil.which("squeue") else {}
        found = {run: self.pending.get((run.experiment, run.seed)) for run in wanted}
        return {run: task for run, task in found.items() if task is not None}

    def ask(self) -> dict[tuple[str, int], str]:
        """For each array job, until SLURM has forgotten it."""
        pending = {}
        for path in sorted({*self.folder.glob(f"*{TASKS}")} - self.forgotten):
            states = squeue(path.name.removesuffix(TASKS))
            if states is None:  # it does not answer
                continue
            if not states:
                self.forgotten.add(path)
            for line in path.read_text(encoding="utf-8").splitlines():
                task, *overrides = shlex.split(line)
                if states.get(task, ("", ""))[0] == "PENDING":
                    pending[run_of(tuple(overrides))] = task
        return pending


@lru_cache(maxsize=4096)
def run_of(overrides: tuple[str, ...]) -> tuple[str, int]:
    cfg = experiments.compose(overrides, "squeue")
    run = Wanted.of("", cfg, cfg.seed)
    return run.experiment, run.seed
