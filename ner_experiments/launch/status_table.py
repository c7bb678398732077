"""The runs of a sweep and their states as a table that fits a terminal, for `watch` and for the sweep itself."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from itertools import chain
from statistics import fmean
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ner_experiments.runs.progress import format_range, row_and_seed
from ner_experiments.runs.status import (
    DONE,
    FAILED,
    HEARTBEAT_TIMEOUT,
    INTERRUPTED,
    RUNNING,
    STARTING,
    WAITING,
    Status,
    counts,
)
from ner_experiments.utils.text import percent
from ner_experiments.view.table import Grid

STYLES = {RUNNING: "cyan", DONE: "green", INTERRUPTED: "yellow", FAILED: "red", WAITING: "dim"}
DISPLAY_PRIORITY = (RUNNING, FAILED, INTERRUPTED, DONE, WAITING)
"""Order in which runs are shown on a terminal with fewer lines than runs."""
MAX_SHOWN = 10
"""Number of finished runs of a row up to which each has a line of its own."""
HOST = "host, SLURM task"
HEADINGS = ("", "state", "epoch", "dev", "best", "test", "left", HOST)
FOLDED = ("", "left", HOST)
"""Headings of columns that are folded on a narrow terminal. A line of `watch` is one run, so no column moves below."""


def fitting_table(runs: Sequence[Status], console: Console, title: str = "") -> Group:
    """Table of as many lines as fit on the screen, by `DISPLAY_PRIORITY`; the others are counted."""

    def fits(table: Group) -> bool:
        return len(console.render_lines(table)) <= console.height

    if fits(whole := status_table(runs, title)):
        return whole
    ordered = sorted(table_lines(runs), key=lambda line: DISPLAY_PRIORITY.index(line[0].state))
    for number in range(min(len(ordered), console.height), -1, -1):
        table = lines_table(ordered[:number], [*chain.from_iterable(ordered[number:])], title)
        if fits(table):
            break
    return table


def status_table(runs: Sequence[Status], title: str = "") -> Group:
    """One line per run, or for all finished ones of a row with many. Scores in percent."""
    return lines_table(table_lines(runs), (), title)


def table_lines(runs: Sequence[Status]) -> list[list[Status]]:
    """The runs of each line: all finished ones of a row if they are more than `MAX_SHOWN`, else a single run."""
    finished: dict[str, list[Status]] = {}
    for run in runs:
        if run.state == DONE:
            finished.setdefault(run.label, []).append(run)
    lines = []
    for run in runs:
        group = finished[run.label] if run.state == DONE else [run]
        if len(group) <= MAX_SHOWN:
            lines.append([run])
        elif run is group[0]:
            lines.append(group)
    return lines


def lines_table(lines: Sequence[Sequence[Status]], others: Sequence[Status], title: str) -> Group:
    """Table of these lines without its empty columns, with `others` and the reasons of states below."""
    grid = Grid(HEADINGS, [cells_of(runs) for runs in lines]).without_empty(HEADINGS[2:])
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in grid.headings:
        justify: Literal["left", "right"] = "left" if heading in HEADINGS[:2] else "right"
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=heading not in FOLDED)
    for line in grid.lines:
        table.add_row(*line)
    reasons: dict[str, list[Status]] = {}
    for run in chain.from_iterable(lines):
        if text := reason(run):
            reasons.setdefault(text, []).append(run)
    below = [f"and {state_counts(others)}"] if others else []
    for text, (first, *more) in reasons.items():
        below.append(f"{name(first)}{f' and {len(more)} more' if more else ''}: {text}")
    heading = title or state_counts([*chain.from_iterable(lines), *others]) or "no runs"
    return Group(Text(heading, style="italic"), table, *map(Text, below))


def cells_of(runs: Sequence[Status]) -> list[str]:
    """The cells of a line under `HEADINGS`; of several finished runs, their means."""
    first = runs[0]
    if len(runs) > 1:
        seeds = ranges(sorted(run.seed for run in runs))
        of_line = row_and_seed(first.label, seeds)
    else:
        of_line = name(first)
    return [
        escape(of_line),
        f"[{STYLES[first.state]}]{first.state}[/]",
        epoch(first) if len(runs) == 1 else "means",
        mean(runs, "dev"),
        mean(runs, "best"),
        mean(runs, "test"),
        left(first),
        escape(host(first)),
    ]


def name(run: Status) -> str:
    return row_and_seed(run.label, run.seed)


def mean(runs: Sequence[Status], field: str) -> str:
    scores = [score for run in runs if (score := getattr(run, field)) is not None]
    return percent(fmean(scores)) if scores else ""


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
    """`12/100`, or `12.4/100` within an epoch."""
    if run.epoch is None:
        return ""
    done = f"{run.epoch + run.part:.1f}" if run.part else f"{run.epoch}"
    return f"{done}/{run.max_epochs}" if run.max_epochs else done


def left(run: Status) -> str:
    if run.state != RUNNING:
        return ""
    return run.reason or (format_range(run.left) if run.left is not None else "")


def host(run: Status) -> str:
    """The machine of a run without its domain, unless it is this one, and its task in SLURM."""
    elsewhere = run.host.partition(".")[0] if run.host != platform.node() else ""
    return " ".join(filter(None, [elsewhere, run.slurm]))


def reason(run: Status) -> str:
    """Why a run is not running, or that a running one gives no sign of life; empty otherwise."""
    if run.state == RUNNING:
        is_silent = run.silent is not None and run.silent > HEARTBEAT_TIMEOUT
        if is_silent and run.reason == STARTING:
            return f"in its first batch for {run.silent:.0f} s; the first run on a machine compiles its kernels there"
        return f"last heartbeat {run.silent:.0f} s ago" if is_silent else ""
    return run.reason
