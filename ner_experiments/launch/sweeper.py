"""`-m`: runs every job of a sweep, or what a table still lacks, records the sweep, and prints its table and verdict.

Hydra imports this file at every start, so what is slow to import is imported where it is used.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, RangeSweep
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import CompactHydraException, InstantiationException
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from ner_experiments.analysis.sequential import levels
from ner_experiments.config import compose
from ner_experiments.config.choices import parse_with
from ner_experiments.config.overrides import SWEEP_SETTINGS, is_for_hydra, split
from ner_experiments.config.row_settings import as_value
from ner_experiments.experiment_data import unread_error
from ner_experiments.launch import summary
from ner_experiments.launch.checks import check_jobs
from ner_experiments.launch.worker import busy_folder, reason
from ner_experiments.runs.status import WAITING, planned_run, sweep_statuses
from ner_experiments.tables import sweeps
from ner_experiments.tables.experiments import as_override, experiments, output_dir, unfinished
from ner_experiments.tables.spec import Table
from ner_experiments.utils import locks
from ner_experiments.utils.checks import are_seeds, is_count, list_of
from ner_experiments.utils.files import atomic_write

if TYPE_CHECKING:
    from ner_experiments.tables.scores import Page


@dataclass
class TableSweeperConfig:
    """The command line as the sweeper gets it, see `sweeper_overrides`.

    table: a published table or a recorded sweep, whose unfinished runs are the jobs. seeds: empty for its own.
    overrides: those of all jobs of a table. name: name to record a sweep under; empty to name it after what varies.
    looks: the numbers of seeds at which the sweep decides whether to add more; empty for a fixed number.
    register: whether to register the sweep before it starts; primary: "A - B" for the rows whose difference is tested.
    """

    _target_: str = "hydra_plugins.ner_experiments_plugins.TableSweeper"
    table: str = ""
    seeds: list[int] = field(default_factory=list)
    overrides: list[str] = field(default_factory=list)
    name: str = ""
    looks: list[int] = field(default_factory=list)
    register: bool = False
    primary: str = ""


class TableSweeper(Sweeper):
    """Launches the cartesian product of the overrides' values, or the unfinished runs of a table.

    A failed job stops no other. The command line was checked before Hydra was started, see commands/train.py.
    """

    def __init__(
        self,
        table: str = "",
        seeds: Sequence[int] = (),
        overrides: Sequence[str] = (),
        name: str = "",
        looks: Sequence[int] = (),
        register: bool = False,
        primary: str = "",
    ) -> None:
        self.table = table
        self.seeds = list(seeds)
        self.extra_overrides = list(overrides)
        self.name = name
        self.looks = tuple(looks)
        self.register, self.primary = register, primary

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.hydra_context, self.config = hydra_context, config
        try:
            self.launcher = Plugins.instance().instantiate_launcher(
                hydra_context=hydra_context, task_function=task_function, config=config
            )
        except InstantiationException as error:
            exit_refused(error.__cause__ or error)

    def sweep(self, arguments: list[str]) -> Sequence[JobReturn]:
        """Run the sweep and return its jobs; a user error ends the process in one line."""
        try:
            return self.launch_and_show(arguments)
        except (ValueError, OSError) as error:
            exit_refused(error)

    def launch_and_show(self, arguments: list[str]) -> Sequence[JobReturn]:
        from ner_experiments.tables import looks, scores  # slow to import: SciPy

        assert self.config is not None
        if self.table:
            table = sweeps.find(self.table, output_dir(self.extra_overrides))
            extra_overrides, jobs = self.extra_overrides, None
        else:
            jobs = split(arguments)
            extra_overrides = [item for item in arguments if sweeps.is_place(item)]
            table = sweeps.of_jobs(jobs, self.name, arguments, looks=self.looks)
            table = sweeps.named(table, Path(self.config.output_dir))
        self.registration = self.registered(table, extra_overrides)
        if jobs is not None:
            table = sweeps.record(table, Path(self.config.output_dir))
        table = sweeps.add_to_record(table, output_dir(extra_overrides), self.seeds, self.looks)
        if self.looks:
            results = self.launch_looks(replace(table, looks=self.looks), extra_overrides)
        elif jobs is None:
            results = self.launch_table(table)
        else:
            results = self.launch(jobs, self.names(table, jobs, extra_overrides))
        page = looks.at_looks(scores.collect(table, extra_overrides))
        failed = summary.show(results, finished=summary.finished_runs(page)) if results else 0
        self.show_table(page)
        if failed:
            sys.exit(1)
        return results

    def registered(self, table: Table, extra_overrides: Sequence[str]) -> str:
        """Hash of the registration of a sweep or table, which is written now if that is asked for; "" without one."""
        from ner_experiments.tables import sweep_registration  # slow to import: SciPy

        output = output_dir(extra_overrides)
        if self.register:
            seeds = self.seeds or table.seeds
            found = sweep_registration.register(table, extra_overrides, seeds, self.primary, output)
        elif (path := sweep_registration.place(table, extra_overrides, output)).exists():
            found = sweep_registration.read(path)
        else:
            return ""
        if self.looks:
            raise ValueError(f"sweep.looks: {found.path} has a fixed number of seeds")
        print(f"Registered: {found}", flush=True)
        return found.hash

    def names(
        self, table: Table, jobs: Sequence[Sequence[str]], extra_overrides: Sequence[str]
    ) -> list[list[str]]:
        """For each job, the overrides that say which sweep, row and registration it belongs to."""
        registration = [f"sweep.registration={as_value(self.registration)}"] if self.registration else []
        labels = sweeps.rows_of(table, jobs, extra_overrides)
        return [
            [f"sweep.name={table.name}", f"sweep.row={as_value(label)}", *registration] for label in labels
        ]

    def launch_table(self, table: Table) -> Sequence[JobReturn]:
        jobs, finished = unfinished(table, self.extra_overrides, self.seeds)
        print(f"{table.name}: {len(jobs)} runs to do, {finished} finished", flush=True)
        return self.launch(jobs, self.names(table, jobs, self.extra_overrides)) if jobs else []

    def launch_looks(self, table: Table, extra_overrides: Sequence[str]) -> Sequence[JobReturn]:
        """Add seeds, look by look, to the rows that are not decided; see tables/looks.py."""
        from ner_experiments.tables import looks, scores  # slow to import: NumPy

        by_label = {it.row.label: it.overrides for it in experiments(table, extra_overrides)}
        results: list[JobReturn] = []
        seen = 0
        while True:
            page = scores.collect(table, extra_overrides)
            decision = looks.decide(page, self.looks, table.seeds[0])
            seeds = {seed for row in page.results for seed in row.runs} & {*seeds_of_looks(table)}
            seeds |= {seed for missing in decision.to_run.values() for seed in missing}
            sweeps.add_to_record(table, output_dir(extra_overrides), seeds)
            for line in decision.history[seen:]:
                print(line, flush=True)
            seen = len(decision.history)
            jobs = jobs_of(decision.to_run, by_label)
            if not jobs:
                return results
            print(f"{table.name}: {len(jobs)} runs to do", flush=True)
            returned = self.launch(jobs, self.names(table, jobs, extra_overrides))
            results += returned
            if any(job.status.name != "COMPLETED" for job in returned):
                return results

    def launch(self, jobs: list[list[str]], names: Sequence[Sequence[str]]) -> Sequence[JobReturn]:
        """Run all jobs; those that another command is working on are tried again when it has left them.

        names: for each job the overrides that name it for loggers; its outcome is returned without them.
        """
        assert self.launcher is not None
        named = [[*job, *name] for job, name in zip(jobs, names, strict=True)]
        try:
            results = list(self.launcher.launch(named, initial_job_idx=0))
        except CompactHydraException as error:
            exit_refused(error)
        while elsewhere := {
            number: folder for number, job in enumerate(results) if (folder := busy_folder(job))
        }:
            runs = "1 run is" if len(elsewhere) == 1 else f"{len(elsewhere)} runs are"
            print(f"{runs} being trained by another command; waiting", flush=True)
            free = locks.wait_for_one(list(map(Path, elsewhere.values())))
            again = [number for number, folder in elsewhere.items() if Path(folder) in free]
            returned = self.launcher.launch([named[number] for number in again], initial_job_idx=len(jobs))
            for number, job in zip(again, returned, strict=True):
                results[number] = job
        for result, overrides in zip(results, jobs, strict=True):
            result.overrides = overrides
        save_reasons(results)
        return results

    def show_table(self, page: "Page") -> None:
        from ner_experiments.tables import render  # slow to import: SciPy

        table = page.table
        if self.table:
            print(f"\n{render.markdown(page)}")
        elif page.runs:
            if answer := render.answer(page):
                print(f"\n{answer}\n")
            place = next((item for item in table.overrides if item.startswith("output_dir=")), "")
            name = shlex.join([table.name, *([place] if place else [])])
            print(
                f"Recorded as {table.name}: `ner-experiments table {name}` shows this and where the runs are, "
                f"`ner-experiments report {name}` builds a report"
            )


def save_reasons(jobs: Sequence[JobReturn]) -> None:
    """Write why jobs failed that left no files, so that `watch` does not show them as waiting.

    Such a job was refused before anything was read, or its process was killed while it read the data.
    """
    if all(job.status is JobStatus.COMPLETED for job in jobs):
        return
    with suppress(ValueError, OSError):  # such as a full disk; the summary has the reasons as well
        configs = [compose.compose([*(job.overrides or ())]) for job in jobs]
        planned = [planned_run("", cfg) for cfg in configs]
        statuses = sweep_statuses(planned, Path(configs[0].output_dir), {})
        for job, cfg, status in zip(jobs, configs, statuses, strict=True):
            if job.status is not JobStatus.COMPLETED and status.state == WAITING:
                path = unread_error(cfg)
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic_write(path) as part:
                    part.write_text(f"{reason(job._return_value)}\n", encoding="utf-8")


def exit_refused(error: BaseException) -> NoReturn:
    """Print the error in one line, where Hydra would add how to see its traceback, and exit."""
    print(error, file=sys.stderr)
    sys.exit(1)


def seeds_of_looks(table: Table) -> range:
    """All seeds that the looks of a table may use."""
    return range(table.seeds[0], table.seeds[0] + table.looks[-1])


def jobs_of(to_run: Mapping[str, Sequence[int]], overrides: Mapping[str, Sequence[str]]) -> list[list[str]]:
    return [[*overrides[label], f"seed={seed}"] for label, seeds in to_run.items() for seed in seeds]


def sweeper_overrides(overrides: Sequence[str], *, sweep: bool) -> list[str] | None:
    """The command line with `table=`, `seeds=` and `sweep.*` as settings of `TableSweeper`; None if it has none.

    All overrides of a table become one setting: Hydra would check them against conf/ without those of the rows.
    Composes every row of a table, and every job of a sweep. ValueError for an invalid table, row, override or setting.
    """
    own, others = sweep_settings(overrides)
    if (request := table_request(overrides)) is not None:
        if not sweep:
            name = f"table={request.table.name}"
            raise ValueError(f"{name} requests a sweep: add -m, as in `python run.py -m {name}`")
        check_rows(request, overrides)
        return [
            f"hydra.sweeper.table={request.table.name}",
            *([f"hydra.sweeper.seeds={request.seeds}"] if request.seeds else []),
            *([f"hydra.sweeper.looks={request.looks}"] if request.looks else []),
            *registering(own),
            f"hydra.sweeper.overrides=[{','.join(map(as_value, request.extra_overrides))}]",
            *request.hydra_overrides,
        ]
    if not sweep:
        if own:
            raise ValueError(f"{next(iter(own.values()))} requires a sweep: add -m")
        return None
    if any(item.partition("=")[0] == "hydra/sweeper" for item in others):
        return None  # another sweeper, which has settings of its own
    items = [item for item in others if not is_for_hydra(parse([item])[0])]
    jobs = compose.jobs(items)
    check_jobs(jobs, overrides)
    name, looks = value(own, "sweep.name"), parse_looks(own.get("sweep.looks"), items)
    table = sweeps.of_jobs(jobs, name, items, looks)
    check_looks(table)
    sweeps.named(table, output_dir(items))
    return [
        *others,
        *([f"hydra.sweeper.name={name}"] if name else []),
        *([f"hydra.sweeper.looks={looks}"] if looks else []),
        *registering(own),
    ]


def registering(own: Mapping[str, str]) -> list[str]:
    """`sweep.register` and `sweep.primary` as settings of `TableSweeper`. ValueError for values they cannot have."""
    if "sweep.register" not in own:
        if "sweep.primary" in own:
            raise ValueError(f"{own['sweep.primary']} is registered: add sweep.register=true")
        return []
    if value(own, "sweep.register") not in ("true", "false"):
        raise ValueError(f"{own['sweep.register']}: sweep.register must be true or false")
    if "sweep.looks" in own and value(own, "sweep.register") == "true":
        raise ValueError(
            f"{own['sweep.register']}: a registration has a fixed number of seeds, and sweep.looks adds seeds"
        )
    primary = value(own, "sweep.primary")
    return [
        f"hydra.sweeper.register={value(own, 'sweep.register')}",
        *([f"hydra.sweeper.primary={as_value(primary)}"] if primary else []),
    ]


def check_looks(table: Table) -> None:
    """Raise ValueError if the looks of a table compare nothing, or need a seed that no job can have."""
    if not table.looks:
        return
    if sum(row.run is not None for row in table.rows) < 2:
        raise ValueError(
            f"{as_override('sweep.looks', table.looks)} compares rows, and "
            f"{table.name or 'this sweep'} has only one"
        )
    check_jobs([[f"seed={seeds_of_looks(table)[-1]}"]], (), files=False)


def check_rows(request: "TableRequest", overrides: Sequence[str]) -> None:
    """Raise ValueError for a value that a row cannot have, and if every row lacks files.

    If only some rows do, the others run, and a line on stderr says why these will fail.
    """
    rows = [[*each.overrides] for each in experiments(request.table, request.extra_overrides)]
    seed = [f"seed={max(request.seeds, default=0)}"]
    check_jobs([*rows, seed], overrides, files=False)
    missing = []
    for row in rows:
        try:
            check_jobs([row], overrides)
        except ValueError as error:
            missing.append(str(error))
    if missing and len(missing) == len(rows):
        raise ValueError(missing[0])
    if missing:
        print(f"{len(missing)} of {len(rows)} rows lack their files: {missing[0]}", file=sys.stderr)


@dataclass(frozen=True)
class TableRequest:
    """`table=NAME seeds=1,2 ...` of a command line. seeds: empty for the table's own. looks: empty for none."""

    table: Table
    seeds: list[int]
    looks: list[int]
    extra_overrides: list[str]
    hydra_overrides: list[str]


def table_request(overrides: Sequence[str]) -> TableRequest | None:
    """The table or recorded sweep that a command line requests, or None.

    ValueError for an unknown table, and for seeds and overrides that a table cannot have.
    """
    own, rest = sweep_settings(overrides)
    if "table" not in own:
        if "seeds" in own:
            raise ValueError(f"{own['seeds']} requires table=NAME; otherwise write seed=1,2,3")
        return None
    if "sweep.name" in own:
        raise ValueError(f"{own['sweep.name']}: a table already has a name")
    others = parse(rest)
    for item in others:
        if item.key_or_group == "seed":
            raise ValueError(f"{item.input_line}: a table takes its seeds as seeds=1,2,3")
        if item.is_sweep_override():
            raise ValueError(f"{item.input_line}: a table's rows are the sweep, so a setting takes one value")
    extra_overrides = [str(item.input_line) for item in others if not is_for_hydra(item)]
    if "sweep.looks" in own and "seeds" in own:
        raise ValueError(f"{own['seeds']}: {own['sweep.looks']} sets the number of seeds")
    table = sweeps.find(value(own, "table"), output_dir(extra_overrides))
    seeds = parse_seeds(own["seeds"]) if "seeds" in own else []
    looks = parse_looks(own.get("sweep.looks"))
    wanted = replace(table, looks=tuple(looks), seeds=tuple(sorted({*table.seeds, *seeds})))
    sweeps.refuse_changed_looks(wanted, table)
    check_looks(wanted)
    return TableRequest(
        table,
        seeds,
        looks,
        extra_overrides,
        [str(item.input_line) for item in others if is_for_hydra(item)],
    )


def sweep_settings(overrides: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The overrides that are for the sweeper, by their keys, and the others."""
    own = {key: item for item in overrides for key in SWEEP_SETTINGS if item.startswith(f"{key}=")}
    return own, [item for item in overrides if item not in own.values()]


def value(own: Mapping[str, str], key: str) -> str:
    return own.get(key, "").partition("=")[2]


def parse(overrides: Sequence[str]) -> list[Override]:
    """The overrides as Hydra parses them. ValueError for one that does not follow the grammar."""
    parser = OverridesParser.create()
    return [parse_with(parser, item) for item in overrides]


def parse_seeds(override: str) -> list[int]:
    seeds = values_of(override)
    if not are_seeds(seeds):
        raise ValueError(
            f"{override}: expected distinct integers from 0, such as seeds=1,2,3, or seeds=[1] for one seed"
        )
    return [*seeds]


def values_of(override: str) -> Any:
    """The values of `seeds=1,2,3`, which can also be written `seeds=[1,2,3]` or `seeds=range(1,4)`.

    Anything else is returned as it is, also a single value: `seeds=3` could mean three seeds.
    """
    (item,) = parse([override])
    value = item.value()
    return [*item.sweep_iterator(lambda it: it)] if isinstance(value, ChoiceSweep | RangeSweep) else value


def parse_looks(override: str | None, others: Sequence[str] = ()) -> list[int]:
    """The looks; empty without an override. ValueError if they are not ascending, or if the seed varies as well."""
    if override is None:
        return []
    looks = values_of(override)
    if not list_of(is_count)(looks):
        raise ValueError(
            f"{override}: expected numbers of seeds, such as sweep.looks=3,5,8, or sweep.looks=[3] for one look"
        )
    levels(looks, alpha=0.05)
    if seed := next((item for item in others if item.startswith("seed=") and "," in item), None):
        raise ValueError(f"{seed}: {override} sets the number of seeds")
    return [*looks]
