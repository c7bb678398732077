"""Sections of a row's page: seeds, learning curves, gradients, settings, and worst sentences."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ner_experiments.analysis.row_errors import RowErrors
from ner_experiments.analysis.sentences import ERRORS_EXPLAINED, NAMES, by_kind, types_of, with_sentences
from ner_experiments.report.run_plots import BAND_TEXT, MAX_SEEDS, dev_and_loss_curves, line_plot
from ner_experiments.report.site import Section
from ner_experiments.runs import artifacts
from ner_experiments.runs.run import Run
from ner_experiments.utils.text import as_json, percent
from ner_experiments.view.table import Grid

Runs = Mapping[int, Run]
"""Runs by seed."""
MAX_SENTENCES = 50
"""Number of sentences shown that have most errors."""
MAX_OF_KIND = 20
"""Number of further sentences shown with each kind of error."""
GRADIENTS = (
    ("Gradient of each part's weights", "weights", "norm"),
    ("Gradient of each layer's output", "layer", "norm"),
    ("Share of a layer's gradient through the shortcut", "layer", "share"),
)
"""Title of the plot; kind of rows and column of gradients.csv."""
GRADIENTS_EXPLAINED = "Means over the recorded steps of an epoch, before clipping."


def sections(runs: Runs) -> list[Section | None]:
    """Seeds, learning curves and gradients; None for those without content."""
    curves = [BAND_TEXT] if len(runs) > MAX_SEEDS else []
    return [
        seeds_section(runs),
        Section("curves", "Learning curves", curves, plots=[dev_and_loss_curves(runs)]),
        gradients_section(runs),
    ]


def seeds_section(runs: Runs) -> Section:
    """Scores and cost of each run."""
    scores = dict.fromkeys(name for run in runs.values() for name in artifacts.scores_of(run.metrics["test"]))
    grid = Grid.by_heading([seed_line(seed, run, scores) for seed, run in runs.items()])
    return Section("seeds", "Seeds", grids=[replace(grid, caption=f"Each run; {test_protocol(runs)}")])


def test_protocol(runs: Runs) -> str:
    """Note on when the test set was scored."""
    logged = any(artifacts.TEST_LOG in run.metrics.get(artifacts.FILES, {}) for run in runs.values())
    if logged or any(run.test_every_epoch() for run in runs.values()):
        return "the test set was also scored after each epoch (audit.test_every_epoch=true)"
    return "the test set was scored once"


def seed_line(seed: int, run: Run, scores: Iterable[str]) -> dict[str, str]:
    metrics, primary = run.metrics, run.primary_metric
    return {
        "seed": f"{seed}",
        f"dev {primary.replace('f1', 'F1')}": percent(metrics["dev"][primary]),
        **{f"test {name.replace('f1', 'F1')}": percent(metrics["test"].get(name)) for name in scores},
        "best epoch": f"{metrics['best_epoch']}",
        "epochs": f"{metrics['epochs']}",
        "minutes": f"{metrics['seconds'] / 60:.1f}",
        "tokens per s": f"{metrics['tokens_per_second']:,.0f}",
    }


def gradients_section(runs: Runs) -> Section | None:
    """Gradient norms of runs with audit.gradients, by seed."""
    plots = []
    recorded = [
        (seed, run.folder / artifacts.GRADIENTS)
        for seed, run in runs.items()
        if not run.archived and (run.folder / artifacts.GRADIENTS).exists()
    ]
    for seed, path in recorded[:MAX_SEEDS]:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for title, kind, column in GRADIENTS:
            if by_epoch := values_by_epoch(rows, kind, column):
                plots.append(line_plot(by_epoch, column, f"{title}, seed {seed}"))
    text = GRADIENTS_EXPLAINED
    if len(recorded) > MAX_SEEDS:
        text += f" The first {MAX_SEEDS} of {len(recorded)} seeds."
    return Section("gradients", "Gradients", [text], plots=plots) if plots else None


def values_by_epoch(rows: Sequence[Mapping[str, str]], kind: str, column: str) -> list[dict[str, float]]:
    """Values of a column by part, with one mapping per epoch, which has the number of the epoch too."""
    epochs: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["kind"] == kind and row.get(column):
            of_epoch = epochs.setdefault(row["epoch"], {"epoch": float(row["epoch"])})
            of_epoch[row["part"] if kind == "weights" else f"layer {row['part']}"] = float(row[column])
    return list(epochs.values())


def settings_section(runs: Runs) -> Section:
    """Parameters by part, and all settings of the first run."""
    first = next(iter(runs.values()))
    parts = first.metrics.get("parameters_of", {})
    lines = [[name, f"{count:,}"] for name, count in parts.items()] + [
        ["total", f"{first.metrics['parameters']:,}"]
    ]
    text = as_json(first.settings())
    return Section(
        "settings",
        "Settings",
        grids=[Grid(("part", "parameters"), lines, "Trained parameters")],
        folded=[("All settings of the identity", text)],
    )


def worst_section(row: RowErrors) -> Section | None:
    """The test sentences with the most errors and further ones with each kind of error, as each run tags them.

    None without errors or without sentences.
    """
    if not row.wrong:
        return None
    of_kinds = by_kind(row.wrong[MAX_SENTENCES:], MAX_OF_KIND).values()
    shown = [*row.wrong[:MAX_SENTENCES], *(it for of_kind in of_kinds for it in of_kind)]
    task = row.wrong[0].task
    types = types_of((it for one in shown for it in one.by_seed.values()), task)
    kinds = [(name, text) for name, text in NAMES.items() if any(it.kinds[name] for it in shown)]
    total = len(next(iter(with_sentences(row.runs).values())).predicted())
    count = f"{len(row.wrong):,} of {total:,} test sentences have errors"
    more = f", at most {MAX_OF_KIND} further ones of each kind" if len(shown) > MAX_SENTENCES else ""
    text = (
        f"{count}; {len(shown)} are shown: those with most{more}. Means over runs; {ERRORS_EXPLAINED[task]}"
    )
    sentences = [it.shown(types) for it in shown]
    return Section("worst", "Sentences with errors", [text], sentences=sentences, kinds=kinds)
