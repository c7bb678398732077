"""Tables of a row's errors: looser scores, errors by kind and by group of mentions, confusion and calibration."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from ner_experiments.analysis.breakdown import FREQUENCY, LENGTH, SEEN, SENTENCE_LENGTH, TYPE
from ner_experiments.analysis.errors import SPURIOUS
from ner_experiments.analysis.row_errors import (
    Mean,
    MeanBucket,
    MeanCalibration,
    MeanConfusion,
    RowErrors,
)
from ner_experiments.analysis.sentences import NAMES
from ner_experiments.analysis.statistics import Summary
from ner_experiments.view import cells
from ner_experiments.view.charts import Value
from ner_experiments.view.table import Grid

HEADINGS = {
    TYPE: "type",
    LENGTH: "length of the mention, tokens",
    SEEN: "occurrence in train",
    FREQUENCY: "frequency in train",
    SENTENCE_LENGTH: "length of the sentence, tokens",
}
OVER_SEEDS = "95 % over seeds"


def error_grids(row: RowErrors, calibration: MeanCalibration | None) -> dict[str, Grid]:
    """The tables by title, without those that the runs lack. calibration: that of the row, which takes time."""
    confusion = row.confusion()
    grids = {"Looser scores": looser_grid(row.looser_scores()), "Errors by kind": kinds_grid(row.kinds())}
    grids |= {
        f"F1 by {HEADINGS.get(name, name)}": groups_grid(name, groups)
        for name, groups in row.breakdown.items()
    }
    if confusion:
        grids["Gold type (row) and predicted type (column)"] = confusion_grid(confusion)
    if calibration:
        grids["Calibration of the probabilities"] = calibration_grid(calibration)
    return {title: grid for title, grid in grids.items() if grid.lines}


def bar(name: str, mean: Mean, *, most: float = 100.0) -> Value:
    """A mean in percent, its interval cut at 0 and at the largest possible value."""
    return Value(name, 100 * mean.value, max(0.0, 100 * mean.low), min(most, 100 * mean.high))


def bars_of_kinds(kinds: Mapping[str, Mean]) -> list[Value]:
    """Errors of each kind in percent of the gold mentions, of which spurious ones can exceed 100."""
    return [bar(NAMES[name], mean, most=inf if name == SPURIOUS else 100.0) for name, mean in kinds.items()]


def bar_cells(bar: Value) -> list[str]:
    """Label, value and interval."""
    return [bar.row, f"{bar.value:.2f}", cells.interval(bar)]


def looser_grid(scores: Mapping[str, Summary]) -> Grid:
    """F1 by looser matches, with a column of intervals unless they are those of a single run."""
    bars = []
    for name, score in scores.items():
        it = score.within(0.0, 1.0)
        low, high = (None if end is None else 100 * end for end in (it.low, it.high))
        bars.append(Value(name, 100 * it.mean, low, high))
    return Grid(("score", "%", OVER_SEEDS), [*map(bar_cells, bars)]).without_empty([OVER_SEEDS])


def kinds_grid(kinds: Mapping[str, Mean]) -> Grid:
    """Share of each kind of error."""
    lines = [*map(bar_cells, bars_of_kinds(kinds))]
    return Grid(("error", "% of gold mentions", "95 %"), lines)


def groups_grid(name: str, groups: Mapping[str, MeanBucket]) -> Grid:
    """Scores of each group of mentions by a dimension."""
    lines = [
        [
            group,
            f"{100 * bucket.precision:.2f}",
            f"{100 * bucket.recall:.2f}",
            *bar_cells(bar(group, bucket.f1))[1:],
            f"{bucket.gold:,}",
        ]
        for group, bucket in groups.items()
    ]
    return Grid((HEADINGS.get(name, name), "precision", "recall", "F1", "95 % of F1", "gold"), lines)


def confusion_grid(confusion: MeanConfusion) -> Grid:
    """Confusion matrix with a line per gold type, shaded by share of the line."""
    lines = [
        [name, *(f"{n:,.1f}".removesuffix(".0") for n in row)]
        for name, row in zip(confusion.names, confusion.counts, strict=True)
    ]
    heat = [[n / max(1.0, sum(row)) for n in row] for row in confusion.counts]
    return Grid(("gold", *confusion.names), lines, "Gold and predicted types", heat=heat)


def calibration_grid(calibration: MeanCalibration) -> Grid:
    """Share of correct mentions by bin of their probability, and the expected calibration error."""
    lines = []
    for it in calibration.bins:
        edges, *correct = bar_cells(bar(f"{it.start:.1f} to {it.end:.1f}", it.correct))
        lines.append([edges, f"{it.count:,}", f"{100 * it.mean:.2f}", *correct])
    error, *of_error = bar_cells(bar("expected error", calibration.error))
    return Grid(
        ("probability", "mentions", "mean, %", "correct, %", "95 %"), [*lines, [error, "", "", *of_error]]
    )
