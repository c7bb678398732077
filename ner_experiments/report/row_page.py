"""The test sentences in which a row's runs make most errors, as each of them tags these.

The page of a row's runs: every seed, curves, gradients, types and lengths of mention, settings.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ner_experiments.analysis import archive
from ner_experiments.analysis.errors import num_errors
from ner_experiments.analysis.statistics import summarize
from ner_experiments.config.identity import counted
from ner_experiments.report import plots as plot_bars
from ner_experiments.report.pair_page import pieces, variants, with_sentences
from ner_experiments.report.plots import Bar, dev_and_loss
from ner_experiments.report.site import Section, Shown, Tagged
from ner_experiments.runs import artifacts
from ner_experiments.runs.artifacts import read_config
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import ArchivedRun, Run
from ner_experiments.tables.render import Grid, interval

MOST = 50
"""Sentences on a page."""
ERRORS_EXPLAINED = {
    "mentions": "an error is a gold mention that was not found, or a predicted one that is none.",
    "tags": "an error is a wrong tag; marked are the tags that are not gold's.",
}


def worst_section(runs: Mapping[int, Run]) -> Section | None:
    """Of the runs in folders; kept ones have no sentences. None if there is nothing wrong in any."""
    own = with_sentences(runs)
    if not own:
        return None
    errors = np.mean([num_errors(run.counts()) for run in own.values()], axis=0)
    if not errors.any():
        return None
    read = {seed: run.predicted() for seed, run in own.items()}
    worst = [number for number in np.argsort(-errors, kind="stable")[:MOST] if errors[number]]
    shown = [
        worst_sentence(int(number) + 1, errors[number], {seed: found[number] for seed, found in read.items()})
        for number in worst
    ]
    task = next(iter(own.values())).metrics["task"]
    count = f"{np.count_nonzero(errors):,} of {len(errors):,} test sentences have errors"
    text = (
        f"{count}; shown are {len(shown)}, those with most first. Means over runs; {ERRORS_EXPLAINED[task]}"
    )
    return Section("worst", "Sentences with most errors", [text], sentences=shown)


def worst_sentence(number: int, errors: float, of_seed: Mapping[int, Predicted]) -> Tagged:
    """Errors are a mean over seeds."""
    first = next(iter(of_seed.values()))
    title = f"Sentence {number}, errors: {f'{errors:.1f}'.removesuffix('.0')}"
    return Tagged(title, pieces(first, first.gold), list(variants("predicted", of_seed)))


Runs = Mapping[int, Run]


def seeds(runs: Runs) -> Section:
    first = next(iter(runs.values()))
    mentions = first.metrics["task"] == "mentions"
    names = ("precision", "recall", "f1") if mentions else ("accuracy",)
    shown = [name.replace("f1", "F1") for name in (first.primary_metric, *names)]
    headings = [
        "seed",
        f"dev {shown[0]}",
        *(f"test {name}" for name in shown[1:]),
        "best epoch",
        "epochs",
        "minutes",
        "tokens per s",
    ]
    lines = [seed_line(seed, run, names) for seed, run in runs.items()]
    return Section("seeds", "Seeds", grids=[Shown(Grid(headings, lines), f"Each run; {scored(runs)}")])


def scored(runs: Runs) -> str:
    if any(run.test_every_epoch() for run in runs.values()):
        return "the test set was scored after each epoch too (audit.peek=true)"
    return "the test set was scored once"


def seed_line(seed: int, run: Run, names: Sequence[str]) -> list[str]:
    its = run.metrics
    return [
        f"{seed}",
        f"{100 * its['dev'][run.primary_metric]:.2f}",
        *(f"{100 * its['test'][name]:.2f}" for name in names),
        f"{its['best_epoch']}",
        f"{its['epochs']}",
        f"{its['seconds'] / 60:.1f}",
        f"{its['tokens_per_second']:,.0f}" if "tokens_per_second" in its else "",
    ]


def curves(runs: Runs) -> Section:
    return Section("curves", "Learning curves", plots=[dev_and_loss(runs, "curves")])


def by_type(runs: Runs) -> Section | None:
    """F1 of each type, from what every run scored."""
    types = {seed: run.metrics["test"].get("types", {}) for seed, run in runs.items()}
    names = sorted({name for found in types.values() for name in found})
    if not names:
        return None
    lines, bars = [], []
    for name in names:
        reports = [found[name] for found in types.values() if name in found]
        parts = {
            key: summarize(100 * report[key] for report in reports) for key in ("precision", "recall", "f1")
        }
        lines.append(
            [
                name,
                *(f"{it.mean:.2f}" for it in parts.values()),
                interval(parts["f1"].low, parts["f1"].high),
                f"{reports[0]['gold']:,}",
            ]
        )
        bars.append(Bar(name, parts["f1"].mean, parts["f1"].low, parts["f1"].high))
    grid = Grid(("type", "precision", "recall", "F1", "95 % of F1", "gold mentions"), lines)
    plot = plot_bars.bar_plot(bars, "types", "test F1", "F1 by type", grid)
    return Section("types", "By type", [OVER_SEEDS], plots=[plot])


OVER_SEEDS = "Means over seeds; the interval is Student's, of new seeds on the same test set."


def by_length(runs: Runs) -> Section | None:
    """Li et al.'s table 4 of this row."""
    first = next(iter(runs.values()))
    if first.metrics["task"] != "mentions":
        return None
    figures = {seed: archive.f1_by_mention(run, "length") for seed, run in runs.items()}
    names = list(dict.fromkeys(name for found in figures.values() for name in found))
    if not names:
        return None
    means = [summarize(found[name] for found in figures.values() if name in found) for name in names]
    bars = [Bar(name, it.mean, it.low, it.high) for name, it in zip(names, means, strict=True)]
    lines = [[it.label, f"{it.value:.2f}", interval(it.low, it.high)] for it in bars]
    grid = Grid(("tokens", "F1", "95 %"), lines)
    plot = plot_bars.bar_plot(bars, "lengths", "test F1", "F1 by length of mention in tokens", grid)
    return Section("lengths", "By length of mention", [OVER_SEEDS], plots=[plot])


def gradients(runs: Runs) -> Section | None:
    """What runs made with audit.gradients wrote, seed by seed."""
    plots = []
    for seed, run in runs.items():
        path = run.folder / artifacts.GRADIENTS
        if isinstance(run, ArchivedRun) or not path.exists():
            continue
        rows = read_rows(path)
        for number, (title, kind, column) in enumerate(GRADIENTS):
            if found := by_epoch(rows, kind, column):
                name = f"gradients-{seed}-{number}"
                plots.append(plot_bars.lines(found, name, column, f"{title}, seed {seed}"))
    return Section("gradients", "Gradients", [GRADIENTS_EXPLAINED], plots=plots) if plots else None


GRADIENTS = (
    ("Gradient of each part's weights", "weights", "norm"),
    ("Gradient of each layer's output", "layer", "norm"),
    ("Share of a layer's gradient that comes by the shortcut", "layer", "share"),
)
"""Title, kind of row, and column of gradients.csv."""
GRADIENTS_EXPLAINED = "Means over the steps of an epoch that were looked at, before clipping."


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def by_epoch(rows: Sequence[Mapping[str, str]], kind: str, column: str) -> list[dict[str, float]]:
    """A line for each epoch, with the column's figure for each part that has one."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["kind"] == kind and row.get(column):
            of_epoch = found.setdefault(row["epoch"], {"epoch": float(row["epoch"])})
            of_epoch[row["part"] if kind == "weights" else f"layer {row['part']}"] = float(row[column])
    return list(found.values())


def settings(runs: Runs) -> Section:
    first = next(iter(runs.values()))
    parts = first.metrics.get("parameters_of", {})
    lines = [[name, f"{count:,}"] for name, count in parts.items()] + [
        ["in all", f"{first.metrics['parameters']:,}"]
    ]
    text = json.dumps(settings_of(first), indent=2, ensure_ascii=False)
    return Section(
        "settings",
        "Settings",
        grids=[Shown(Grid(("part", "parameters"), lines), "Trained parameters")],
        folded=[("All settings that count", text)],
    )


def settings_of(run: Run) -> Mapping[Any, Any]:
    if isinstance(run, ArchivedRun):
        return run.content["config"]
    return counted(read_config(run.folder))


def sections(runs: Runs) -> list[Section]:
    found = [seeds(runs), curves(runs), gradients(runs)]
    return [section for section in found if section is not None]
