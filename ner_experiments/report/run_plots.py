"""Plots of the report: scores by group, calibration, gradient norms, score against cost, and learning curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import NamedTuple, TypeVar

from matplotlib.ticker import MaxNLocator

from ner_experiments.analysis.statistics import Summary, summarize
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.report.svg_charts import (
    AXIS,
    BOTTOM,
    COLORS,
    RIGHT,
    SMALL,
    TOP,
    LegendEntry,
    Panel,
    Picture,
    labels_width,
    legend_height,
    limits_of,
    line_style,
    marker,
    sample,
    ticks,
    y_axis_width,
)
from ner_experiments.runs.run import Run
from ner_experiments.tables.plots import LOG_RATIO, unit_of
from ner_experiments.tables.render import Grid
from ner_experiments.tables.scores import Page, Result, groups
from ner_experiments.tables.svg import (
    MARKERS,
    ROW_HEIGHT,
    Plot,
    cut,
    label_width,
)

MAX_BAR_LABEL = 30
"""Letters of a label before it is cut."""
GROUP_GAP, POINT_GAP = 14, 11
"""Pixels between the points of two groups, and between the points of one group."""
COSTS = {"parameters": "trained parameters", "seconds": "seconds of a run"}
"""Keys of metrics.json, and the labels of their axes."""
MIN_ROWS = 2
"""Smallest number of rows with a picture."""
SIDES = ((11, 9), (-11, 9), (11, -9), (-11, -9), (11, 25), (-11, 25), (11, -25), (-11, -25))
"""Candidate offsets of a point's number from its point, in pixels."""
MIN_DISTANCE = 14
"""Pixels between a number and any point or other number, if there is room."""
NUMBER_SIZE = 14
"""Height and width of a number in pixels."""
MIN_LOG_TICKS = 4
COST_WIDTH, COST_HEIGHT = 640, 220
"""Width of the picture of costs, and height of its axes, in pixels."""
COST_DESCRIPTION = (
    "One numbered point per row: mean over seeds with standard deviation, "
    "on the left against trained parameters, on the right against seconds of a run."
)
MAX_SEEDS, MAX_EPOCHS = 12, 60
"""Limits of the seeds that have a line each, where more are drawn as a band, and of the lines of a table."""
BAND_TEXT = f"Of more than {MAX_SEEDS} seeds: the mean, and a band from the lowest to the highest."
Limits = tuple[float, float]
Item = TypeVar("Item")


class Bar(NamedTuple):
    """A value with its interval, if there is one."""

    label: str
    value: float
    low: float | None
    high: float | None


def bar_plot(rows: Sequence[Bar], name: str, unit: str, title: str, grid: Grid) -> Plot:
    """Horizontal bars from 0, on an axis up to 100 or less if the values are small."""
    labels = [cut(bar.label, MAX_BAR_LABEL) for bar in rows]
    most = max(bar.value if bar.high is None else bar.high for bar in rows)
    picture = Picture(420 + label_width(labels, MAX_BAR_LABEL), 56 + ROW_HEIGHT * len(rows))
    panel = picture.panel(
        Panel(
            labels_width(labels),
            picture.width - RIGHT,
            TOP,
            picture.height - BOTTOM,
            x=(0, 100 if most > 50 else max(1.0, 1.05 * most)),
            y=(len(rows) - 0.5, -0.5),
        )
    )
    panel.x_axis(unit, 5)
    panel.rows(labels)
    for number, (bar, interval) in enumerate(zip(rows, intervals(rows), strict=True)):
        panel.bar(number, bar.value)
        if interval:
            panel.interval(bar.value, number, *interval, upright=False)
        panel.point(bar.value, number, marker(0))
    svg = picture.svg(name, title, "One bar each, with its 95 % interval, cut at the ends of the axis.")
    return Plot(svg, title, grid)


def points(bars_by_row: Mapping[str, Sequence[Bar]], name: str, unit: str, title: str, grid: Grid) -> Plot:
    """One point per row for each group, with its interval."""
    labels = list(dict.fromkeys(bar.label for bars in bars_by_row.values() for bar in bars))
    shown = [cut(label, MAX_BAR_LABEL) for label in labels]
    height = GROUP_GAP + POINT_GAP * len(bars_by_row)
    width = 480 + label_width(labels, MAX_BAR_LABEL)
    left = labels_width(shown)
    entries = [LegendEntry(marker(number), row) for number, row in enumerate(bars_by_row)]
    top = TOP + legend_height(entries, width - RIGHT - left)
    picture = Picture(width, top - TOP + 56 + height * len(labels))
    ends = [end for bars in bars_by_row.values() for bar in bars for end in bar[1:] if end is not None]
    low, high = limits_of(ends)
    panel = picture.panel(
        Panel(
            left,
            width - RIGHT,
            top,
            picture.height - BOTTOM,
            x=(max(0.0, low), min(100.0, high)),
            y=(len(labels) - 0.5, -0.5),
        )
    )
    panel.x_axis(unit, 5)
    panel.rows(shown)
    panel.row_borders(len(labels))
    panel.legend(entries)
    for number, bars in enumerate(bars_by_row.values()):
        below = POINT_GAP / height * (number - (len(bars_by_row) - 1) / 2)
        color = COLORS[number % len(COLORS)]
        for bar, interval in zip(bars, intervals(bars), strict=True):
            place = labels.index(bar.label) + below
            if interval:
                panel.interval(bar.value, place, *interval, upright=False, color=color)
            panel.point(bar.value, place, marker(number), clip=False)  # not cut off at 0 or 100
    description = f"One point each, with its 95 % interval, cut at 0 and 100: {', '.join(bars_by_row)}."
    svg = picture.svg(name, title, description)
    return Plot(svg, title, grid)


def intervals(bars: Sequence[Bar]) -> list[tuple[float, float] | None]:
    """The interval of each bar; None for all if some bar has none."""
    complete = [(bar.low, bar.high) for bar in bars if bar.low is not None and bar.high is not None]
    return [*complete] if len(complete) == len(bars) else [None] * len(bars)


def reliability(rows: Sequence[Bar], mean: Sequence[float], name: str, title: str, grid: Grid) -> Plot:
    """Share of correct mentions over mean probability, with the diagonal."""
    picture = Picture(420, 340)
    limits, bottom = (0.0, 102.0), picture.height - BOTTOM
    left = y_axis_width(limits, bottom - TOP)
    panel = picture.panel(Panel(left, picture.width - RIGHT, TOP, bottom, x=limits, y=limits))
    panel.x_axis("mean probability of the predicted mentions, %", 6)
    panel.y_axis("correct among them, %")
    panel.curve([0, 100], [0, 100], f"stroke: {AXIS}; stroke-width: 1.2; stroke-dasharray: 1.2 2")
    for probability, bar, interval in zip(mean, rows, intervals(rows), strict=True):
        if interval:
            panel.interval(probability, bar.value, *interval, upright=True)
        panel.point(probability, bar.value, marker(0))
    description = "One point per tenth of probability; on the dotted line, probabilities are calibrated."
    svg = picture.svg(name, title, description)
    return Plot(svg, title, grid)


def line_plot(rows: Sequence[Mapping[str, float]], name: str, unit: str, title: str) -> Plot:
    """One line per column; the first column is the axis. Norms have a logarithmic scale."""
    axis, *columns = dict.fromkeys(key for row in rows for key in row)
    values = [row[column] for column in columns for row in rows if column in row]
    log = unit == "norm" and all(value > 0 for value in values)
    y = limits_of([scaled(value, logarithmic=log) for value in values])
    entries = [
        LegendEntry(sample(line_style(number)) + marker(number), column)
        for number, column in enumerate(columns)
    ]
    picture, left = Picture(520, 250), y_axis_width((0.001, 0.002) if log else y, 200)
    top = TOP + legend_height(entries, picture.width - left - RIGHT)
    picture.height += top - TOP
    panel = picture.panel(
        Panel(
            left,
            picture.width - RIGHT,
            top,
            picture.height - BOTTOM,
            limits_of([row[axis] for row in rows]),
            y,
        )
    )
    panel.x_axis(axis, 6, integer=True, grid=False)
    panel.y_axis(unit, log_ticks(y) if log else None)
    panel.legend(entries)
    for number, column in enumerate(columns):
        points = [(row[axis], scaled(row[column], logarithmic=log)) for row in rows if column in row]
        panel.curve([x for x, _ in points], [y for _, y in points], line_style(number))
        for x, height in points:
            panel.point(x, height, marker(number))
    svg = picture.svg(name, title, f"One line each: {', '.join(columns)}.")
    cells = [
        [f"{row[axis]:.0f}", *(f"{row[column]:.3g}" if column in row else "" for column in columns)]
        for row in rows
    ]
    return Plot(svg, title, Grid((axis, *columns), cells))


def log_ticks(limits: Limits) -> list[tuple[float, str]]:
    """Ticks of a logarithmic axis, at least three: powers of ten, or with finer steps where these are too few."""
    powers = range(math.floor(limits[0]), math.ceil(limits[1]) + 1)
    found: list[float] = []
    for digits in ((1,), (1, 2, 5), range(1, 10), [1 + step / 20 for step in range(180)]):
        found = [
            value
            for power in powers
            for digit in digits
            if limits[0] <= math.log10(value := digit * 10.0**power) <= limits[1]
        ]
        if len(found) >= MIN_LOG_TICKS:
            break
    return [(math.log10(value), f"{value:.4g}") for value in found]


def cost_plots(page: Page) -> list[Plot]:
    """Score against cost, one plot per corpus with rows to compare."""
    comparable = [group for group in groups(page.results) if len(group) >= MIN_ROWS]
    return [
        cost_plot(group, f"cost-{number}", unit_of(page.table, group), group[0].data["name"])
        for number, group in enumerate(comparable)
    ]


def cost_plot(results: Sequence[Result], name: str, unit: str, data: str) -> Plot:
    labels = [f"{number}. {result.row.label}" for number, result in enumerate(results, start=1)]
    entries = [LegendEntry(marker(number), label) for number, label in enumerate(labels)]
    y = limits_of([end for result in results for end in ends(score(result))])
    left, width = y_axis_width(y, COST_HEIGHT), COST_WIDTH / len(COSTS)
    legend_width = COST_WIDTH - left - RIGHT
    top = TOP + NUMBER_SIZE + legend_height(entries, legend_width)
    bottom = top + COST_HEIGHT
    picture = Picture(COST_WIDTH, bottom + BOTTOM)
    for number, key in enumerate(COSTS):
        panel = picture.panel(
            Panel(number * width + left, (number + 1) * width - RIGHT, top, bottom, x=(0, 1), y=y)
        )
        draw_costs(panel, results, key)
        panel.y_axis(unit if number == 0 else "")
        centers = [(panel.px(x), panel.py(y)) for x, y in centers_of(results, key)]
        within = (number * width, top - NUMBER_SIZE, (number + 1) * width, bottom)
        for place, (x_text, y_text) in enumerate(number_places(centers, within), start=1):
            panel.text(x_text, y_text + 4, f"{place}", SMALL, "middle")
    picture.panels[0].legend(entries, width=legend_width, above=NUMBER_SIZE)
    title = f"{unit} against parameters and seconds: {data}"
    return Plot(picture.svg(name, title, COST_DESCRIPTION), title, cost_grid(results, labels, unit))


def score(result: Result) -> Summary:
    return summarize(result.scores.values())


def cost(result: Result, key: str) -> Summary:
    return summarize(run.metrics[key] for run in result.runs.values())


def ends(summary: Summary) -> tuple[float, float]:
    """Mean minus and plus the standard deviation."""
    return summary.mean - (summary.sd or 0.0), summary.mean + (summary.sd or 0.0)


def is_logarithmic(values: Sequence[float]) -> bool:
    return max(values) >= LOG_RATIO * min(values) > 0


def scaled(value: float, *, logarithmic: bool) -> float:
    """The value's place on an axis. On a logarithmic one, values of 0 or below lie to the left of all others."""
    if not logarithmic:
        return value
    return math.log10(value) if value > 0 else -99.0


def centers_of(results: Sequence[Result], key: str) -> list[tuple[float, float]]:
    """The points of the rows, on the scale of the cost's axis."""
    means = [cost(result, key).mean for result in results]
    log = is_logarithmic(means)
    return [
        (scaled(mean, logarithmic=log), score(result).mean)
        for mean, result in zip(means, results, strict=True)
    ]


def draw_costs(panel: Panel, results: Sequence[Result], key: str) -> None:
    """Draw one point per row with its standard deviations, and the x axis."""
    means = [cost(result, key).mean for result in results]
    log = is_logarithmic(means)
    low, high = limits_of([scaled(mean, logarithmic=log) for mean in means])
    margin = 0.05 * (high - low)
    panel.x = (low - margin, high + margin)
    panel.x_axis_at(COSTS[key], cost_ticks(panel.x, logarithmic=log))
    for number, (result, (x, y)) in enumerate(zip(results, centers_of(results, key), strict=True)):
        color = COLORS[number % len(COLORS)]
        if cost(result, key).sd:
            left, right = (scaled(end, logarithmic=log) for end in ends(cost(result, key)))
            panel.interval(x, y, left, right, upright=False, color=color)
        if score(result).sd:
            panel.interval(x, y, *ends(score(result)), upright=True, color=color)
        panel.point(x, y, marker(number))


def cost_ticks(limits: Limits, *, logarithmic: bool) -> list[tuple[float, str]]:
    """Round costs with their texts, such as 1.2 M."""
    if not logarithmic:
        return [(value, engineering(value)) for value, _ in ticks(*limits, MaxNLocator(4))]
    powers = range(math.floor(limits[0]), math.ceil(limits[1]) + 1)
    values = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [(math.log10(it), engineering(it)) for it in values if limits[0] <= math.log10(it) <= limits[1]]


def engineering(value: float) -> str:
    """1.2 M for 1200000."""
    for power, prefix in ((9, "G"), (6, "M"), (3, "k")):
        if abs(value) >= 10**power:
            return f"{value / 10**power:g} {prefix}"
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")


def number_places(
    centers: Sequence[tuple[float, float]], within: tuple[float, float, float, float]
) -> list[tuple[float, float]]:
    """Place of the number of each point: the first of the offsets in `SIDES` that is free and within the four sides."""
    left, top, right, bottom = within
    half = NUMBER_SIZE / 2
    taken = list(centers)
    for x, y in centers:
        sides = [
            (x + dx, y - dy)
            for dx, dy in SIDES
            if left + half <= x + dx <= right - half and top + half <= y - dy <= bottom - half
        ]
        free = (it for it in sides if all(math.hypot(it[0] - a, it[1] - b) >= MIN_DISTANCE for a, b in taken))
        taken.append(next(free, (sides or [(x, y)])[0]))
    return taken[len(centers) :]


def cost_grid(results: Sequence[Result], labels: Sequence[str], unit: str) -> Grid:
    lines = []
    for result, label in zip(results, labels, strict=True):
        cells = [mean_and_sd(score(result), 2), *(mean_and_sd(cost(result, key), 0) for key in COSTS)]
        lines.append([label, *cells])
    return Grid(("", unit, *COSTS.values()), lines)


def mean_and_sd(summary: Summary, digits: int) -> str:
    """Mean ± standard deviation; the mean alone if the deviation is 0, as that of parameters is."""
    return f"{summary.mean:,.{digits}f}" + (f" ± {summary.sd:,.{digits}f}" if summary.sd else "")


def dev_curves(runs: Mapping[int, Run], name: str, title: str, limits: Limits) -> Plot:
    """Small plot of a row's dev scores. limits: of the y axis, shared by the rows on a corpus."""
    curve = dev_curve(runs)
    picture = Picture(330, 200)
    draw_curves(picture, [(curve, limits)], seeds_shown=len(runs) > 1)
    svg = picture.svg(name, title, curve_description(runs))
    return Plot(svg, title, curve_grid(runs))


def dev_and_loss_curves(runs: Mapping[int, Run], name: str) -> Plot:
    """Dev scores and training loss of each seed."""
    curves = [dev_curve(runs), Curves(runs, "train_loss", 1.0, "training loss")]
    picture = Picture(720, 280)
    draw_curves(picture, [(curve, curve.limits()) for curve in curves], seeds_shown=True)
    title = (
        "Learning curves, seed by seed" if len(runs) <= MAX_SEEDS else f"Learning curves of {len(runs)} seeds"
    )
    svg = picture.svg(name, title, curve_description(runs))
    return Plot(svg, title, curve_grid(runs))


def curve_description(runs: Mapping[int, Run]) -> str:
    if len(runs) > MAX_SEEDS:
        return BAND_TEXT
    best = ", ".join(f"seed {seed}: epoch {run.metrics['best_epoch']}" for seed, run in runs.items())
    return f"One line per seed. A marker shows the epoch that dev chose ({best})."


@dataclass(frozen=True)
class Curves:
    """A column of the learning curves of a row's runs, times a factor."""

    runs: Mapping[int, Run]
    column: str
    factor: float
    label: str

    @cached_property
    def lines(self) -> dict[int, tuple[list[float], list[float]]]:
        """Epochs and values by seed."""
        by_seed = {}
        for seed, run in self.runs.items():
            rows = [row for row in run.epochs() if self.column in row]
            by_seed[seed] = [row["epoch"] for row in rows], [self.factor * row[self.column] for row in rows]
        return by_seed

    @property
    def is_band(self) -> bool:
        return len(self.runs) > MAX_SEEDS

    @cached_property
    def band(self) -> list[tuple[float, float, float, float]]:
        """Epoch, lowest value, mean and highest value of the seeds that have a finite value there."""
        by_epoch: dict[float, list[float]] = {}
        for epochs, values in self.lines.values():
            for epoch, value in zip(epochs, values, strict=True):
                if math.isfinite(value):
                    by_epoch.setdefault(epoch, []).append(value)
        return [(epoch, min(them), fmean(them), max(them)) for epoch, them in sorted(by_epoch.items())]

    def limits(self) -> Limits:
        return limits_of([value for _, values in self.lines.values() for value in values])


def dev_curve(runs: Mapping[int, Run]) -> Curves:
    run = next(iter(runs.values()))
    label = f"dev {PRIMARY_METRIC[run.metrics['task']][1]}"
    return Curves(runs, f"dev_{run.primary_metric}", 100.0, label)


def draw_curves(picture: Picture, curves: Sequence[tuple[Curves, Limits]], *, seeds_shown: bool) -> None:
    """Draw curves side by side, with a marker at the epoch that dev chose; the legend makes the picture taller."""
    width, bottom = picture.width / len(curves), picture.height - BOTTOM
    entries, legend_title = curve_legend(curves[0][0])
    lefts = [y_axis_width(limits, bottom - TOP) for _, limits in curves]
    extra = legend_height(entries, width - lefts[0] - RIGHT, legend_title) if seeds_shown else 0.0
    picture.height += extra
    for number, ((curve, limits), left) in enumerate(zip(curves, lefts, strict=True)):
        epochs = [epoch for xs, _ in curve.lines.values() for epoch in xs]
        sides = number * width + left, (number + 1) * width - RIGHT, TOP + extra, bottom + extra
        x = (
            limits_of(epochs)
            if len({*epochs}) > 1
            else (min(epochs, default=1) - 1, max(epochs, default=1) + 1)
        )
        panel = picture.panel(Panel(*sides, x=x, y=limits))
        panel.x_axis("epoch", 5, integer=True, grid=False, color=AXIS)
        panel.y_axis(curve.label)
        (draw_band if curve.is_band else draw_seeds)(panel, curve)
        if seeds_shown and number == 0:
            panel.legend(entries, legend_title)


def curve_legend(curves: Curves) -> tuple[list[LegendEntry], str]:
    """Entries and title of the legend of learning curves."""
    if curves.is_band:
        return [LegendEntry(sample(line_style(0)), f"mean of {len(curves.runs)} seeds")], ""
    seeds = enumerate(curves.runs)
    return [LegendEntry(sample(line_style(number)), f"{seed}") for number, seed in seeds], "seed"


def draw_seeds(panel: Panel, curves: Curves) -> None:
    """Draw a line for each seed, with a marker at the epoch that dev chose."""
    for place, (seed, (xs, ys)) in enumerate(curves.lines.items()):
        panel.curve(xs, ys, line_style(place))
        best = curves.runs[seed].metrics.get("best_epoch")
        if best in xs:
            shape = MARKERS[place % len(MARKERS)]
            panel.point(best, ys[xs.index(best)], marker(place % len(COLORS), shape))


def draw_band(panel: Panel, curves: Curves) -> None:
    """Draw the mean over seeds and the band from the lowest to the highest; of one epoch, a point and an interval."""
    if len(curves.band) == 1:
        ((epoch, low, mean, high),) = curves.band
        panel.interval(epoch, mean, low, high, upright=True)
        panel.point(epoch, mean, marker(0))
    elif curves.band:
        epochs, lows, means, highs = zip(*curves.band, strict=True)
        panel.band(epochs, lows, highs, COLORS[0])
        panel.curve(epochs, means, line_style(0))


def curve_limits(rows: Sequence[Mapping[int, Run]]) -> Limits:
    """Axis limits that hold all dev scores, with a margin."""
    values = [
        100 * row[f"dev_{run.primary_metric}"]
        for runs in rows
        for run in runs.values()
        for row in run.epochs()
        if f"dev_{run.primary_metric}" in row
    ]
    if not values:
        return 0.0, 100.0
    margin = max(1.0, 0.05 * (max(values) - min(values)))
    return max(min(values) - margin, -2.0), min(max(values) + margin, 102.0)


def curve_grid(runs: Mapping[int, Run]) -> Grid:
    """Dev scores by epoch and seed, or their range if these are many; only every n-th epoch of long runs."""
    if len(runs) > MAX_SEEDS:
        return band_grid(dev_curve(runs))
    curves = {
        seed: {
            int(row["epoch"]): 100 * row[f"dev_{run.primary_metric}"]
            for row in run.epochs()
            if f"dev_{run.primary_metric}" in row
        }
        for seed, run in runs.items()
    }
    epochs = sorted({epoch for curve in curves.values() for epoch in curve})
    lines = [
        [f"{epoch}", *(f"{curve[epoch]:.2f}" if epoch in curve else "" for curve in curves.values())]
        for epoch in thinned(epochs)
    ]
    return Grid(["epoch", *(f"seed {seed}" for seed in curves)], lines)


def band_grid(curves: Curves) -> Grid:
    lines = [
        [f"{epoch:.0f}", *(f"{value:.2f}" for value in values)] for epoch, *values in thinned(curves.band)
    ]
    return Grid(["epoch", "lowest", "mean", "highest"], lines)


def thinned(epochs: Sequence[Item]) -> Sequence[Item]:
    """Every n-th epoch, such that they are no more than `MAX_EPOCHS`."""
    step = -(-len(epochs) // MAX_EPOCHS) or 1
    return epochs[step - 1 :: step]
