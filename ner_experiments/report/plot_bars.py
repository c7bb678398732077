"""Figures by kind of mention with their intervals, calibration, and gradient norms by layer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter, MaxNLocator

from ner_experiments.report.svg import (
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
from ner_experiments.table_page import Grid

LONGEST_BAR_LABEL = 30
"""Letters of a label."""
GAP, APART = 14, 11
"""Pixels between the points of a label and those of the next, and between those of a label."""
POINTS: dict[str, Any] = {"linestyle": "", "marker": "o", "capsize": 3, "elinewidth": 1.4}


class Plain(LogFormatter):
    """0.01 rather than a formula, which no picture reads as one."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


class Bar(NamedTuple):
    """A figure, and its interval where there is one."""

    label: str
    value: float
    low: float | None
    high: float | None


def bar_plot(rows: Sequence[Bar], name: str, unit: str, title: str, grid: Grid) -> Plot:
    """A bar for each, from 0; the axis ends at 100, or before if the figures are small."""
    labels = [bar.label for bar in rows]
    with drawing(420 + width_of(labels, LONGEST_BAR_LABEL), 56 + ROW * len(rows)) as figure:
        axes = figure.subplots()
        values = [bar.value for bar in rows]
        axes.barh(range(len(rows)), values, height=0.62, color=SERIES[0], alpha=0.55)
        axes.errorbar(values, range(len(rows)), xerr=reaches(rows), color=SERIES[0], **POINTS)
        label_values(axes, labels)
        most = max(bar.value if bar.high is None else bar.high for bar in rows)
        axes.set_xlim(0, 100 if most > 50 else max(1.0, 1.05 * most))
        axes.set_xlabel(unit)
        svg = inline(figure, name, title, "A bar for each, with its 95 % interval, cut at the axis' ends.")
    return Plot(svg, title, grid)


def points(of_row: Mapping[str, Sequence[Bar]], name: str, unit: str, title: str, grid: Grid) -> Plot:
    """For each label a point of each row, with its interval."""
    labels = list(dict.fromkeys(bar.label for bars in of_row.values() for bar in bars))
    height = GAP + APART * len(of_row)
    with drawing(480 + width_of(labels, LONGEST_BAR_LABEL), 56 + height * len(labels)) as figure:
        axes = figure.subplots()
        for number, (row, bars) in enumerate(of_row.items()):
            below = APART / height * (number - (len(of_row) - 1) / 2)
            places = [labels.index(bar.label) + below for bar in bars]
            values = [bar.value for bar in bars]
            drawn = axes.errorbar(values, places, xerr=reaches(bars), label=row, **POINTS | look(number))
            drawn.lines[0].set_clip_on(False)  # a point at 0 or 100 stays whole; its interval is cut
        label_values(axes, labels)
        axes.set_yticks([place + 0.5 for place in range(len(labels) - 1)], minor=True)
        axes.tick_params(axis="y", which="minor", length=0)
        axes.grid(axis="y", which="minor")
        low, high = axes.get_xlim()
        axes.set_xlim(max(0.0, low), min(100.0, high))
        axes.set_xlabel(unit)
        legends_above(figure)
        svg = inline(
            figure,
            name,
            title,
            f"A point with its 95 % interval, cut at 0 and 100, for each of: {', '.join(of_row)}.",
        )
    return Plot(svg, title, grid)


def reaches(bars: Sequence[Bar]) -> Any:
    """How far the intervals go to the left and to the right."""
    pairs = [
        (bar.value - bar.low, bar.high - bar.value)
        for bar in bars
        if bar.low is not None and bar.high is not None
    ]
    if len(pairs) < len(bars):
        return None
    return [[max(0.0, side) or math.nan for side in sides] for sides in zip(*pairs, strict=True)]


def label_values(axes: Axes, labels: Sequence[str]) -> None:
    label_rows(axes, labels, LONGEST_BAR_LABEL)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.grid(axis="x")


def reliability(rows: Sequence[Bar], mean: Sequence[float], name: str, title: str, grid: Grid) -> Plot:
    """Share right over mean probability, with the line on which the two are equal."""
    with drawing(420, 340) as figure:
        axes = figure.subplots()
        axes.plot([0, 100], [0, 100], color=MUTED, linestyle=":", linewidth=1.2)
        axes.errorbar(mean, [bar.value for bar in rows], yerr=reaches(rows), color=SERIES[0], **POINTS)
        axes.set_xlim(0, 102)
        axes.set_ylim(0, 102)
        axes.set_xlabel("mean probability of the predicted mentions, %")
        axes.set_ylabel("of them right, %")
        axes.grid()
        svg = inline(
            figure, name, title, "A point for each tenth of probability; on the dotted line all is well."
        )
    return Plot(svg, title, grid)


def lines(rows: Sequence[Mapping[str, float]], name: str, unit: str, title: str) -> Plot:
    """A line for each column behind the first, which is the axis."""
    count, *columns = dict.fromkeys(key for row in rows for key in row)
    with drawing(520, 270) as figure:
        axes = figure.subplots()
        for number, column in enumerate(columns):
            own = [row for row in rows if column in row]
            axes.plot(
                [row[count] for row in own], [row[column] for row in own], label=column, markersize=3.5,
                **look(number),
            )  # fmt: skip
        axes.set_xlabel(count)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_ylabel(unit)
        if unit == "norm" and all(row.get(column, 1) > 0 for row in rows for column in columns):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(Plain())
            axes.yaxis.set_minor_formatter(Plain())
        axes.grid(axis="y")
        legends_above(figure)
        svg = inline(figure, name, title, f"A line for each of: {', '.join(columns)}.")
    cells = [
        [f"{row[count]:.0f}", *(f"{row[it]:.3g}" if it in row else "" for it in columns)] for row in rows
    ]
    return Plot(svg, title, Grid((count, *columns), cells))
