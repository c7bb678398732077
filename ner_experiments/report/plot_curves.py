"""Learning curves: what dev said after each epoch, and the training loss, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ner_experiments.data.sentence import HEADLINES
from ner_experiments.report.svg import MARKERS, MUTED, SERIES, Plot, drawing, inline
from ner_experiments.runs import Run
from ner_experiments.table_page import Grid

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
    draw_curves(axes, runs, f"dev_{run.headline}", 100.0)
    axes.set_ylabel(f"dev {HEADLINES[run.metrics['task']][1]}")
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
        100 * row[f"dev_{run.headline}"]
        for runs in rows
        for run in runs.values()
        for row in run.epochs()
        if f"dev_{run.headline}" in row
    ]
    if not values:
        return 0.0, 100.0
    room = max(1.0, 0.05 * (max(values) - min(values)))
    return max(min(values) - room, -2.0), min(max(values) + room, 102.0)


def curve_grid(runs: Mapping[int, Run]) -> Grid:
    """Dev scores by epoch and seed; of long trainings every so many epochs."""
    curves = {
        seed: {
            int(row["epoch"]): 100 * row[f"dev_{run.headline}"]
            for row in run.epochs()
            if f"dev_{run.headline}" in row
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
