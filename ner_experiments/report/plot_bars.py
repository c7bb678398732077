"""Scores by kind of mention with their intervals, and gradient norms by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.ticker import MaxNLocator

from ner_experiments.report.svg import MARKERS, SERIES, Plot, drawing, inline, legend_above
from ner_experiments.statistics import Summary
from ner_experiments.table_page import Grid

ROW, LETTER, LONGEST = 24, 6.6, 30


def bars(rows: Sequence[tuple[str, Summary]], name: str, unit: str, title: str, grid: Grid) -> Plot:
    """A bar for each, with its interval where there is one."""
    labels = [text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…" for text, _ in rows]
    with drawing(420 + LETTER * max(map(len, labels)), 56 + ROW * len(rows)) as figure:
        axes = figure.subplots()
        values = [it.mean for _, it in rows]
        reach = [0.0 if it.high is None else it.high - it.mean for _, it in rows]
        axes.barh(range(len(rows)), values, height=0.62, color=SERIES[0], alpha=0.55)
        axes.errorbar(
            values, range(len(rows)), xerr=reach, linestyle="", marker="o", color=SERIES[0], capsize=3
        )
        axes.set_yticks(range(len(rows)), labels)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.set_xlim(0, 100)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel(unit)
        axes.grid(axis="x")
        svg = inline(figure, name, title, "A bar for each kind, with its 95 % interval, cut at 0 and 100.")
    return Plot(svg, title, grid)


def layers(rows: Sequence[Mapping[str, float]], name: str, title: str) -> Plot:
    """A line for each layer over the steps, or epochs, that the first column counts."""
    count, *columns = dict.fromkeys(key for row in rows for key in row)
    with drawing(720, 300 + 10 * len(columns)) as figure:
        axes = figure.subplots()
        for number, column in enumerate(columns):
            own = [row for row in rows if column in row]
            axes.plot(
                [row[count] for row in own], [row[column] for row in own], label=column,
                color=SERIES[number % len(SERIES)], marker=MARKERS[number % len(MARKERS)], markersize=3.5,
            )  # fmt: skip
        axes.set_xlabel(count)
        axes.set_ylabel("norm of the gradient")
        if all(value > 0 for row in rows for value in list(row.values())[1:]):
            axes.set_yscale("log")
        axes.grid(axis="y")
        legend_above(axes, columns=3)
        svg = inline(figure, name, title, f"A line for each of: {', '.join(columns)}.")
    lines = [
        [f"{row[count]:.0f}", *(f"{row.get(column, float('nan')):.3g}" for column in columns)] for row in rows
    ]
    return Plot(svg, title, Grid((count, *columns), lines))
