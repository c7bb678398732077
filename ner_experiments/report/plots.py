"""Figures by kind of mention with their intervals, calibration, and gradient norms by layer.

A score against what it costs: trained parameters and seconds, a point for each row on a corpus.

Learning curves: what dev said after each epoch, and the training loss, seed by seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, LogFormatter, LogLocator, MaxNLocator

from ner_experiments.analysis.statistics import Summary, summarize
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.runs.run import Run
from ner_experiments.tables.plots import LOG_RATIO, MAX_LABEL, error_bars, unit_of
from ner_experiments.tables.render import Grid
from ner_experiments.tables.scores import Page, Result, groups
from ner_experiments.tables.svg import (
    MARKERS,
    MUTED,
    ROW_HEIGHT,
    SERIES,
    Plot,
    cut,
    drawing,
    inline,
    label_rows,
    label_width,
    legends_above,
    series_style,
)

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
    with drawing(420 + label_width(labels, LONGEST_BAR_LABEL), 56 + ROW_HEIGHT * len(rows)) as figure:
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
    with drawing(480 + label_width(labels, LONGEST_BAR_LABEL), 56 + height * len(labels)) as figure:
        axes = figure.subplots()
        for number, (row, bars) in enumerate(of_row.items()):
            below = APART / height * (number - (len(of_row) - 1) / 2)
            places = [labels.index(bar.label) + below for bar in bars]
            values = [bar.value for bar in bars]
            drawn = axes.errorbar(
                values, places, xerr=reaches(bars), label=row, **POINTS | series_style(number)
            )
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
                **series_style(number),
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


COSTS = {"parameters": "trained parameters", "seconds": "seconds of a run"}
"""Of a run's metrics.json, and what an axis says of it."""
FEWEST = 2
"""Rows that make a picture."""
SIDES = ((11, 9), (-11, 9), (11, -9), (-11, -9), (11, 25), (-11, 25), (11, -25), (-11, -25))
"""Where the number of a point may stand: beside its bars, in pixels."""
NEAR = 14
"""Pixels that a number keeps from points and from other numbers, if it can."""
NUMBER = 14
"""Pixels that a number takes, in height and width."""
DESCRIPTION = (
    "A point for each row, with its number: the mean over seeds with its standard deviation; "
    "on the left against trained parameters, on the right against the seconds of a run."
)


def cost_plots(page: Page) -> list[Plot]:
    """One for each corpus with rows to be held against each other."""
    found = [group for group in groups(page.results) if len(group) >= FEWEST]
    made = []
    for number, group in enumerate(found):
        made.append(against(group, f"cost-{number}", unit_of(page.table, group), group[0].data["name"]))
    return made


def against(results: Sequence[Result], name: str, unit: str, data: str) -> Plot:
    labels = [f"{number}. {it.row.label}" for number, it in enumerate(results, start=1)]
    with drawing(600 + label_width(labels, MAX_LABEL), max(280, 40 + ROW_HEIGHT * len(labels))) as figure:
        sides = dict(zip(COSTS, figure.subplots(1, len(COSTS), sharey=True), strict=True))
        for key, axes in sides.items():
            draw_costs(axes, results, key, labels)
        sides["parameters"].set_ylabel(unit)
        figure.legend(*sides["parameters"].get_legend_handles_labels(), loc="outside right upper")
        figure.draw_without_rendering()  # from here on it is known where points are
        for key, axes in sides.items():
            number_points(axes, [(cost(it, key).mean, score(it).mean) for it in results])
        title = f"{unit} against parameters and seconds: {data}"
        svg = inline(figure, name, title, DESCRIPTION)
    return Plot(svg, title, cost_grid(results, labels, unit))


def score(result: Result) -> Summary:
    return summarize(result.scores.values())


def cost(result: Result, key: str) -> Summary:
    return summarize(run.metrics[key] for run in result.runs.values())


def draw_costs(axes: Axes, results: Sequence[Result], key: str, labels: Sequence[str]) -> None:
    for number, (result, label) in enumerate(zip(results, labels, strict=True)):
        x, y = cost(result, key), score(result)
        axes.errorbar(
            [x.mean], [y.mean], xerr=error_bars([x.sd or 0.0]), yerr=error_bars([y.sd or 0.0]), linestyle="",
            capsize=3, elinewidth=1.2, label=cut(label, MAX_LABEL), **series_style(number),
        )  # fmt: skip
    scale(axes, [cost(result, key).mean for result in results])
    axes.margins(0.1)
    axes.set_xlabel(COSTS[key])
    axes.grid()


def scale(axes: Axes, values: Sequence[float]) -> None:
    """Logarithmic where they differ much; 1.2 M for 1,200,000."""
    if max(values) >= LOG_RATIO * min(values) > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.minorticks_off()
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(EngFormatter())


def number_points(axes: Axes, points: Sequence[tuple[float, float]]) -> None:
    """From 1, each at the first side within the picture that is free."""
    pixel = 72 / axes.figure.dpi
    centres = axes.transData.transform(points) * pixel
    picture = axes.figure.bbox.padded(-NUMBER / 2 / pixel)
    taken = list(centres)
    for number, (point, centre) in enumerate(zip(points, centres, strict=True), start=1):
        within = [side for side in SIDES if picture.contains(*((centre + side) / pixel))]
        free = (side for side in within if all(np.hypot(*(centre + side - it)) >= NEAR for it in taken))
        side = next(free, within[0])
        taken.append(centre + side)
        text = axes.annotate(
            f"{number}", point, xytext=side, textcoords="offset points", ha="center", va="center"
        )
        text.set_in_layout(False)


def cost_grid(results: Sequence[Result], labels: Sequence[str], unit: str) -> Grid:
    lines = []
    for result, label in zip(results, labels, strict=True):
        cells = [printed(score(result), 2), *(printed(cost(result, key), 0) for key in COSTS)]
        lines.append([label, *cells])
    return Grid(("", unit, *COSTS.values()), lines)


def printed(found: Summary, digits: int) -> str:
    """Without a deviation of nothing, which that of parameters is."""
    return f"{found.mean:,.{digits}f}" + (f" ± {found.sd:,.{digits}f}" if found.sd else "")


LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
MOST_SEEDS, MOST_EPOCHS = 12, 60
"""Of a picture, and of the table of its numbers."""
Limits = tuple[float, float]


def dev(runs: Mapping[int, Run], name: str, title: str, limits: Limits) -> Plot:
    """One small picture of a row; `limits` are those of all rows on its corpus, so that they compare."""
    with drawing(330, 200) as figure:
        axes = figure.subplots()
        draw_dev(axes, runs, seeds_shown=len(runs) > 1)
        axes.set_ylim(*limits)
        svg = inline(figure, name, title, described(runs))
    return Plot(svg, title, curve_grid(runs))


def dev_and_loss(runs: Mapping[int, Run], name: str) -> Plot:
    with drawing(720, 280) as figure:
        left, right = figure.subplots(1, 2)
        draw_dev(left, runs, seeds_shown=True)
        draw_curves(right, runs, "train_loss", 1.0)
        right.set_ylabel("training loss")
        title = "Learning curves, seed by seed"
        svg = inline(figure, name, title, described(runs))
    return Plot(svg, title, curve_grid(runs))


def described(runs: Mapping[int, Run]) -> str:
    best = ", ".join(f"seed {seed}: epoch {run.metrics['best_epoch']}" for seed, run in runs.items())
    return f"A line for each seed. A mark shows the epoch that dev chose ({best})."


def draw_dev(axes: Axes, runs: Mapping[int, Run], *, seeds_shown: bool) -> None:
    run = next(iter(runs.values()))
    draw_curves(axes, runs, f"dev_{run.primary_metric}", 100.0)
    axes.set_ylabel(f"dev {PRIMARY_METRIC[run.metrics['task']][1]}")
    if seeds_shown:
        axes.legend(ncols=3, loc="best", title="seed", handlelength=1.6, columnspacing=0.8)


def draw_curves(axes: Axes, runs: Mapping[int, Run], column: str, factor: float) -> None:
    for number, (seed, run) in enumerate(list(runs.items())[:MOST_SEEDS]):
        rows = [row for row in run.epochs() if column in row]
        epochs, values = [row["epoch"] for row in rows], [factor * row[column] for row in rows]
        color = SERIES[number % len(SERIES)]
        axes.plot(epochs, values, color=color, linestyle=LINES[number % len(LINES)], label=f"{seed}")
        chosen = run.metrics.get("best_epoch")
        if chosen in epochs:
            place = epochs.index(chosen)
            axes.plot(epochs[place], values[place], MARKERS[number % len(MARKERS)], color=color)
    axes.set_xlabel("epoch", color=MUTED)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.grid(axis="y")


def limits(rows: Sequence[Mapping[int, Run]]) -> Limits:
    """Of all dev scores, with some room."""
    values = [
        100 * row[f"dev_{run.primary_metric}"]
        for runs in rows
        for run in runs.values()
        for row in run.epochs()
        if f"dev_{run.primary_metric}" in row
    ]
    if not values:
        return 0.0, 100.0
    room = max(1.0, 0.05 * (max(values) - min(values)))
    return max(min(values) - room, -2.0), min(max(values) + room, 102.0)


def curve_grid(runs: Mapping[int, Run]) -> Grid:
    """Dev scores by epoch and seed; of long trainings every so many epochs."""
    curves = {
        seed: {
            int(row["epoch"]): 100 * row[f"dev_{run.primary_metric}"]
            for row in run.epochs()
            if f"dev_{run.primary_metric}" in row
        }
        for seed, run in runs.items()
    }
    epochs = sorted({epoch for curve in curves.values() for epoch in curve})
    step = -(-len(epochs) // MOST_EPOCHS) or 1
    lines = [
        [f"{epoch}", *(f"{curve[epoch]:.2f}" if epoch in curve else "" for curve in curves.values())]
        for epoch in epochs[step - 1 :: step]
    ]
    return Grid(["epoch", *(f"seed {seed}" for seed in curves)], lines)
