"""A score against what it costs: trained parameters and seconds, a point for each row on a corpus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator

from ner_experiments.report.plot_scores import LONGEST, RATIO, bars, unit_of
from ner_experiments.report.svg import ROW, Plot, cut, drawing, inline, look, width_of
from ner_experiments.statistics import Summary, summarise
from ner_experiments.table_page import Grid
from ner_experiments.table_scores import Page, Result, groups

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
    with drawing(600 + width_of(labels, LONGEST), max(280, 40 + ROW * len(labels))) as figure:
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
    return summarise(result.scores.values())


def cost(result: Result, key: str) -> Summary:
    return summarise(run.metrics[key] for run in result.runs.values())


def draw_costs(axes: Axes, results: Sequence[Result], key: str, labels: Sequence[str]) -> None:
    for number, (result, label) in enumerate(zip(results, labels, strict=True)):
        x, y = cost(result, key), score(result)
        axes.errorbar(
            [x.mean], [y.mean], xerr=bars([x.sd or 0.0]), yerr=bars([y.sd or 0.0]), linestyle="",
            capsize=3, elinewidth=1.2, label=cut(label, LONGEST), **look(number),
        )  # fmt: skip
    scale(axes, [cost(result, key).mean for result in results])
    axes.margins(0.1)
    axes.set_xlabel(COSTS[key])
    axes.grid()


def scale(axes: Axes, values: Sequence[float]) -> None:
    """Logarithmic where they differ much; 1.2 M for 1,200,000."""
    if max(values) >= RATIO * min(values) > 0:
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
