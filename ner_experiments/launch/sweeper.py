"""`-m`: runs every job of a sweep, or what a table still lacks, records the sweep, and prints its table and verdict."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import ChoiceSweep, RangeSweep
from omegaconf import OmegaConf

from ner_experiments.analysis.sequential import levels
from ner_experiments.config import compose, launch_settings
from ner_experiments.config.choices import parse, parse_one
from ner_experiments.config.job import CommandLine, Job
from ner_experiments.config.overrides import unless_all_have
from ner_experiments.config.row_settings import as_override
from ner_experiments.launch import summary, worker
from ner_experiments.launch.checks import check_jobs
from ner_experiments.launch.sweep_progress import finished_results, save_reasons
from ner_experiments.launch.worker import Outcome
from ner_experiments.tables import looks, registering, sweep_registration, sweeps
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.experiments import experiments, output_dir, unfinished
from ner_experiments.tables.scores import Page
from ner_experiments.tables.spec import Table
from ner_experiments.tables.table_view import TableView
from ner_experiments.utils import locks
from ner_experiments.utils.checks import are_seeds, is_count, list_of
from ner_experiments.utils.terminal import print_markdown


@dataclass(frozen=True)
class Sweep:
    """A sweep as a command line asks for it: the unfinished runs of a table, or jobs, which become a recorded table.

    jobs: the overrides of each; None for those of the table. extra_overrides: those beside the rows'. seeds, looks:
    those to add to the table's. register: whether to register the sweep before it starts; primary: "A - B" for the
    rows whose difference is tested.
    """

    table: Table
    jobs: list[list[str]] | None
    extra_overrides: list[str]
    seeds: list[int]
    looks: list[int]
    register: bool
    primary: str

    @property
    def output(self) -> Path:
        return output_dir(self.extra_overrides)


class Launch:
    """Runs jobs by the launcher of a command line."""

    def __init__(self, line: CommandLine) -> None:
        self.launcher: Any = OmegaConf.to_object(launch_settings.composed(line.hydra).launcher)
        self.logging = launch_settings.logging(line.hydra)
        worker.configure_logging(self.logging)

    def __call__(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run all jobs; those that another command is working on are tried again when it has left them."""
        results: list[Outcome] = self.launcher.launch(jobs, self.logging)
        while elsewhere := {number: job.busy for number, job in enumerate(results) if job.busy}:
            runs = "1 run is" if len(elsewhere) == 1 else f"{len(elsewhere)} runs are"
            print(f"{runs} being trained by another command; waiting", flush=True)
            free = locks.wait_for_one(list(map(Path, elsewhere.values())))
            again = [number for number, folder in elsewhere.items() if Path(folder) in free]
            returned = self.launcher.launch([jobs[number] for number in again], self.logging)
            for number, outcome in zip(again, returned, strict=True):
                results[number] = outcome
        save_reasons(results, jobs)
        return results


def run(sweep: Sweep, launch: Launch) -> int:
    """Run the jobs of a sweep, of which a failed one stops no other; record it, show its table, return the status."""
    table = sweep.table if sweep.jobs is None else sweeps.named(sweep.table, sweep.output)
    registration = registered(sweep, table)
    if sweep.jobs is not None:
        table = sweeps.record(table, sweep.output)
    table = sweeps.add_to_record(table, sweep.output, sweep.seeds, sweep.looks)
    if sweep.looks:
        results = run_looks(replace(table, looks=tuple(sweep.looks)), sweep.extra_overrides, launch)
        return show(sweep, table, results)
    jobs = sweep.jobs
    if jobs is None:
        jobs, finished = unfinished(table, sweep.extra_overrides, sweep.seeds)
        print(f"{table.name}: {len(jobs)} runs to do, {finished} finished", flush=True)
    launched = named(table, jobs, sweep.extra_overrides, registration)
    try:
        results = launch(launched) if jobs else []
    except SystemExit:  # by a signal, which may have come when the last job had finished its run
        if results := finished_results(launched):
            show(sweep, table, results)
        raise
    return show(sweep, table, results)


def show(sweep: Sweep, table: Table, results: Sequence[Outcome]) -> int:
    """Print the summary of jobs, and the table or verdict; return the exit status."""
    page = looks.at_looks(collect(table, sweep.extra_overrides))
    shared = summary.shared_settings(table, sweep.extra_overrides)
    of_a_table, finished = sweep.jobs is None, summary.finished_runs(page)
    left_out = "; ".join(dict.fromkeys(row.remark for row in page.results if row.remark))
    hinted = not of_a_table
    failed = summary.show(results, finished, shared, left_out=left_out, with_hints=hinted) if results else 0
    if page.runs or of_a_table or not failed:  # the summary names what failed
        show_table(page, of_a_table=of_a_table)
    return int(failed > 0)


def run_looks(table: Table, extra_overrides: Sequence[str], launch: Launch) -> list[Outcome]:
    """Add seeds, look by look, to the rows that are not decided; see tables/looks.py."""
    by_label = {it.row.label: it.overrides for it in experiments(table, extra_overrides)}
    results: list[Outcome] = []
    seen = 0
    while True:
        page = collect(table, extra_overrides)
        decision = looks.decide(page, table.looks, table.seeds[0])
        seeds = {seed for row in page.results for seed in row.runs} & {*seeds_of_looks(table)}
        seeds |= {seed for missing in decision.to_run.values() for seed in missing}
        sweeps.add_to_record(table, output_dir(extra_overrides), seeds)
        for line in decision.history[seen:]:
            print(line, flush=True)
        seen = len(decision.history)
        jobs = [
            [*by_label[label], f"seed={seed}"] for label, seeds in decision.to_run.items() for seed in seeds
        ]
        if not jobs:
            return results
        print(f"{table.name}: {len(jobs)} runs to do", flush=True)
        returned = launch(named(table, jobs, extra_overrides))
        results += returned
        if any(job.failed for job in returned):
            return results


def show_table(page: Page, *, of_a_table: bool) -> None:
    """Print the table, or for a sweep of the command line its verdict and how it is called."""
    table = page.table
    if of_a_table:
        print()
        print_markdown(f"{TableView(page).markdown()}\n")
        return
    if not page.runs:
        for text in page.not_counted:  # such as code that was edited while they ran
            print(f"Not counted: {text}")
    else:
        if answer := TableView(page).answer():
            print()
            print_markdown(f"{answer}\n")
        place = next((item for item in table.overrides if item.startswith("output_dir=")), "")
        name = shlex.join([table.name, *([place] if place else [])])
        print(f"Recorded as {table.name}. To show this and where the runs are, and as a report:")
        print(*(f"    ner-experiments {command} {name}" for command in ("table", "report")), sep="\n")


def registered(sweep: Sweep, table: Table) -> str:
    """Hash of the registration of a sweep or table, which is written now if that is asked for; "" without one."""
    if sweep.register:
        seeds = sweep.seeds or table.seeds
        found = registering.register(table, sweep.extra_overrides, seeds, sweep.primary, sweep.output)
    elif (path := registering.place(table, sweep.extra_overrides, sweep.output)).exists():
        found = sweep_registration.read(path)
    else:
        return ""
    if sweep.looks:
        raise ValueError(f"sweep.looks: {found.path} has a fixed number of seeds")
    print(f"Registered: {found}", flush=True)
    return found.hash


def named(
    table: Table, jobs: Sequence[Sequence[str]], extra_overrides: Sequence[str], registration: str = ""
) -> list[Job]:
    """The jobs with the sweep, row and registration that each belongs to."""
    labels = sweeps.rows_of(table, jobs, extra_overrides)
    return [Job(tuple(job), table.name, label, registration) for job, label in zip(jobs, labels, strict=True)]


def seeds_of_looks(table: Table) -> range:
    """All seeds that the looks of a table may use."""
    return range(table.seeds[0], table.seeds[0] + table.looks[-1])


# The command line


def planned(line: CommandLine) -> Sweep:
    """The sweep of a command line. ValueError for a table, row, override or setting that is not valid."""
    if (sweep := table_sweep(line)) is not None:
        check_rows(sweep, line)
        return sweep
    jobs = compose.jobs(line.experiment)
    try:
        check_jobs(jobs, line)
    except ValueError as error:
        raise ValueError(f"{error}{unless_all_have(str(error), jobs)}") from error
    looks = parse_looks(line.sweep.get("sweep.looks"), line.experiment)
    table = sweeps.of_jobs(jobs, line.value("sweep.name"), line.experiment, looks)
    check_looks(table)
    places = [item for item in line.experiment if sweeps.is_place(item)]
    sweep = Sweep(table, jobs, places, [], looks, *asked_to_register(line))
    sweeps.named(table, sweep.output)
    return sweep


def asked_to_register(line: CommandLine) -> tuple[bool, str]:
    """The values of `sweep.register` and `sweep.primary`. ValueError for values they cannot have."""
    own, register = line.sweep, line.value("sweep.register")
    if "sweep.register" not in own:
        if "sweep.primary" in own:
            raise ValueError(f"{own['sweep.primary']} is registered: add sweep.register=true")
        return False, ""
    if register not in ("true", "false"):
        raise ValueError(f"{own['sweep.register']}: sweep.register must be true or false")
    if "sweep.looks" in own and register == "true":
        raise ValueError(
            f"{own['sweep.register']}: a registration has a fixed number of seeds, and sweep.looks adds seeds"
        )
    return register == "true", line.value("sweep.primary")


def refuse_without_m(line: CommandLine) -> None:
    """Raise ValueError for a setting of sweeps in the command line of a single experiment."""
    if table := line.sweep.get("table"):
        raise ValueError(f"{table} requests a sweep: add -m, as in `python run.py -m {table}`")
    table_sweep(line)  # refuses seeds without a table
    for item in line.sweep.values():
        raise ValueError(f"{item} requires a sweep: add -m")


def table_sweep(line: CommandLine) -> Sweep | None:
    """The table or recorded sweep that a command line requests, or None.

    ValueError for an unknown table, and for seeds and overrides that a table cannot have.
    """
    own = line.sweep
    if "table" not in own:
        if "seeds" in own:
            raise ValueError(f"{own['seeds']} requires table=NAME; otherwise write seed=1,2,3")
        return None
    if "sweep.name" in own:
        raise ValueError(f"{own['sweep.name']}: a table already has a name")
    for item in parse(line.experiment):
        if item.key_or_group == "seed":
            raise ValueError(f"{item.input_line}: a table takes its seeds as seeds=1,2,3")
        if item.is_sweep_override():
            raise ValueError(f"{item.input_line}: a table's rows are the sweep, so a setting takes one value")
    if "sweep.looks" in own and "seeds" in own:
        raise ValueError(f"{own['seeds']}: {own['sweep.looks']} sets the number of seeds")
    extra_overrides = list(line.experiment)
    table = sweeps.find(line.value("table"), output_dir(extra_overrides))
    seeds = parse_seeds(own["seeds"]) if "seeds" in own else []
    looks = parse_looks(own.get("sweep.looks"))
    wanted = replace(table, looks=tuple(looks), seeds=tuple(sorted({*table.seeds, *seeds})))
    sweeps.refuse_changed_looks(wanted, table)
    check_looks(wanted)
    return Sweep(table, None, extra_overrides, seeds, looks, *asked_to_register(line))


def check_looks(table: Table) -> None:
    """Raise ValueError if the looks of a table compare nothing, or need a seed that no job can have."""
    if not table.looks:
        return
    if sum(row.run is not None for row in table.rows) < 2:
        raise ValueError(
            f"{as_override('sweep.looks', table.looks)} compares rows, and "
            f"{table.name or 'this sweep'} has only one"
        )
    check_jobs([[f"seed={seeds_of_looks(table)[-1]}"]], files=False)


def check_rows(sweep: Sweep, line: CommandLine) -> None:
    """Raise ValueError for a value that a row cannot have, and if every row lacks files.

    If only some rows do, the others run, and a line on stderr says why these will fail.
    """
    rows = [[*each.overrides] for each in experiments(sweep.table, sweep.extra_overrides)]
    seed = [f"seed={max(sweep.seeds, default=0)}"]
    check_jobs([*rows, seed], line, files=False)
    missing = []
    for row in rows:
        try:
            check_jobs([row], line)
        except ValueError as error:
            missing.append(str(error))
    if missing and len(missing) == len(rows):
        raise ValueError(missing[0])
    if missing:
        print(f"{len(missing)} of {len(rows)} rows lack their files: {missing[0]}", file=sys.stderr)


def parse_seeds(override: str) -> list[int]:
    seeds = values_of(override)
    if not are_seeds(seeds):
        raise ValueError(
            f"{override}: expected distinct integers from 0: seeds=1,2,3 for three seeds, seeds=[1] for seed 1 alone"
        )
    return [*seeds]


def values_of(override: str) -> Any:
    """The values of `seeds=1,2,3`, which can also be written `seeds=[1,2,3]` or `seeds=range(1,4)`.

    Anything else is returned as it is, also a single value: `seeds=3` could mean three seeds.
    """
    item = parse_one(override)
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
