"""Which runs of a sweep wait in SLURM's queue: as squeue says, where there is one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from ner_experiments import table_runs
from ner_experiments.slurm_array import squeue
from ner_experiments.watch import Wanted

TASKS = "_tasks.txt"
PAUSE = 15.0
"""Seconds between two questions to SLURM, whose answer all users of a cluster wait for."""


class Queue:
    """Of the array jobs that are listed in a folder, as `SlurmArray` lists them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = -PAUSE
        self.pending: dict[tuple[str, int], str] = {}

    def waiting(self, wanted: Iterable[Wanted]) -> dict[Wanted, str]:
        """The task of each run that has one in the queue."""
        if time.monotonic() - self.asked >= PAUSE:
            self.asked = time.monotonic()
            self.pending = self.ask() if shutil.which("squeue") else {}
        found = {run: self.pending.get((run.experiment, run.seed)) for run in wanted}
        return {run: task for run, task in found.items() if task is not None}

    def ask(self) -> dict[tuple[str, int], str]:
        pending = {}
        for path in sorted(self.folder.glob(f"*{TASKS}")):
            states = squeue(path.name.removesuffix(TASKS)) or {}
            for line in path.read_text(encoding="utf-8").splitlines():
                task, _, overrides = line.partition("  ")
                if states.get(task, ("", ""))[0] == "PENDING":
                    pending[run_of(overrides)] = task
        return pending


@lru_cache(maxsize=4096)
def run_of(overrides: str) -> tuple[str, int]:
    """Overrides hold no spaces outside quotes; those of a job that has some is not told apart."""
    cfg = table_runs.compose(overrides.split(" "), "squeue")
    run = Wanted.of("", cfg, cfg.seed)
    return run.experiment, run.seed
