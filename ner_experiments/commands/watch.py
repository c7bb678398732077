"""`ner-experiments watch`: how the runs of a sweep stand, again and again until they are over, or once."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ner_experiments.config import compose
from ner_experiments.config.overrides import as_value, labels
from ner_experiments.launch.sweeper import table_request
from ner_experiments.tables import experiments

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ner_experiments.runs.status import Status, Wanted

ALL_DONE, SOME_FAILED, WRONG, UNFINISHED = range(4)
STYLES = {"running": "cyan", "done": "green", "cut off": "yellow", "failed": "red", "waiting": "dim"}
WORTH_SEEING = ("running", "failed", "cut off", "done", "waiting")
"""In this order, where a terminal is too low for all runs."""


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit status."""
    try:
        return status(told(arguments))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return WRONG


def told(arguments: argparse.Namespace) -> list[Status]:
    """The runs as they stood at the last look."""
    look = looker(arguments)
    if not (arguments.json or arguments.once):
        return live(look, arguments.seconds)
    runs = look()
    if arguments.json:
        from ner_experiments.runs.status import counts

        content = {"counts": counts(runs), "runs": [run.record() for run in runs]}
        print(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        from ner_experiments.utils.terminal import make_console

        make_console().print(shown(runs))
    return runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = (
        "How runs stand: done, running, failed, cut off, waiting. Of the sweep that `run.py -m` makes of the "
        "same arguments (table=NAME seeds=[1,2], or model=residual layers=2,3); without any, of all that "
        "have a folder. Exit status 0: all are done; 1: some failed or were cut off; 2: wrong arguments; 3: "
        "some run or wait."
    )
    parser.description = text
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE")
    parser.add_argument("--output", metavar="DIR", help="where the runs lie (outputs)")
    parser.add_argument("--once", action="store_true", help="print one table, and end")
    parser.add_argument("--json", action="store_true", help="print one JSON, and end")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="N", help="look so often (2)")


def looker(arguments: argparse.Namespace) -> Callable[[], list[Status]]:
    """Composes the sweep, once; what it returns looks at the files."""
    from ner_experiments.launch import slurm_array
    from ner_experiments.runs.status import everything, of_sweep

    overrides = list(arguments.overrides)
    if arguments.output is not None:
        overrides.append(f"output_dir={as_value(arguments.output)}")
    if all(item.startswith("output_dir=") for item in overrides):
        output = experiments.output_dir(overrides)
        if not output.is_dir():
            raise ValueError(f"{output}: there is no such folder")
        return lambda: everything(output)
    output, wanted = sweep(overrides)
    queue = slurm_array.Queue(output / "slurm")
    return lambda: of_sweep(wanted, output, queue.waiting(wanted))


def sweep(overrides: Sequence[str]) -> tuple[Path, list[Wanted]]:
    """Where its runs lie, and which they are. ValueError as `run.py -m` has it."""
    from ner_experiments.runs.status import Wanted

    if (request := table_request(overrides)) is not None:
        further = [*request.extra_overrides, *request.hydra_overrides]
        rows = experiments.experiments(request.table, further)
        seeds = request.seeds or experiments.seeds_of_table(request.table)
        runs = [Wanted.of(row.row.label, row.cfg, seed) for row in rows for seed in seeds]
        return experiments.output_dir(further), runs

    jobs = compose.jobs(overrides)
    configs = [compose.compose(job, "watch") for job in jobs]
    runs = [Wanted.of(label, cfg, cfg.seed) for label, cfg in zip(labels(jobs), configs, strict=True)]
    return Path(configs[0].output_dir), runs


def live(look: Callable[[], list[Status]], seconds: float) -> list[Status]:
    """Until no run is running or waiting, or Ctrl-C; what stays on the screen then has all runs."""
    from rich.live import Live

    from ner_experiments.utils.terminal import make_console

    runs, console = look(), make_console()
    with Live(fitting(runs, console), console=console, auto_refresh=False) as screen:
        try:
            while any(run.state in ("running", "waiting") for run in runs):
                time.sleep(seconds)
                runs = look()
                screen.update(fitting(runs, console), refresh=True)
        except KeyboardInterrupt:
            pass
        screen.update(shown(runs))
    return runs


def fitting(runs: Sequence[Status], console: Console) -> Table:
    """Of more runs than the screen has lines those most worth seeing, and how many others there are."""

    def fits(table: Table) -> bool:
        return len(console.render_lines(table)) <= console.height

    if fits(whole := shown(runs)):
        return whole
    ordered = sorted(runs, key=lambda run: WORTH_SEEING.index(run.state))
    for number in range(min(len(runs), console.height), 0, -1):
        if fits(table := shown(ordered[:number], ordered[number:])):
            return table
    return shown((), ordered)


def status(runs: Sequence[Status]) -> int:
    states = {run.state for run in runs}
    if states & {"failed", "cut off"}:
        return SOME_FAILED
    return UNFINISHED if states & {"running", "waiting"} else ALL_DONE


def shown(runs: Sequence[Status], others: Sequence[Status] = ()) -> Table:
    """A line per run, the others counted; scores in percent."""
    from rich.markup import escape

    from ner_experiments.utils.terminal import new_table

    title, caption = counted([*runs, *others]) or "no runs", f"and {counted(others)}" if others else None
    headings = ("seed", "state", "epoch", "dev", "best", "test", "left", "sign")
    table = new_table("", *headings, title=title, caption=caption)
    table.columns[0].ratio, table.columns[2].justify = 3, "left"
    table.add_column("where, why", overflow="fold", ratio=4)
    for run in runs:
        style = STYLES[run.state]
        cells = [str(run.seed), f"[{style}]{run.state}[/]", epoch(run)]
        cells += [percent(run.dev), best(run), percent(run.test), left(run), ago(run)]
        place = " ".join(filter(None, [run.host, run.slurm and f"SLURM {run.slurm}", run.reason]))
        table.add_row(escape(run.label), *cells, escape(place))
    return table


def counted(runs: Sequence[Status]) -> str:
    from ner_experiments.runs.status import counts

    return ", ".join(f"{number} {state}" for state, number in counts(runs).items() if number)


def epoch(run: Status) -> str:
    if run.epoch is None:
        return ""
    within = f" +{100 * run.part:.0f}%" if run.part else ""
    return f"{run.epoch}/{run.max_epochs}{within}" if run.max_epochs else str(run.epoch)


def percent(score: float | None) -> str:
    return "" if score is None else f"{100 * score:.2f}"


def best(run: Status) -> str:
    return "" if run.best is None else f"{percent(run.best)} ({run.best_epoch})"


def left(run: Status) -> str:
    from ner_experiments.runs.progress import format_range

    return format_range(run.left) if run.left is not None and run.state == "running" else ""


def ago(run: Status) -> str:
    return "" if run.silent is None else f"{run.silent:.0f} s ago"
