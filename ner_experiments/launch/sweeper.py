"""`-m`: runs every job of a sweep, or what a published table still lacks, and prints one table.

Hydra imports this file at every start, so what is slow to import is imported where it is used.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.errors import OverrideParseException
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from ner_experiments.config.overrides import SWEEP_SETTINGS, is_for_hydra, split
from ner_experiments.config.row_settings import as_value
from ner_experiments.launch import summary
from ner_experiments.launch.worker import busy_folder
from ner_experiments.tables import spec
from ner_experiments.tables.experiments import experiments, unfinished
from ner_experiments.tables.spec import Table
from ner_experiments.utils import locks


@dataclass
class TableSweeperConfig:
    """`table` is a published one, whose unfinished runs are the jobs; no `seeds`: its own.

    `table=NAME seeds=[1,2] ...` on the command line sets all three, see `table_overrides`.
    """

    _target_: str = "hydra_plugins.ner_experiments_plugins.TableSweeper"
    table: str = ""
    seeds: list[int] = field(default_factory=list)
    overrides: list[str] = field(default_factory=list)


class TableSweeper(Sweeper):
    """Launches the cartesian product of the overrides' values, or the unfinished runs of a published table.

    A failed job stops no other. The command line was checked before Hydra was started, see commands/train.py.
    """

    def __init__(self, table: str, seeds: Sequence[int], overrides: Sequence[str]) -> None:
        self.table = table
        self.seeds = list(seeds)
        self.extra_overrides = list(overrides)

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Sequence[JobReturn]:
        results = self.launch_table() if self.table else self.launch(split(arguments))
        failed = summary.show(results) if results else 0
        if self.table:
            self.show_table()
        if failed:
            sys.exit(1)
        return results

    def launch_table(self) -> Sequence[JobReturn]:
        jobs, finished = unfinished(spec.load(self.table), self.extra_overrides, self.seeds)
        print(f"{self.table}: {len(jobs)} runs to do, {finished} are finished", flush=True)
        return self.launch(jobs) if jobs else []

    def launch(self, jobs: list[list[str]]) -> Sequence[JobReturn]:
        """Runs all jobs; those that another command is working on are tried again when it has left them."""
        assert self.launcher is not None
        results = list(self.launcher.launch(jobs, initial_job_idx=0))
        while elsewhere := {
            number: folder for number, job in enumerate(results) if (folder := busy_folder(job))
        }:
            print(f"{len(elsewhere)} runs are being made by another command; waiting for them", flush=True)
            free = locks.wait_for_one(list(map(Path, elsewhere.values())))
            again = [number for number, folder in elsewhere.items() if Path(folder) in free]
            returned = self.launcher.launch([jobs[number] for number in again], initial_job_idx=len(jobs))
            for number, job in zip(again, returned, strict=True):
                results[number] = job
        return results

    def show_table(self) -> None:
        from ner_experiments.tables import render, scores  # slow to import: SciPy

        print(f"\n{render.markdown(scores.collect(spec.load(self.table), self.extra_overrides))}")


def table_overrides(overrides: Sequence[str], *, sweep: bool) -> list[str] | None:
    """`table=NAME seeds=[1,2] ...` as settings of `TableSweeper`; None where no table is named.

    Hydra itself would check the other overrides against conf/ alone, without those of the rows. Composes every
    row. ValueError for an invalid table, row or override.
    """
    if (request := table_request(overrides)) is None:
        return None
    if not sweep:
        name = f"table={request.table.name}"
        raise ValueError(f"{name} is a sweep: add -m, as in `python run.py -m {name}`")
    experiments(request.table, request.extra_overrides)
    return [
        f"hydra.sweeper.table={request.table.name}",
        *([f"hydra.sweeper.seeds={request.seeds}"] if request.seeds else []),
        f"hydra.sweeper.overrides=[{','.join(map(as_value, request.extra_overrides))}]",
        *request.hydra_overrides,
    ]


@dataclass(frozen=True)
class TableRequest:
    """`table=NAME seeds=[1,2] ...` of a command line. seeds: empty for the table's own."""

    table: Table
    seeds: list[int]
    extra_overrides: list[str]
    hydra_overrides: list[str]


def table_request(overrides: Sequence[str]) -> TableRequest | None:
    """The table that a command line asks for; None where it names none.

    ValueError for an unknown table, and for seeds and overrides that a table cannot have.
    """
    own = {key: item for item in overrides for key in SWEEP_SETTINGS if item.startswith(f"{key}=")}
    if "table" not in own:
        if own:
            raise ValueError(f"{own['seeds']} goes with table=NAME; else write seed=1,2,3")
        return None
    others = parse([item for item in overrides if item not in own.values()])
    for item in others:
        if item.key_or_group == "seed":
            raise ValueError(f"{item.input_line}: a table takes its seeds as a list: seeds=[1,2,3]")
        if item.is_sweep_override():
            raise ValueError(f"{item.input_line}: a table's rows are the sweep; here a setting has one value")
    return TableRequest(
        spec.load(own["table"].partition("=")[2]),
        parse_seeds(own["seeds"]) if "seeds" in own else [],
        [str(item.input_line) for item in others if not is_for_hydra(item)],
        [str(item.input_line) for item in others if is_for_hydra(item)],
    )


def parse(overrides: Sequence[str]) -> list[Override]:
    """ValueError for a string that does not follow the grammar of overrides."""
    try:
        return OverridesParser.create().parse_overrides(list(overrides))
    except OverrideParseException as error:
        raise ValueError(f"{error.override}: {error.message.splitlines()[0]}") from error


def parse_seeds(override: str) -> list[int]:
    (item,) = parse([override])
    seeds: Any = item.value()
    if not (spec.list_of(spec.is_count)(seeds) and 0 < len(seeds) == len(set(seeds))):
        raise ValueError(
            f"{override}: seeds must be a list of different whole numbers, such as seeds=[1,2,3]"
        )
    return [*seeds]
