"""Plots of a published table: the paper's points beside ours, along a number that the table varies, or row by row."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from ner_experiments.config import row_settings
from ner_experiments.config.row_settings import display_name, numeric, varying
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.tables.experiments import joined
from ner_experiments.tables.render import Grid, deviation, interval, printed
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import CHUNK, Table
from ner_experiments.tables.svg import (
    MUTED,
    ROW_HEIGHT,
    SERIES,
    Plot,
    drawing,
    inline,
    label_rows,
    label_width,
    legends_above,
    series_style,
)

PAPER, OURS = "published", "ours"
MIN_POINTS = 3
"""Rows alike in all other settings that make a numeric setting an axis."""
LOG_RATIO = 16
"""Largest over smallest value from which an axis is logarithmic."""
MAX_LABEL = 60
"""Characters of a label."""
BARS = (
    "Filled: our mean over seeds with its 95 % t-interval. Open: the published number, with the paper's standard "
    "deviation if it states one."
)
DESCRIPTION = f"{BARS} The numbers are in the table below the picture."


@dataclass(frozen=True)
class Axis:
    """A numeric setting, the rows along it, and the settings coupled to it, which add no information."""

    key: str
    points: tuple[Point, ...]
    coupled: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        coupled = f" (with {', '.join(map(display_name, self.coupled))})" if self.coupled else ""
        return display_name(self.key) + coupled


@dataclass(frozen=True)
class Point:
    """A row's position on the axis. `series`: the settings that distinguish it from other rows there."""

    x: float
    series: str
    result: Result


@dataclass(frozen=True)
class RowGroup:
    """Rows that are scored on one scale."""

    title: str
    results: tuple[Result, ...]


def score_plots(page: Page) -> list[Plot]:
    """One plot along the number that the table varies; without one, a plot for each group of rows."""
    if axis := axis_of(page):
        return [axis_plot(axis, "axis", unit_of(page.table, page.results))]
    return [
        row_plot(group, f"rows-{number}", unit_of(page.table, group.results))
        for number, group in enumerate(row_groups(page))
    ]


def unit_of(table: Table, results: Iterable[Result]) -> str:
    """The unit of the scores, from the runs of the results, or without runs from the table's title."""
    if table.command:
        return "phrases of 4"
    if table.analysis:
        chunks = any(row.measure and row.measure.figure == CHUNK for row in table.rows)
        return "points of recall" if chunks else "points of F1"
    names = dict(PRIMARY_METRIC.values())
    metrics = {names[run.primary_metric] for result in results for run in result.runs.values()}
    metrics = metrics or {name for name in names.values() if name in table.title}
    return f"test {metrics.pop()}" if len(metrics) == 1 else "test score"


def axis_of(page: Page) -> Axis | None:
    """The first number that the table varies, with at least `MIN_POINTS` rows alike in all else, or None.

    A non-numeric setting with a different value in each of these rows is what the rows are about; then the number is
    no axis. Other numbers that qualify are coupled to the first.
    """
    rows = [(settings(page.table, result), result) for result in page.results if result.row.run is not None]
    keys = varying([row for row, _ in rows])
    numbers = numeric([row for row, _ in rows], keys)
    choices = [key for key in keys if key not in numbers]
    candidates = []
    for key in numbers:
        points = [Point(float(row[key]), series_name(row, choices), result) for row, result in rows]
        sizes = Counter(point.series for point in points)
        distinct = len({(point.x, point.series) for point in points}) == len(points)
        if distinct and max(sizes.values()) >= MIN_POINTS:
            candidates.append(Axis(key, tuple(sorted(points, key=lambda point: point.x))))
    if not candidates:
        return None
    return replace(candidates[0], coupled=tuple(other.key for other in candidates[1:]))


def settings(table: Table, result: Result) -> dict[str, str]:
    """The overrides that make the row, by key; empty for a row that is not run."""
    if result.row.run is None:
        return {}
    return row_settings.settings(joined(table.base, result.row.run))


def series_name(row: Mapping[str, str], keys: Sequence[str]) -> str:
    return ", ".join(row[key].rpartition("/")[2] for key in keys if key in row)


def row_groups(page: Page) -> list[RowGroup]:
    """The rows with a score, grouped by what they are scored on: the corpus, or the tag of a figure.

    A cited row belongs to the group whose labels alone share a word with its label, such as "POS".
    """
    names = {data_choice(page, result): corpus(result) for result in reversed(page.results) if result.runs}
    by_title: dict[str, list[Result]] = {}
    for result in page.results:
        if has_score(result) and not result.row.cited:
            by_title.setdefault(scored_on(page, result, names), []).append(result)
    common_words = {title: set.intersection(*map(words, results)) for title, results in by_title.items()}
    for result in page.results:
        if has_score(result) and result.row.cited:
            for title in by_title:
                if len(by_title) == 1 or unique_words(title, common_words) & words(result):
                    by_title[title].append(result)
                    break
    order = {result.row.label: number for number, result in enumerate(page.results)}
    return [
        RowGroup(title, tuple(sorted(results, key=lambda result: order[result.row.label])))
        for title, results in by_title.items()
    ]


def has_score(result: Result) -> bool:
    return isinstance(result.row.published, int | float) or bool(result.scores)


def scored_on(page: Page, result: Result, names: Mapping[str, str]) -> str:
    """The title of the row's group. `names` maps choices of data to the corpus names of their runs, if any."""
    measure = result.row.measure
    if measure is None:
        choice = data_choice(page, result)
        return corpus(result) if result.runs else names.get(choice, choice)
    if measure.figure == CHUNK:
        return f"tag {measure.key}"
    return measure.of.partition(",")[0]


def data_choice(page: Page, result: Result) -> str:
    """The choice of data in the page's deviations or, without one, in the row."""
    return (settings(page.table, result) | row_settings.settings(page.deviations)).get("data", "")


def corpus(result: Result) -> str:
    return str(result.data["name"])


def words(result: Result) -> set[str]:
    return set(re.findall(r"\w+", result.row.label))


def unique_words(title: str, common_words: Mapping[str, set[str]]) -> set[str]:
    """The words that all labels of one group share, without those that all labels of another share."""
    others = [words_of_other for other, words_of_other in common_words.items() if other != title]
    return common_words[title] - set().union(*others)


def axis_plot(axis: Axis, name: str, unit: str) -> Plot:
    """Plot with one line along the axis per series; published and ours in two plots if they are of different data."""
    comparable = all(point.result.comparable for point in axis.points)
    lines = list(dict.fromkeys(point.series for point in axis.points))
    sides = [(PAPER, OURS)] if comparable else [(PAPER,), (OURS,)]
    with drawing(520 if comparable else 760, 320) as figure:
        for axes, kinds in zip(figure.subplots(1, len(sides), squeeze=False)[0], sides, strict=True):
            for number, series in enumerate(lines):
                points = [point for point in axis.points if point.series == series]
                for kind in kinds:
                    draw_line(axes, kind, points, number, series)
            set_ticks(axes, [point.x for point in axis.points])
            axes.set_xlabel(axis.label)
            axes.set_ylabel(unit if comparable else f"{unit}, {kinds[0]}")
            axes.grid(axis="y")
        legends_above(figure)
        title = f"{unit} by {axis.label}"
        svg = inline(figure, name, title, DESCRIPTION)
    return Plot(svg, title, score_grid([point.result for point in axis.points]))


def draw_line(axes: Axes, kind: str, points: Sequence[Point], number: int, series: str) -> None:
    points = [point for point in points if center(point.result, kind) is not None]
    if not points:
        return
    values: list[Any] = [center(point.result, kind) for point in points]
    style = series_style(number % len(SERIES))
    style |= {"linestyle": "-", "linewidth": 1.8}
    if kind == PAPER:
        style |= {"linestyle": "--", "linewidth": 1.2, "markerfacecolor": "none"}
    axes.errorbar(
        [point.x for point in points], values, label=f"{series or 'score'}, {kind}",
        yerr=error_bars([half_width(point.result, kind) for point in points]),
        capsize=3, elinewidth=1.2, **style,
    )  # fmt: skip


def set_ticks(axes: Axes, values: Sequence[float]) -> None:
    """A tick at each value that the paper has; a logarithmic scale from `LOG_RATIO`."""
    ticks = sorted(set(values))
    if ticks[0] > 0 and ticks[-1] / ticks[0] >= LOG_RATIO:
        axes.set_xscale("log", base=2)
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.minorticks_off()


def row_plot(group: RowGroup, name: str, unit: str) -> Plot:
    """Plot with one line per row, the first on top; published and ours side by side if not comparable."""
    comparable = all(result.comparable for result in group.results)
    labels = [result.row.label for result in group.results]
    drawn = tuple(
        kind for kind in (PAPER, OURS) if any(center(result, kind) is not None for result in group.results)
    )
    sides = [drawn] if comparable else [(kind,) for kind in drawn]
    width = 340 * len(sides) + 60 + label_width(labels, MAX_LABEL)
    with drawing(width, 66 + ROW_HEIGHT * len(labels)) as figure:
        for axes, kinds in zip(figure.subplots(1, len(sides), squeeze=False)[0], sides, strict=True):
            for kind in kinds:
                draw_rows(axes, kind, group.results, 0.14 if len(kinds) > 1 else 0)
            label_rows(axes, labels, MAX_LABEL)
            axes.grid(axis="both")
            axes.xaxis.set_major_locator(MaxNLocator(6))
            axes.set_xlabel(unit if comparable else f"{unit}, {kinds[0]}")
            axes.label_outer(remove_inner_ticks=False)
        legends_above(figure)
        title = f"{unit}, row by row" + (f": {group.title}" if group.title else "")
        svg = inline(figure, name, title, DESCRIPTION)
    return Plot(svg, title, score_grid(group.results))


def draw_rows(axes: Axes, kind: str, results: Sequence[Result], offset: float) -> None:
    """Draw the scores of one kind, published or ours, `offset` lines away from the middle of their rows."""
    series: list[tuple[str, Callable[[Result], bool], str]] = [(OURS, lambda result: True, SERIES[0])]
    if kind == PAPER:
        series = [
            (PAPER, lambda result: not result.row.cited, SERIES[1]),
            ("cited by the paper", lambda result: result.row.cited, MUTED),
        ]
    for label, belongs, color in series:
        rows = [
            (number, result)
            for number, result in enumerate(results)
            if belongs(result) and center(result, kind) is not None
        ]
        if not rows:
            continue
        places = [number + (offset if kind == OURS else -offset) for number, _ in rows]
        values: list[Any] = [center(result, kind) for _, result in rows]
        axes.errorbar(
            values, places, xerr=error_bars([half_width(result, kind) for _, result in rows]), linestyle="",
            marker="o" if kind == OURS else "D", color=color, capsize=3, elinewidth=1.4, label=label,
            markerfacecolor=color if kind == OURS else "none",
        )  # fmt: skip


def center(result: Result, kind: str) -> float | None:
    if kind == OURS:
        return result.measured.mean if result.measured else None
    published = result.row.published
    return float(published) if isinstance(published, int | float) else None


def half_width(result: Result, kind: str) -> float:
    """Half the length of the error bar through a marker."""
    if kind == PAPER:
        return result.row.sd or 0.0
    ours = result.measured
    return 0.0 if ours is None or ours.high is None else ours.high - ours.mean


def error_bars(half_widths: Sequence[float]) -> list[float] | None:
    """Half widths for Matplotlib; bars of no length are omitted, as their caps would cross the marker."""
    return [value or math.nan for value in half_widths] if any(half_widths) else None


def score_grid(results: Sequence[Result]) -> Grid:
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
    headings = ("row", PAPER, OURS, "95 %")
    if any(line[1] for line in lines):
        return Grid(headings, lines)
    return Grid([headings[0], *headings[2:]], [[line[0], *line[2:]] for line in lines])
