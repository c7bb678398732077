"""The plots of `tables.plots` for pages of the report: the same rows and axes, drawn without Matplotlib, and seeds.

Why there are two drawings of each plot: a report has hundreds of plots, for which Matplotlib would need minutes, in the
colors of its pages. Those of results/ are few, and have to look the same in any viewer, without a style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ner_experiments.report.svg_charts import (
    AXIS,
    BOTTOM,
    COLORS,
    RIGHT,
    TOP,
    LegendEntry,
    Panel,
    Picture,
    labels_width,
    legend_height,
    limits_of,
    sample,
    shaped,
    y_axis_width,
)
from ner_experiments.tables.plots import (
    DESCRIPTION,
    LOG_RATIO,
    MAX_LABEL,
    OURS,
    PAPER,
    Axis,
    Point,
    RowGroup,
    axis_of,
    center,
    half_width,
    row_groups,
    score_grid,
    unit_of,
)
from ner_experiments.tables.render import Grid
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.svg import MARKERS, ROW_HEIGHT, Plot, cut

AXIS_HEIGHT = 220
"""Height of the axes of a plot along a number, in pixels."""
ROW_AXIS_WIDTH = 340
"""Width of the axes of a plot row by row."""
OFFSET = 0.14
"""Distance of a marker from the line of its row."""
CITED = "cited by the paper"
MEAN, SEED = "mean", "one seed"
SEED_DESCRIPTION = (
    "Small points: the seeds. Large points: their means, with 95 % t-intervals. An arrow marks one that leaves the "
    "axis. The numbers are in the table below the picture."
)


def score_plots(page: Page) -> list[Plot]:
    """Plots along the number that the table varies or, without one, row by row, as `tables.plots.score_plots`."""
    if axis := axis_of(page):
        return [axis_plot(axis, "axis", unit_of(page.table, page.results))]
    return [
        row_plot(group, f"rows-{number}", unit_of(page.table, group.results))
        for number, group in enumerate(row_groups(page))
    ]


def axis_plot(axis: Axis, name: str, unit: str) -> Plot:
    """Plot with one line along the axis per series; published and ours in two plots if they are of different data."""
    comparable = all(point.result.comparable for point in axis.points)
    kinds = [kind for kind in (PAPER, OURS) if any(center(it.result, kind) is not None for it in axis.points)]
    sides = [kinds] if comparable else [[kind] for kind in kinds]
    names = list(dict.fromkeys(point.series for point in axis.points))
    width = 560 if comparable else 380
    picture = Picture(width * len(sides), 0)
    values = sorted({point.x for point in axis.points})
    log = values[0] > 0 and values[-1] / values[0] >= LOG_RATIO
    scale: Callable[[float], float] = math.log2 if log else float
    x_limits = limits_of([scale(value) for value in values])
    y_limits = [limits_of(ends(axis.points, kinds)) for kinds in sides]
    lefts = [y_axis_width(limits, AXIS_HEIGHT) for limits in y_limits]
    entries = [
        [legend_of(number, series, kind) for number, series in enumerate(names) for kind in kinds]
        for kinds in sides
    ]
    top = TOP + max(
        legend_height(each, width - left - RIGHT) for each, left in zip(entries, lefts, strict=True)
    )
    picture.height = top + AXIS_HEIGHT + BOTTOM
    for side, kinds in enumerate(sides):
        edges = (side * width + lefts[side], (side + 1) * width - RIGHT, top, top + AXIS_HEIGHT)
        panel = picture.panel(Panel(*edges, x=x_limits, y=y_limits[side]))
        panel.x_axis_at(axis.label, [(scale(value), f"{value:g}") for value in values], grid=False)
        panel.y_axis(unit if comparable else f"{unit}, {kinds[0]}")
        panel.legend(entries[side])
        for number, series in enumerate(names):
            for kind in kinds:
                draw_line(panel, kind, [it for it in axis.points if it.series == series], number, scale)
    title = f"{unit} by {axis.label}"
    svg = picture.svg(name, title, DESCRIPTION)
    return Plot(svg, title, numbers([point.result for point in axis.points]))


def numbers(results: Sequence[Result]) -> Grid:
    """`score_grid`, where nothing is published with "mean" as the heading."""
    grid = score_grid(results)
    published = PAPER in grid.headings
    return grid if published else Grid([MEAN if it == OURS else it for it in grid.headings], grid.lines)


def ends(points: Sequence[Point], kinds: Sequence[str]) -> list[float]:
    """Both ends of all error bars."""
    return [
        middle + sign * half_width(point.result, kind)
        for point in points
        for kind in kinds
        if (middle := center(point.result, kind)) is not None
        for sign in (-1, 1)
    ]


def line_look(number: int, kind: str) -> tuple[str, str]:
    """Style of the line of a series, and its marker: published numbers are dashed and open."""
    color = COLORS[number % len(COLORS)]
    dashes = "; stroke-width: 1.2; stroke-dasharray: 5.9 2.6" if kind == PAPER else "; stroke-width: 1.8"
    return f"stroke: {color}{dashes}", shaped(MARKERS[number % len(MARKERS)], color, filled=kind == OURS)


def legend_of(number: int, series: str, kind: str) -> LegendEntry:
    style, mark = line_look(number, kind)
    return LegendEntry(sample(style) + mark, f"{series or 'score'}, {kind}")


def draw_line(
    panel: Panel, kind: str, points: Sequence[Point], number: int, scale: Callable[[float], float]
) -> None:
    style, mark = line_look(number, kind)
    drawn = [
        (scale(it.x), y, half_width(it.result, kind))
        for it in points
        if (y := center(it.result, kind)) is not None
    ]
    panel.curve([x for x, _, _ in drawn], [y for _, y, _ in drawn], style)
    for x, y, half in drawn:
        if half:
            panel.interval(x, y, y - half, y + half, upright=True, color=COLORS[number % len(COLORS)])
        panel.point(x, y, mark)


Series = tuple[str, str, str, Callable[[Result], bool]]
"""Kind of score, text in the legend, color, and whether a row belongs to it."""
PUBLISHED: tuple[Series, ...] = (
    (PAPER, PAPER, COLORS[1], lambda result: not result.row.cited),
    (PAPER, CITED, AXIS, lambda result: result.row.cited),
)


def row_plot(group: RowGroup, name: str, unit: str) -> Plot:
    """Plot with one line per row, the first on top; published and ours side by side if not comparable."""
    published = any(center(result, PAPER) is not None for result in group.results)
    measured: tuple[Series, ...] = ((OURS, OURS if published else MEAN, COLORS[0], lambda result: True),)
    series = [
        it
        for it in (*PUBLISHED, *measured)
        if any(it[3](result) and center(result, it[0]) is not None for result in group.results)
    ]
    comparable = all(result.comparable for result in group.results)
    sides = [series] if comparable else [[it for it in series if it[0] == kind] for kind in (PAPER, OURS)]
    title = f"{unit}, row by row" + (f": {group.title}" if group.title else "")
    picture = row_picture(group, [side for side in sides if side], unit, comparable=comparable)
    return Plot(picture.svg(name, title, DESCRIPTION), title, numbers(group.results))


def row_picture(
    group: RowGroup, sides: Sequence[Sequence[Series]], unit: str, *, comparable: bool
) -> Picture:
    labels = [cut(result.row.label, MAX_LABEL) for result in group.results]
    left, step = labels_width(labels), ROW_AXIS_WIDTH + RIGHT
    entries = [[LegendEntry(look(it), it[1]) for it in side] for side in sides]
    top = TOP + max(legend_height(each, ROW_AXIS_WIDTH) for each in entries)
    height = ROW_HEIGHT * len(labels)
    picture = Picture(left + step * len(sides), top + height + BOTTOM)
    for place, side in enumerate(sides):
        limits = limits_of([end for it in side for end in ends_of(group.results, it)])
        start = left + step * place
        panel = picture.panel(
            Panel(start, start + ROW_AXIS_WIDTH, top, top + height, x=limits, y=(len(labels) - 0.5, -0.5))
        )
        panel.x_axis(unit if comparable else f"{unit}, {side[0][0]}", 6)
        panel.rows(labels if place == 0 else [])
        panel.row_lines(len(labels))
        panel.legend(entries[place])
        both = len({it[0] for it in side}) > 1
        for it in side:
            draw_series(panel, group.results, it, (OFFSET if it[0] == OURS else -OFFSET) if both else 0.0)
    return picture


def look(series: Series) -> str:
    return shaped("o" if series[0] == OURS else "D", series[2], filled=series[0] == OURS)


def ends_of(results: Sequence[Result], series: Series) -> list[float]:
    kind, belongs = series[0], series[3]
    return [
        middle + sign * half_width(result, kind)
        for result in results
        if belongs(result) and (middle := center(result, kind)) is not None
        for sign in (-1, 1)
    ]


def draw_series(panel: Panel, results: Sequence[Result], series: Series, offset: float) -> None:
    kind, _, color, belongs = series
    for number, result in enumerate(results):
        x = center(result, kind)
        if x is None or not belongs(result):
            continue
        if half := half_width(result, kind):
            panel.interval(x, number + offset, x - half, x + half, upright=False, color=color)
        panel.point(x, number + offset, look(series))


def seed_plots(page: Page) -> list[Plot]:
    """Plots of a sweep, one per corpus: its rows with every seed as a point."""
    return [
        seed_plot(group, f"seeds-{number}", unit_of(page.table, group.results))
        for number, group in enumerate(row_groups(page))
    ]


def seed_plot(group: RowGroup, name: str, unit: str) -> Plot:
    """Every seed as a small point, with the mean and its interval, one line per row.

    The axis spans the points: the interval of two seeds, which is many times as wide, may go beyond it.
    """
    labels = [cut(result.row.label, MAX_LABEL) for result in group.results]
    scores = [score for result in group.results for score in result.scores.values()]
    margin = 0.08 * (max(scores) - min(scores)) or 0.5
    limits = (min(scores) - margin, max(scores) + margin)
    means: Series = (OURS, MEAN, COLORS[0], lambda result: True)
    entries = [LegendEntry(look(means), MEAN), LegendEntry(shaped("o", COLORS[1]), SEED)]
    left = labels_width(labels)
    top = TOP + legend_height(entries, ROW_AXIS_WIDTH)
    height = ROW_HEIGHT * len(labels)
    picture = Picture(left + ROW_AXIS_WIDTH + RIGHT, top + height + BOTTOM)
    panel = picture.panel(
        Panel(left, left + ROW_AXIS_WIDTH, top, top + height, x=limits, y=(len(labels) - 0.5, -0.5))
    )
    panel.x_axis(unit, 6)
    panel.rows(labels)
    panel.row_lines(len(labels))
    panel.legend(entries)
    draw_series(panel, group.results, means, -OFFSET)
    for number, result in enumerate(group.results):
        for score in result.scores.values():
            panel.point(score, number + 0.2, shaped("o", COLORS[1]))
    title = f"{unit} of each seed" + (f": {group.title}" if group.title else "")
    return Plot(picture.svg(name, title, SEED_DESCRIPTION), title, numbers(group.results))
