"""`ner-experiments watch [OVERRIDE ...]`: show the live status of a sweep."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.live import Live

from ner_experiments.config import compose
from ner_experiments.config.choices import as_value
from ner_experiments.config.job import CommandLine
from ner_experiments.config.row_settings import labels, root
from ner_experiments.launch.slurm_array import Queue
from ner_experiments.launch.status_table import fitting_table, state_counts, status_table
from ner_experiments.launch.sweeper import table_sweep
from ner_experiments.runs.status import PlannedRun, Status, all_statuses, counts, planned_run, sweep_statuses
from ner_experiments.tables import experiments, sweeps
from ner_experiments.tables.spec import Table
from ner_experiments.utils.arguments import interval
from ner_experiments.utils.terminal import make_console
from ner_experiments.utils.text import as_json, message_of

ALL_DONE, SOME_FAILED, WRONG, UNFINISHED = range(4)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = (
        "Show the status of the runs of a sweep: done, running, failed, interrupted or waiting. Takes the arguments of "
        "`run.py -m` (table=NAME seeds=1,2, or model=residual layers=2,3) or the name of a sweep; without arguments, "
        "shows all runs that have a folder. Exit status 0: all are done; 1: some failed or were interrupted; 2: wrong "
        "arguments; 3: some are running or waiting, or there is none."
    )
    parser.description = text
    parser.add_argument("overrides", nargs="*", metavar="TABLE|OVERRIDE")
    parser.add_argument("-m", "--multirun", action="store_true", help="ignored: every sweep has several runs")
    parser.add_argument("--output", metavar="DIR", help="folder of the runs (outputs)")
    parser.add_argument("--once", action="store_true", help="print one table and exit")
    parser.add_argument("--json", action="store_true", help="print one JSON object and exit")
    parser.add_argument("--seconds", type=interval, default=2.0, metavar="N", help="refresh interval (2)")


def run(arguments: argparse.Namespace) -> int:
    """Show the runs; return the exit status."""
    try:
        return exit_status(show(arguments))
    except BrokenPipeError:  # see main.cli
        raise
    except (ValueError, OSError) as error:
        print(message_of(error), file=sys.stderr)
        return WRONG


def show(arguments: argparse.Namespace) -> list[Status]:
    """Print or display the runs; return their last status."""
    poll = poller(arguments)
    if not (arguments.json or arguments.once):
        return show_live(poll, arguments.seconds)
    runs = poll()
    if arguments.json:
        content = {"counts": counts(runs), "runs": [run.record() for run in runs]}
        print(as_json(content))
    else:
        make_console().print(status_table(runs))
    return runs


def poller(arguments: argparse.Namespace) -> Callable[[], list[Status]]:
    """Compose the sweep once; return a function that reads the status of its runs."""
    overrides = [item if "=" in item else f"table={item}" for item in arguments.overrides]
    if arguments.output is not None:
        overrides.append(f"output_dir={as_value(arguments.output)}")
    if all(item.startswith("output_dir=") for item in overrides):
        output = experiments.output_dir(overrides)
        if not output.is_dir():
            raise ValueError(f"{output}: no such folder")
        return lambda: all_statuses(output)
    output, planned = sweep(overrides)
    queue = Queue(output / "slurm")
    return lambda: sweep_statuses(planned, output, queue.waiting(planned))


def sweep(overrides: Sequence[str]) -> tuple[Path, list[PlannedRun]]:
    """Output folder and runs of a sweep. ValueError as for `run.py -m`."""
    line = CommandLine.of(overrides)
    if (request := table_sweep(line)) is not None:
        rows = experiments.experiments(request.table, request.extra_overrides)
        seeds = request.seeds or experiments.seeds_of_table(request.table)
        firsts = [planned_run(row.row.label, row.cfg) for row in rows]
        return request.output, [replace(first, seed=seed) for first in firsts for seed in seeds]

    settings = list(line.experiment)
    if (table := recorded_sweep(settings)) is not None:
        return sweep([f"table={table.name}", *filter(sweeps.is_place, settings)])
    jobs = compose.jobs(settings)
    # jobs of a row differ only in the seed
    first = cache(lambda row: planned_run("", compose.compose(row, "watch")))
    runs = [
        replace(first(sweeps.without_seed(job)), label=label, seed=sweeps.seed_of(job))
        for label, job in zip(labels(jobs), jobs, strict=True)
    ]
    return Path(compose.compose(jobs[0]).output_dir), runs


def recorded_sweep(overrides: Sequence[str]) -> Table | None:
    """The recorded sweep with these rows, whose seeds are shown if none are typed; None if there is none."""
    if any(root(item) == "seed" for item in overrides):
        return None
    table = sweeps.of_jobs(compose.jobs(overrides), "", overrides)
    rows = (it for it in sweeps.recorded(experiments.output_dir(overrides)) if sweeps.same_rows(it, table))
    return next(rows, None)


def show_live(poll: Callable[[], list[Status]], seconds: float) -> list[Status]:
    """Refresh the table until no run is running or waiting, or until Ctrl-C. The last table has all runs."""
    runs, console = poll(), make_console()
    if not console.is_terminal:
        return show_changes(poll, runs, seconds, console)
    with Live(fitting_table(runs, console), console=console, auto_refresh=False) as screen:
        try:
            while any(run.state in ("running", "waiting") for run in runs):
                time.sleep(seconds)
                runs = poll()
                screen.update(fitting_table(runs, console), refresh=True)
        except KeyboardInterrupt:
            pass
        screen.update(status_table(runs))
    return runs


def show_changes(
    poll: Callable[[], list[Status]], runs: list[Status], seconds: float, console: Console
) -> list[Status]:
    """Print a line whenever the states have changed, and the table at the end, where no screen can be refreshed."""
    said = ""
    while True:
        if (text := state_counts(runs)) != said:
            said = text
            states = {run.state for run in runs}
            idle = "waiting" in states and "running" not in states
            print(text + "; none is running, and this waits for them (--once does not)" * idle, flush=True)
        if not any(run.state in ("running", "waiting") for run in runs):
            break
        time.sleep(seconds)
        runs = poll()
    console.print(status_table(runs))
    return runs


def exit_status(runs: Sequence[Status]) -> int:
    if not runs:  # the sweep may not have started
        return UNFINISHED
    states = {run.state for run in runs}
    if states & {"failed", "interrupted"}:
        return SOME_FAILED
    return UNFINISHED if states & {"running", "waiting"} else ALL_DONE
