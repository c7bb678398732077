"""What a table varies, read from the overrides of its rows: a number to be the axis, or kinds of things.

The paper's points beside ours: along a number that the table varies, or row by row.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from ner_experiments.config import overrides
from ner_experiments.config.overrides import named, numeric, varying
from ner_experiments.data.sentence import HEADLINES
from ner_experiments.tables.experiments import joined
from ner_experiments.tables.render import Grid, deviation, interval, printed
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import CHUNK, Table
from ner_experiments.tables.svg import (
    MUTED,
    ROW,
    SERIES,
    Plot,
    drawing,
    inline,
    label_rows,
    legends_above,
    look,
    width_of,
)

FEWEST = 3
"""Values that make an axis of a setting."""


@dataclass(frozen=True)
class Point:
    """A row's place on the axis. `series`: what else sets it apart from others."""

    x: float
    series: str
    result: Result


@dataclass(frozen=True)
class Axis:
    """A numeric setting, the rows along it, and the settings that change with it and say nothing new."""

    key: str
    points: tuple[Point, ...]
    coupled: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        with_it = f" (with {', '.join(map(named, self.coupled))})" if self.coupled else ""
        return named(self.key) + with_it


@dataclass(frozen=True)
class Panel:
    """Rows that are scored on one scale."""

    title: str
    results: tuple[Result, ...]


def settings(table: Table, result: Result) -> dict[str, str]:
    """The overrides that make the row, by key; nothing for one that is not run."""
    if result.row.run is None:
        return {}
    return overrides.settings(joined(table.base, result.row.run))


def axis_of(page: Page) -> Axis | None:
    """The first number that the table varies along which there are at least three rows alike in all else.

    A setting that has another value in each of them, and is no number, is what the rows are about; the number
    is then no axis. Further such numbers are named with it.
    """
    rows = [(settings(page.table, it), it) for it in page.results if it.row.run is not None]
    keys = varying([row for row, _ in rows])
    numbers = numeric([row for row, _ in rows], keys)
    kinds = [key for key in keys if key not in numbers]
    found = []
    for key in numbers:
        points = [Point(float(row[key]), name(row, kinds), result) for row, result in rows]
        lines = Counter(point.series for point in points)
        distinct = len({(point.x, point.series) for point in points}) == len(points)
        if distinct and max(lines.values()) >= FEWEST:
            found.append(Axis(key, tuple(sorted(points, key=lambda point: point.x))))
    if not found:
        return None
    return replace(found[0], coupled=tuple(other.key for other in found[1:]))


def name(row: Mapping[str, str], keys: Sequence[str]) -> str:
    return ", ".join(row[key].rpartition("/")[2] for key in keys if key in row)


def panels(page: Page) -> list[Panel]:
    """The rows with a figure, by what they are scored on: the corpus, or the tag of a figure.

    A cited row belongs where its label says what only the labels of that panel say, such as "POS".
    """
    of_panel: dict[str, list[Result]] = {}
    names = {chosen(page, it): corpus(it) for it in reversed(page.results) if it.runs}
    for result in page.results:
        if is_figure(result) and not result.row.cited:
            of_panel.setdefault(scored_on(page, result, names), []).append(result)
    shared = {key: common(found) for key, found in of_panel.items()}
    for result in page.results:
        if is_figure(result) and result.row.cited:
            at_home = [key for key in of_panel if len(of_panel) == 1 or own(key, shared) & words(result)]
            for key in at_home[:1]:
                of_panel[key].append(result)
    order = {result.row.label: number for number, result in enumerate(page.results)}
    return [
        Panel(key, tuple(sorted(found, key=lambda it: order[it.row.label])))
        for key, found in of_panel.items()
    ]


def is_figure(result: Result) -> bool:
    return isinstance(result.row.published, int | float) or bool(result.scores)


def scored_on(page: Page, result: Result, names: Mapping[str, str]) -> str:
    """Of a row without runs the name that runs have with the same choice of data, if there are any."""
    measure = result.row.measure
    if measure is None:
        choice = chosen(page, result)
        return corpus(result) if result.runs else names.get(choice, choice)
    if measure.figure == "chunk":
        return f"tag {measure.key}"
    return measure.of.partition(",")[0]


def chosen(page: Page, result: Result) -> str:
    """The choice of data that makes the row, or that of the page's deviations."""
    return (settings(page.table, result) | overrides.settings(page.deviations)).get("data", "")


def corpus(result: Result) -> str:
    return str(result.data["name"])


def words(result: Result) -> set[str]:
    return set(re.findall(r"\w+", result.row.label))


def common(results: Sequence[Result]) -> set[str]:
    return set.intersection(*map(words, results))


def own(key: str, shared: Mapping[str, set[str]]) -> set[str]:
    """What all labels of a panel say, and not all of another."""
    others = [found for other, found in shared.items() if other != key]
    return shared[key] - set().union(*others)


PAPER, OURS = "published", "ours"
RATIO = 16
"""From here on, largest over smallest, an axis is logarithmic."""
LONGEST = 60
"""Letters of a label."""
BARS = (
    "Ours: the mean over seeds with its 95 % interval, filled. Published: open, with the paper's standard "
    "deviation where it states one."
)
DESCRIPTION = f"{BARS} The numbers are in the table below the picture."


def unit_of(table: Table, results: Iterable[Result]) -> str:
    """What the results' scores are: by their runs, or where they have none by the table's title."""
    if table.command:
        return "phrases of 4"
    if table.analysis:
        chunks = any(row.measure and row.measure.figure == CHUNK for row in table.rows)
        return "points of recall" if chunks else "points of F1"
    names = dict(HEADLINES.values())
    kinds = {names[run.primary_metric] for result in results for run in result.runs.values()}
    kinds = kinds or {name for name in names.values() if name in table.title}
    return f"test {kinds.pop()}" if len(kinds) == 1 else "test score"


def varied(page: Page) -> list[Plot]:
    """Along the number that the table varies; without one, the rows below each other."""
    if axis := axis_of(page):
        return [along(axis, "axis", unit_of(page.table, page.results))]
    return [
        by_row(panel, f"rows-{number}", unit_of(page.table, panel.results))
        for number, panel in enumerate(panels(page))
    ]


def along(axis: Axis, name: str, unit: str) -> Plot:
    """Lines along the axis, one for each series; two pictures where the two are not of the same data."""
    comparable = all(point.result.comparable for point in axis.points)
    lines = list(dict.fromkeys(point.series for point in axis.points))
    sides = [(PAPER, OURS)] if comparable else [(PAPER,), (OURS,)]
    with drawing(520 if comparable else 760, 320) as figure:
        for axes, kinds in zip(figure.subplots(1, len(sides), squeeze=False)[0], sides, strict=True):
            for number, series in enumerate(lines):
                own = [point for point in axis.points if point.series == series]
                for kind in kinds:
                    draw_line(axes, kind, own, number, series)
            scale(axes, [point.x for point in axis.points])
            axes.set_xlabel(axis.label)
            axes.set_ylabel(unit if comparable else f"{unit}, {kinds[0]}")
            axes.grid(axis="y")
        legends_above(figure)
        title = f"{unit} by {axis.label}"
        svg = inline(figure, name, title, DESCRIPTION)
    return Plot(svg, title, grid([point.result for point in axis.points]))


def draw_line(axes: Axes, kind: str, points: Sequence[Point], number: int, series: str) -> None:
    look = look_of(kind, number)
    own = [point for point in points if centre(point.result, kind) is not None]
    if not own:
        return
    values: list[Any] = [centre(point.result, kind) for point in own]
    line: dict[str, Any] = {
        "linestyle": "--" if kind == PAPER else "-",
        "linewidth": 1.2 if kind == PAPER else 1.8,
    }
    axes.errorbar(
        [point.x for point in own], values, yerr=errors(own, kind), label=f"{series or 'score'}, {kind}",
        capsize=3, elinewidth=1.2, **look, **line,
    )  # fmt: skip


def look_of(kind: str, number: int) -> dict[str, Any]:
    """The paper's marks are open, ours are full."""
    return look(number % len(SERIES)) | ({"markerfacecolor": "none"} if kind == PAPER else {})


def centre(result: Result, kind: str) -> float | None:
    if kind == OURS:
        return result.measured.mean if result.measured else None
    published = result.row.published
    return float(published) if isinstance(published, int | float) else None


def reach(result: Result, kind: str) -> float:
    """Half the length of the bar through a mark."""
    if kind == PAPER:
        return result.row.sd or 0.0
    ours = result.measured
    return 0.0 if ours is None or ours.high is None else ours.high - ours.mean


def errors(points: Sequence[Point], kind: str) -> list[float] | None:
    found = [reach(point.result, kind) for point in points]
    return bars(found)


def bars(reaches: Sequence[float]) -> list[float] | None:
    """None of no length, which would be a cap across the mark."""
    return [value or math.nan for value in reaches] if any(reaches) else None


def scale(axes: Axes, values: Sequence[float]) -> None:
    """A tick at each value that the paper has."""
    ticks = sorted(set(values))
    if ticks[0] > 0 and ticks[-1] / ticks[0] >= RATIO:
        axes.set_xscale("log", base=2)
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.minorticks_off()


def by_row(panel: Panel, name: str, unit: str) -> Plot:
    """A line of the picture for each row, the first on top; beside each other where they do not compare."""
    comparable = all(result.comparable for result in panel.results)
    labels = [result.row.label for result in panel.results]
    shown = tuple(kind for kind in (PAPER, OURS) if any(centre(it, kind) is not None for it in panel.results))
    sides = [shown] if comparable else [(kind,) for kind in shown]
    width = 340 * len(sides) + 60 + width_of(labels, LONGEST)
    with drawing(width, 66 + ROW * len(labels)) as figure:
        for axes, kinds in zip(figure.subplots(1, len(sides), squeeze=False)[0], sides, strict=True):
            for kind in kinds:
                draw_rows(axes, kind, panel.results, 0.14 if len(kinds) > 1 else 0)
            label_rows(axes, labels, LONGEST)
            axes.grid(axis="both")
            axes.xaxis.set_major_locator(MaxNLocator(6))
            axes.set_xlabel(unit if comparable else f"{unit}, {kinds[0]}")
            axes.label_outer(remove_inner_ticks=False)
        legends_above(figure)
        title = f"{unit}, row by row" + (f": {panel.title}" if panel.title else "")
        svg = inline(figure, name, title, DESCRIPTION)
    return Plot(svg, title, grid(panel.results))


def draw_rows(axes: Axes, kind: str, results: Sequence[Result], apart: float) -> None:
    chosen: list[tuple[str, Callable[[Result], bool], str]] = [(OURS, lambda it: True, SERIES[0])]
    if kind == PAPER:
        chosen = [
            (PAPER, lambda it: not it.row.cited, SERIES[1]),
            ("cited by the paper", lambda it: it.row.cited, MUTED),
        ]
    for label, belongs, color in chosen:
        rows = [
            (number, it) for number, it in enumerate(results) if belongs(it) and centre(it, kind) is not None
        ]
        if not rows:
            continue
        places = [number + (apart if kind == OURS else -apart) for number, _ in rows]
        reaches = [reach(it, kind) for _, it in rows]
        values: list[Any] = [centre(it, kind) for _, it in rows]
        axes.errorbar(
            values, places, xerr=bars(reaches), linestyle="",
            marker="o" if kind == OURS else "D", color=color, capsize=3, elinewidth=1.4, label=label,
            markerfacecolor=color if kind == OURS else "none",
        )  # fmt: skip


def grid(results: Sequence[Result]) -> Grid:
    lines = []
    for result in results:
        ours, row = result.measured, result.row
        lines.append(
            [
                row.label,
                printed(row.published) + deviation(row.sd, row.runs),
                f"{ours.mean:.2f}{deviation(ours.sd, ours.n)}" if ours else "",
                interval(ours.low, ours.high) if ours else "",
            ]
        )
    return Grid(("row", PAPER, OURS, "95 %"), lines)
