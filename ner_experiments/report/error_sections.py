"""What kinds of errors a row's runs make, on which mentions, and what their probabilities are worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ner_experiments.analysis.dimensions import FREQUENCY, SEEN, SENTENCE_LENGTH
from ner_experiments.analysis.measure import LENGTH, TYPE
from ner_experiments.analysis.over_seeds import Mean, MeanBucket, MeanCalibration, MeanConfusion
from ner_experiments.analysis.rows import RowErrors
from ner_experiments.report import plot_bars
from ner_experiments.report.plot_bars import Bar
from ner_experiments.report.row_sections import by_length, by_type
from ner_experiments.report.sections import Section, Shown
from ner_experiments.report.svg import Plot
from ner_experiments.table_page import Grid, interval

KINDS = (
    "Each error once: a wrong boundary, a wrong type, both, a mention that was missed, one that was invented "
    "(Manning 2006); as a share of the gold mentions."
)
IN_TRAIN = "What train has is compared letter by letter."
CONFUSED = (
    "How often a predicted mention of a column stands for a gold one of a line; the last line was invented, "
    "the last column missed. A mean over runs."
)
CALIBRATED = (
    "Of the mentions predicted with a probability, how many are right. The expected error is the mean "
    "distance from the dotted line (Guo et al. 2017)."
)
HEADINGS = {
    TYPE: "type",
    LENGTH: "length of the mention, tokens",
    SEEN: "what train has of the mention",
    FREQUENCY: "how often train has the mention",
    SENTENCE_LENGTH: "length of the sentence, tokens",
}
NOT_KEPT = "These runs were kept without their errors: no kinds, no confusion, no calibration."
OVER = {
    "seeds": "Of several runs: means over seeds; intervals are Student's, of other seeds on these sentences.",
    "sentences": "Of one run: intervals are the bootstrap's, of other sentences for this trained model.",
}
"""What the intervals of means are, by `Mean.over`."""


def of_row(row: RowErrors) -> list[Section]:
    """By kind, by group, confusion and calibration; of older kept runs only what they have."""
    found = [by_kind(row.kinds()), *by_group(row), confused(row.confusion()), calibrated(row.calibration())]
    return [section for section in found if section is not None]


def over(means: Iterable[Mean]) -> str:
    kinds = {mean.over for mean in means}
    return " ".join(text for kind, text in OVER.items() if kind in kinds)


def bar(name: str, mean: Mean) -> Bar:
    return Bar(name, 100 * mean.value, 100 * mean.low, 100 * mean.high)


def by_kind(found: Mapping[str, Mean]) -> Section | None:
    if not found:
        return None
    bars = [bar(name, mean) for name, mean in found.items()]
    grid = Grid(("error", "% of gold mentions", "95 %"), [cells(it) for it in bars])
    plot = plot_bars.bar_plot(bars, "kinds", "% of gold mentions", "Errors by kind", grid)
    return Section("kinds", "Errors by kind", [KINDS, over(found.values())], plots=[plot])


def cells(it: Bar) -> list[str]:
    return [it.label, f"{it.value:.2f}", interval(it.low, it.high)]


def by_group(row: RowErrors) -> list[Section | None]:
    """F1 of the mentions of each group; kept runs from before have types and lengths alone."""
    found = {name: groups for name, groups in row.breakdown().items() if groups}
    if not found:
        kept = any(run.outcomes() is None for run in row.runs.values())
        why = Section("kept", "Errors", [NOT_KEPT]) if kept else None
        return [by_type(row.runs), by_length(row.runs), why]
    plots = [group_plot(name, groups) for name, groups in found.items()]
    means = [it.f1 for groups in found.values() for it in groups.values()]
    return [Section("groups", "By what is mentioned", [f"{over(means)} {IN_TRAIN}"], plots=plots)]


def group_plot(name: str, groups: Mapping[str, MeanBucket]) -> Plot:
    bars = [bar(group, it.f1) for group, it in groups.items()]
    lines = [
        [
            group,
            f"{100 * it.precision:.2f}",
            f"{100 * it.recall:.2f}",
            *cells(bar(group, it.f1))[1:],
            f"{it.gold:,}",
        ]
        for group, it in groups.items()
    ]
    grid = Grid((heading(name), "precision", "recall", "F1", "95 % of F1", "gold"), lines)
    return plot_bars.bar_plot(bars, f"by-{name.replace(' ', '-')}", "test F1", f"F1 by {heading(name)}", grid)


def heading(name: str) -> str:
    return HEADINGS.get(name, name)


def confused(found: MeanConfusion | None) -> Section | None:
    """A line of the table for each gold type, as dark as its share of them."""
    if found is None:
        return None
    lines = [
        [name, *(f"{n:,.1f}".removesuffix(".0") for n in row)]
        for name, row in zip(found.names, found.counts, strict=True)
    ]
    heat = [[n / max(1.0, sum(row)) for n in row] for row in found.counts]
    shown = Shown(
        Grid(("gold", *found.names), lines), "Gold types and what was predicted for them", heat=heat
    )
    return Section("confusion", "Types taken for each other", [CONFUSED], [shown])


def calibrated(found: MeanCalibration | None) -> Section | None:
    if found is None:
        return None
    bars = [bar(f"{it.start:.1f} to {it.end:.1f}", it.right) for it in found.bins]
    means = [100 * it.mean for it in found.bins]
    lines = [
        [it.label, f"{bin_.count:,}", f"{mean:.2f}", *cells(it)[1:]]
        for it, bin_, mean in zip(bars, found.bins, means, strict=True)
    ]
    grid = Grid(("probability", "mentions", "mean, %", "right, %", "95 %"), lines)
    error = bar("", found.error)
    text = f"Expected calibration error {error.value:.2f} % ({interval(error.low, error.high)})."
    plot = plot_bars.reliability(bars, means, "calibration", "Calibration on test", grid)
    return Section("calibration", "Calibration", [CALIBRATED, f"{text} {over([found.error])}"], plots=[plot])
