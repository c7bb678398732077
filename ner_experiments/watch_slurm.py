"""Which runs of a sweep wait in SLURM's queue: as squeue says, where there is one."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from ner_experiments import table_runs
from ner_experiments.slurm_array import TASKS, squeue
from ner_experiments.watch import Wanted

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
    cfg = table_runs.compose(overrides, "squeue")
    run = Wanted.of("", cfg, cfg.seed)
    return run.experiment, run.seed
