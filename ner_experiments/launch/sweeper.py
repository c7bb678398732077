"""`-m`: composes every job before the first starts, runs them all, and prints one table. A Hydra sweeper."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.utils import JobReturn


@dataclass
class TableSweeperConfig:
    """`table` is a published one, whose unfinished runs are the jobs; no `seeds`: its own.

    `table=NAME seeds=[1,2] ...` on the command line sets all three, see ner_experiments/commands/table.py.
    """

    _target_: str = "hydra_plugins.ner_experiments_plugins.TableSweeper"
    table: str = ""
    seeds: list[int] = field(default_factory=list)
    overrides: list[str] = field(default_factory=list)


class TableSweeper(BasicSweeper):
    """The cartesian product of the overrides' values, as Hydra's own sweeper, or what a table still lacks.

    A failed job stops no other.
    """

    def __init__(self, table: str, seeds: Sequence[int], overrides: Sequence[str]) -> None:
        super().__init__(max_batch_size=None)
        self.table = table
        self.seeds = list(seeds)
        self.further = list(overrides)

    def sweep(self, arguments: list[str]) -> Sequence[JobReturn]:
        from ner_experiments.launch import summary

        results = self.of_table() if self.table else self.launch(self.product(arguments))
        failed = summary.show(results) if results else 0
        if self.table:
            self.show_table()
        if failed:
            sys.exit(1)
        return results

    def product(self, arguments: list[str]) -> list[list[str]]:
        from ner_experiments.config import compose

        jobs = compose.split(arguments)
        self.validate_batch_is_legal(jobs)
        return jobs

    def of_table(self) -> Sequence[JobReturn]:
        from ner_experiments.tables import experiments, spec

        jobs, finished = experiments.unfinished(spec.load(self.table), self.further, self.seeds)
        print(f"{self.table}: {len(jobs)} runs to do, {finished} are finished", flush=True)
        return self.launch(jobs) if jobs else []

    def launch(self, jobs: list[list[str]]) -> Sequence[JobReturn]:
        """All jobs; comes back to those that another command is working on, when that has done with one."""
        from ner_experiments.launch.worker import busy
        from ner_experiments.utils import locks

        assert self.launcher is not None
        results = list(self.launcher.launch(jobs, initial_job_idx=0))
        while elsewhere := {number: folder for number, job in enumerate(results) if (folder := busy(job))}:
            print(f"{len(elsewhere)} runs are being made by another command; waiting for them", flush=True)
            free = locks.wait_for_one(list(map(Path, elsewhere.values())))
            again = [number for number, folder in elsewhere.items() if Path(folder) in free]
            returned = self.launcher.launch([jobs[number] for number in again], initial_job_idx=len(jobs))
            for number, job in zip(again, returned, strict=True):
                results[number] = job
        return results

    def show_table(self) -> None:
        from ner_experiments.tables import render, scores, spec

        print(f"\n{render.markdown(scores.collect(spec.load(self.table), self.further))}")
