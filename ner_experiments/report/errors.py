"""The errors of a table's rows side by side, and their differences from the row that the paper puts first.

What kinds of errors a row's runs make, on which mentions, and what their probabilities are worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ner_experiments.analysis.breakdown import FREQUENCY, LENGTH, SEEN, SENTENCE_LENGTH, TYPE
from ner_experiments.analysis.seeds import Mean, MeanBucket, MeanCalibration, MeanConfusion, RowErrors
from ner_experiments.analysis.statistics import difference
from ner_experiments.report.plots import Bar, bar_plot, points, reliability
from ner_experiments.report.row_page import by_length, by_type
from ner_experiments.report.site import Section, Shown
from ner_experiments.tables.render import Grid, interval, seed_counts
from ner_experiments.tables.svg import NUM_STYLES, Plot

Rows = Mapping[str, RowErrors]
"""By label; all on one test set."""
DIFFERENCES = "Differences are taken as those of rows above, with Student's or Welch's interval."


def section(rows: Rows, reference: str, number: int) -> Section | None:
    """Of two rows or more on one test set; the others are held against the one labelled `reference`."""
    found = {label: row.breakdown() for label, row in rows.items()}
    names = [name for name in found[reference] if all(groups.get(name) for groups in found.values())]
    kinds = [mean for row in rows.values() for mean in row.kinds().values()]
    means = kinds + [it.f1 for groups in found.values() for name in names for it in groups[name].values()]
    if len(rows) < 2 or not means:
        return None
    less = f"F1 minus that of {reference}, by"
    grids = [kinds_grid(rows)] if kinds else []
    grids += [Shown(gaps(rows, name, reference), f"{less} {heading(name)}") for name in names]
    plots = [drawn(name, {label: groups[name] for label, groups in found.items()}, number) for name in names]
    run = next(iter(rows[reference].runs.values()))
    texts = [f"{over(means)} {DIFFERENCES}"]
    return Section(f"errors-{number}", f"Errors on {run.metrics['data']['name']}", texts, grids, plots)


def kinds_grid(rows: Rows) -> Shown:
    of_row = {label: row.kinds() for label, row in rows.items()}
    names = list(dict.fromkeys(name for found in of_row.values() for name in found))
    lines = []
    for label, found in of_row.items():
        bars = [bar(name, found[name]) if name in found else None for name in names]
        lines.append([label, *(f"{it.value:.2f} ({interval(it.low, it.high)})" if it else "" for it in bars)])
    return Shown(Grid(("", *names), lines), "Errors by kind, % of gold mentions, with 95 % intervals")


def drawn(name: str, groups: Mapping[str, Mapping[str, MeanBucket]], number: int) -> Plot:
    """Rows as points; of many rows the table alone would be read."""
    bars = {label: [bar(group, it.f1) for group, it in found.items()] for label, found in groups.items()}
    labels = list(dict.fromkeys(it.label for found in bars.values() for it in found))
    lines = []
    for label, found in bars.items():
        of_group = {it.label: it for it in found}
        shown = [of_group.get(group) for group in labels]
        lines.append(
            [label, *(f"{it.value:.2f} ({interval(it.low, it.high)})" if it else "" for it in shown)]
        )
    grid = Grid(("", *labels), lines)
    some = dict(list(bars.items())[:NUM_STYLES])
    title = f"F1 by {heading(name)}" + ("" if len(some) == len(bars) else f", the first {len(some)} rows")
    return points(some, f"errors-{number}-{name.replace(' ', '-')}", "test F1", title, grid)


def gaps(rows: Rows, name: str, reference: str) -> Grid:
    """A line for each group, a column for each other row."""
    scores = {label: scores_by_group(row, name) for label, row in rows.items()}
    others = [label for label in rows if label != reference]
    lines = []
    for group, theirs in scores[reference].items():
        cells = [gap(scores[label].get(group, {}), theirs) for label in others]
        lines.append([group, *cells])
    return Grid((heading(name), *others), lines)


def scores_by_group(row: RowErrors, name: str) -> dict[str, dict[int, float]]:
    """F1 in percent, by group and seed, where the group has a gold mention."""
    found: dict[str, dict[int, float]] = {}
    for seed, errors in row.errors.items():
        for group, bucket in errors.breakdown.get(name, {}).items():
            if bucket.gold:
                found.setdefault(group, {})[seed] = 100 * bucket.f1
    return found


def gap(ours: Mapping[int, float], theirs: Mapping[int, float]) -> str:
    if not (ours and theirs):
        return ""
    found = difference(ours, theirs)
    return f"{found.mean:+.2f} ({interval(found.low, found.high) or seed_counts(ours, theirs)})"


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
    plot = bar_plot(bars, "kinds", "% of gold mentions", "Errors by kind", grid)
    return Section("kinds", "Errors by kind", [KINDS, over(found.values())], plots=[plot])


def cells(it: Bar) -> list[str]:
    return [it.label, f"{it.value:.2f}", interval(it.low, it.high)]


def by_group(row: RowErrors) -> list[Section | None]:
    """F1 of the mentions of each group; kept runs from before have types and lengths alone."""
    found = {name: groups for name, groups in row.breakdown().items() if groups}
    if not found:
        kept = any(errors.outcomes is None for errors in row.errors.values())
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
    return bar_plot(bars, f"by-{name.replace(' ', '-')}", "test F1", f"F1 by {heading(name)}", grid)


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
    bars = [bar(f"{it.start:.1f} to {it.end:.1f}", it.correct) for it in found.bins]
    means = [100 * it.mean for it in found.bins]
    lines = [
        [it.label, f"{bin_.count:,}", f"{mean:.2f}", *cells(it)[1:]]
        for it, bin_, mean in zip(bars, found.bins, means, strict=True)
    ]
    grid = Grid(("probability", "mentions", "mean, %", "right, %", "95 %"), lines)
    error = bar("", found.error)
    text = f"Expected calibration error {error.value:.2f} % ({interval(error.low, error.high)})."
    plot = reliability(bars, means, "calibration", "Calibration on test", grid)
    return Section("calibration", "Calibration", [CALIBRATED, f"{text} {over([found.error])}"], plots=[plot])
