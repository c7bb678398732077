"""Plots of runs: scores by group, calibration, gradient norms, score against cost, and learning curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from ner_experiments.analysis.statistics import Summary, summarize
from ner_experiments.runs.run import Run
from ner_experiments.tables.plots import unit_of
from ner_experiments.tables.scores import Page, Result, groups
from ner_experiments.view import cells, charts
from ner_experiments.view.charts import Point, Spread, Value
from ner_experiments.view.table import Grid
from ner_experiments.view.vega import Chart, Spec, domain_of

COSTS = {"parameters": "trained parameters", "seconds": "seconds of a run"}
"""Keys of metrics.json, and the labels of their axes."""
MIN_ROWS = 2
"""Smallest number of rows with a picture."""
COST_DESCRIPTION = (
    "One numbered point per row: mean over seeds with standard deviation, against trained parameters and against "
    "seconds of a run."
)
MAX_SEEDS, MAX_EPOCHS = 12, 60
"""Limits of the seeds that have a line each, where more are drawn as a band, and of the lines of a table."""
SMALL_HEIGHT = 150
BAND_TEXT = f"Of more than {MAX_SEEDS} seeds: the mean, and a band from the lowest to the highest."


def bar_plot(rows: Sequence[Value], unit: str, title: str, grid: Grid) -> Chart:
    """A bar for each value."""
    description = "One bar each, with its 95 % interval, cut at the ends of the axis."
    return Chart(title, description, (charts.bars(rows, unit),), grid=grid)


def group_plot(by_series: Mapping[str, Sequence[Value]], unit: str, title: str, grid: Grid) -> Chart:
    """One point per series in each row, with its interval."""
    values = [value._replace(series=series) for series, of_series in by_series.items() for value in of_series]
    ends = [end for value in values for end in (value.low, value.high) if end is not None]
    low, high = domain_of([value.value for value in values], ends)
    panel = charts.dots(values, unit, domain=(max(0.0, low), min(100.0, high)))
    description = f"One point each, with its 95 % interval, cut at 0 and 100: {', '.join(by_series)}."
    return Chart(title, description, (panel,), grid=grid)


def reliability(rows: Sequence[Value], mean: Sequence[float], title: str, grid: Grid) -> Chart:
    """Share of correct mentions over mean probability, with the diagonal."""
    points = [Point(x, it.value, "", it.low, it.high) for x, it in zip(mean, rows, strict=True)]
    x, y = "mean probability of the predicted mentions, %", "correct among them, %"
    panel = charts.lines(points, x, y, x_domain=(0, 102), y_domain=(0, 102), line="", diagonal=True)
    description = "One point per tenth of probability; on the dotted line, probabilities are calibrated."
    return Chart(title, description, (panel,), grid=grid)


def line_plot(rows: Sequence[Mapping[str, float]], unit: str, title: str) -> Chart:
    """One line per column; the first column is the axis. Norms have a logarithmic scale."""
    axis, *columns = dict.fromkeys(key for row in rows for key in row)
    points = [Point(row[axis], row[column], column) for column in columns for row in rows if column in row]
    log = unit == "norm" and all(point.y > 0 for point in points)
    lines = [
        [f"{row[axis]:.0f}", *(f"{row[column]:.3g}" if column in row else "" for column in columns)]
        for row in rows
    ]
    panel = charts.lines(points, axis, unit, log_y=log)
    return Chart(title, f"One line each: {', '.join(columns)}.", (panel,), grid=Grid((axis, *columns), lines))


def cost_plots(page: Page) -> list[Chart]:
    """Score against cost, one plot per corpus with rows to compare."""
    comparable = [group for group in groups(page.results) if len(group) >= MIN_ROWS]
    return [cost_plot(group, unit_of(page.table, group), group[0].data["name"]) for group in comparable]


def cost_plot(results: Sequence[Result], unit: str, data: str) -> Chart:
    labels = [f"{number}. {result.row.label}" for number, result in enumerate(results, start=1)]
    panels = []
    for key, label in COSTS.items():
        points = []
        for name, result in zip(labels, results, strict=True):
            x, y = cost(result, key), score(result)
            points.append(Spread(name, x.mean, x.sd, y.mean, y.sd))
        panels.append(charts.cloud(points, label, unit))
    title = f"{unit} against parameters and seconds: {data}"
    return Chart(title, COST_DESCRIPTION, tuple(panels), grid=cost_grid(results, labels, unit))


def score(result: Result) -> Summary:
    return summarize(result.scores.values())


def cost(result: Result, key: str) -> Summary:
    return summarize(run.metrics[key] for run in result.runs.values())


def cost_grid(results: Sequence[Result], labels: Sequence[str], unit: str) -> Grid:
    lines = []
    for result, label in zip(results, labels, strict=True):
        found = [(score(result), 2), *((cost(result, key), 0) for key in COSTS)]
        lines.append([label, *(cells.spread(it.mean, it.sd, digits) for it, digits in found)])
    return Grid(("", unit, *COSTS.values()), lines)


def dev_curves(runs: Mapping[int, Run], title: str, limits: Sequence[float]) -> Chart:
    """Small plot of a row's dev scores. limits: of the y axis, shared by the rows on a corpus."""
    panel = curve_panel(dev_curve(runs), limits, SMALL_HEIGHT)
    return Chart(title, curve_description(runs), (panel,), grid=curve_grid(runs))


def dev_and_loss_curves(runs: Mapping[int, Run]) -> Chart:
    """Dev scores and training loss of each seed."""
    few = len(runs) <= MAX_SEEDS
    title = "Learning curves, seed by seed" if few else f"Learning curves of {len(runs)} seeds"
    curves = (dev_curve(runs), Curves(runs, "train_loss", 1.0, "training loss"))
    panels = tuple(curve_panel(curve) for curve in curves if curve.points)
    return Chart(title, curve_description(runs), panels, grid=curve_grid(runs))


def curve_panel(curves: Curves, limits: Sequence[float] = (), height: int = charts.HEIGHT) -> Spec:
    """Curves with a marker at the epoch that dev chose, or their mean with a band."""
    many = len(curves.runs) > MAX_SEEDS
    return charts.lines(
        curves.points,
        "epoch",
        curves.label,
        y_domain=limits,
        band=many and len(curves.band) > 1,
        legend=None if many else "seed",
        height=height,
    )


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
    def lines(self) -> dict[int, dict[float, float]]:
        """Values by epoch, by seed."""
        return {
            seed: {row["epoch"]: self.factor * row[self.column] for row in run.epochs() if self.column in row}
            for seed, run in self.runs.items()
        }

    @cached_property
    def band(self) -> list[tuple[float, float, float, float]]:
        """Epoch, lowest value, mean and highest value of the seeds that have a finite value there."""
        by_epoch: dict[float, list[float]] = {}
        for line in self.lines.values():
            for epoch, value in line.items():
                if math.isfinite(value):
                    by_epoch.setdefault(epoch, []).append(value)
        return [(epoch, min(them), fmean(them), max(them)) for epoch, them in sorted(by_epoch.items())]

    @property
    def points(self) -> list[Point]:
        """The points of each seed, the epoch that dev chose marked; of many seeds, the mean with the range."""
        if len(self.runs) > MAX_SEEDS:
            mean = f"mean of {len(self.runs)} seeds"
            return [
                Point(x, middle, mean, low, high, len(self.band) == 1) for x, low, middle, high in self.band
            ]
        return [
            Point(x, y, f"{seed}", marked=x == self.runs[seed].metrics.get("best_epoch"))
            for seed, line in self.lines.items()
            for x, y in line.items()
        ]


def dev_curve(runs: Mapping[int, Run]) -> Curves:
    run = next(iter(runs.values()))
    return Curves(runs, f"dev_{run.primary_metric}", 100.0, f"dev {run.score_name}")


def curve_limits(rows: Sequence[Mapping[int, Run]]) -> tuple[float, float]:
    """Axis limits that hold all dev scores, with a margin."""
    values = [value for runs in rows for line in dev_curve(runs).lines.values() for value in line.values()]
    if not values:
        return 0.0, 100.0
    margin = max(1.0, 0.05 * (max(values) - min(values)))
    return max(min(values) - margin, -2.0), min(max(values) + margin, 102.0)


def curve_grid(runs: Mapping[int, Run]) -> Grid:
    """Dev scores by epoch and seed, or their range if these are many; only every n-th epoch of long runs."""
    curves = dev_curve(runs)
    lines: Sequence[tuple[float | None, ...]]
    if len(runs) > MAX_SEEDS:
        headings, lines = ["lowest", "mean", "highest"], curves.band
    else:
        headings = [f"seed {seed}" for seed in runs]
        epochs = sorted({epoch for line in curves.lines.values() for epoch in line})
        lines = [(epoch, *(line.get(epoch) for line in curves.lines.values())) for epoch in epochs]
    step = -(-len(lines) // MAX_EPOCHS) or 1
    thinned = lines[step - 1 :: step]
    return Grid(
        ["epoch", *headings], [[f"{epoch:.0f}", *map(cells.points, values)] for epoch, *values in thinned]
    )
