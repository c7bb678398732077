"""`ner-experiments watch [OVERRIDE ...]`: show the live status of a sweep."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table as RichTable

from ner_experiments.config import compose
from ner_experiments.config.job import CommandLine
from ner_experiments.config.row_settings import as_value, labels
from ner_experiments.launch.slurm_array import Queue
from ner_experiments.launch.sweeper import table_sweep
from ner_experiments.runs.progress import format_range
from ner_experiments.runs.status import PlannedRun, Status, all_statuses, counts, planned_run, sweep_statuses
from ner_experiments.tables import experiments, sweeps
from ner_experiments.tables.spec import Table
from ner_experiments.utils.terminal import make_console, new_table
from ner_experiments.utils.text import message_of, percent

ALL_DONE, SOME_FAILED, WRONG, UNFINISHED = range(4)
STYLES = {"running": "cyan", "done": "green", "interrupted": "yellow", "failed": "red", "waiting": "dim"}
DISPLAY_PRIORITY = ("running", "failed", "interrupted", "done", "waiting")
"""Order in which runs are shown on a terminal with fewer lines than runs."""
MAX_SHOWN = 10
"""Number of finished runs of a row up to which each has a line of its own."""


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
        print(json.dumps(content, indent=2, ensure_ascii=False))
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
    if any(experiments.root(item) == "seed" for item in overrides):
        return None
    table = sweeps.of_jobs(compose.jobs(overrides), "", overrides)
    rows = (it for it in sweeps.recorded(experiments.output_dir(overrides)) if sweeps.same_rows(it, table))
    return next(rows, None)


def interval(text: str) -> float:
    """Seconds to wait. ArgumentTypeError for anything that is not a number above 0 and at most a day."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"expected seconds above 0 and at most 86400, got {text!r}")
    return seconds


def show_live(poll: Callable[[], list[Status]], seconds: float) -> list[Status]:
    """Refresh the table until no run is running or waiting, or until Ctrl-C. The last table has all runs."""
    runs, console = poll(), make_console()
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


def fitting_table(runs: Sequence[Status], console: Console) -> RichTable:
    """Table of as many lines as fit on the screen, by `DISPLAY_PRIORITY`; the others are counted."""

    def fits(table: RichTable) -> bool:
        return len(console.render_lines(table)) <= console.height

    if fits(whole := status_table(runs)):
        return whole
    ordered = sorted(table_lines(runs), key=lambda line: DISPLAY_PRIORITY.index(line[0].state))
    for number in range(min(len(ordered), console.height), -1, -1):
        table = lines_table(ordered[:number], [*chain.from_iterable(ordered[number:])])
        if fits(table):
            break
    return table


def exit_status(runs: Sequence[Status]) -> int:
    if not runs:  # the sweep may not have started
        return UNFINISHED
    states = {run.state for run in runs}
    if states & {"failed", "interrupted"}:
        return SOME_FAILED
    return UNFINISHED if states & {"running", "waiting"} else ALL_DONE


def status_table(runs: Sequence[Status]) -> RichTable:
    """One line per run, or for all finished ones of a row with many. Scores in percent."""
    return lines_table(table_lines(runs), ())


def table_lines(runs: Sequence[Status]) -> list[list[Status]]:
    """The runs of each line: all finished ones of a row if they are more than `MAX_SHOWN`, else a single run."""
    finished: dict[str, list[Status]] = {}
    for run in runs:
        if run.state == "done":
            finished.setdefault(run.label, []).append(run)
    lines = []
    for run in runs:
        group = finished[run.label] if run.state == "done" else [run]
        if len(group) <= MAX_SHOWN:
            lines.append([run])
        elif run is group[0]:
            lines.append(group)
    return lines


def lines_table(lines: Sequence[Sequence[Status]], others: Sequence[Status]) -> RichTable:
    """Table of these lines, with `others` counted below."""
    title = state_counts([*chain.from_iterable(lines), *others]) or "no runs"
    caption = f"and {state_counts(others)}" if others else None
    headings = ("seed", "state", "epoch", "dev", "best", "test", "left", "seen")
    table = new_table("", *headings, title=title, caption=caption)
    table.columns[0].ratio, table.columns[2].justify = 3, "left"
    table.add_column("host, reason", overflow="fold", ratio=4)
    for run, *more in lines:
        if more:
            table.add_row(escape(run.label), *means([run, *more]))
            continue
        style = STYLES[run.state]
        cells = [str(run.seed), f"[{style}]{run.state}[/]", epoch(run)]
        cells += [percent(run.dev), best(run), percent(run.test), left(run), ago(run)]
        place = " ".join(filter(None, [run.host, run.slurm and f"SLURM {run.slurm}", run.reason]))
        table.add_row(escape(run.label), *cells, escape(place))
    return table


def means(runs: Sequence[Status]) -> list[str]:
    """Cells of the finished runs of a row in one line."""
    seeds = ranges(sorted(run.seed for run in runs))
    dev, test = ([score for run in runs if (score := getattr(run, of)) is not None] for of in ("dev", "test"))
    scores = [percent(fmean(each)) if each else "" for each in (dev, test)]
    return [
        seeds,
        f"[{STYLES['done']}]done[/]",
        "",
        scores[0],
        "",
        scores[1],
        "",
        "",
        f"means of {len(runs)} runs",
    ]


def ranges(numbers: Sequence[int]) -> str:
    """Ascending whole numbers as text: 1-3,7 for 1, 2, 3 and 7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def state_counts(runs: Sequence[Status]) -> str:

    return ", ".join(f"{number} {state}" for state, number in counts(runs).items() if number)


def epoch(run: Status) -> str:
    if run.epoch is None:
        return ""
    within = f" +{100 * run.part:.0f}%" if run.part else ""
    return f"{run.epoch}/{run.max_epochs}{within}" if run.max_epochs else str(run.epoch)


def best(run: Status) -> str:
    return "" if run.best is None else f"{percent(run.best)} ({run.best_epoch})"


def left(run: Status) -> str:

    return format_range(run.left) if run.left is not None and run.state == "running" else ""


def ago(run: Status) -> str:
    return "" if run.silent is None else f"{run.silent:.0f} s ago"
