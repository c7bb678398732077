"""Sections on errors: of the rows of a table side by side, and of one row by kind, group, confusion and calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ner_experiments.analysis.archive import f1_by_mention
from ner_experiments.analysis.breakdown import LENGTH, SEEN, TYPE
from ner_experiments.analysis.error_grids import (
    HEADINGS,
    bar,
    bar_cells,
    bars_of_kinds,
    calibration_grid,
    confusion_grid,
    groups_grid,
    kinds_grid,
    looser_grid,
)
from ner_experiments.analysis.row_errors import (
    Mean,
    MeanBucket,
    MeanCalibration,
    MeanConfusion,
    RowErrors,
    explain_intervals,
)
from ner_experiments.analysis.statistics import Summary, difference, summarize
from ner_experiments.report.run_plots import bar_plot, group_plot, reliability
from ner_experiments.report.site import Section
from ner_experiments.view import cells
from ner_experiments.view.charts import Value
from ner_experiments.view.table import Grid
from ner_experiments.view.vega import Chart

Rows = Mapping[str, RowErrors]
"""Errors of rows on one test set, by label."""
KINDS_TEXT = (
    "Each error counts once: wrong boundary, wrong type, both, missing mention, or spurious mention "
    "(Manning 2006). In percent of the gold mentions."
)
LOOSER_TEXT = (
    "The tables of this report count a mention as correct if its boundaries and its type are. A type of few mentions "
    "counts as much as the others in the mean F1 of the types; the other scores are those of SemEval-2013, task 9."
)
SEEN_TEXT = "Mentions are compared with those of train case-sensitively."
CONFUSION_TEXT = (
    "How often a gold mention of a row's type was predicted as a mention of a column's type. The last row counts "
    "spurious mentions, the last column missing ones. Means over runs."
)
CALIBRATION_TEXT = (
    "Share of correct mentions among those predicted with similar probability. The expected calibration error "
    "is the mean distance from the dotted line (Guo et al. 2017)."
)
MAX_DRAWN = 14
"""Rows of a table whose F1 by group is drawn."""
MAX_CALIBRATED = 20
"""Run folders of a row whose calibration is shown."""
NOT_ARCHIVED = (
    "These runs were archived without errors: no kinds, no confusion, no calibration. Intervals are 95 % t-intervals "
    "over seeds."
)
DIFFERENCES = "Differences are computed as those between rows above, with Welch t intervals."


def table_section(rows: Rows, reference: str, number: int) -> Section | None:
    """Errors of at least two rows on one test set, compared with the row labeled `reference`."""
    breakdowns = {label: row.breakdown for label, row in rows.items()}
    names = [
        name for name in breakdowns[reference] if all(groups.get(name) for groups in breakdowns.values())
    ]
    kinds = [mean for row in rows.values() for mean in row.kinds().values()]
    means = kinds + [
        bucket.f1 for groups in breakdowns.values() for name in names for bucket in groups[name].values()
    ]
    if len(rows) < 2 or not means:
        return None
    title = f"F1 minus that of {reference}, by"
    tables = [kinds_table(rows)] if kinds else []
    tables += [
        replace(differences(rows, name, reference), caption=f"{title} {HEADINGS.get(name, name)}")
        for name in names
    ]
    plots = [f1_plot(name, {label: groups[name] for label, groups in breakdowns.items()}) for name in names]
    run = next(iter(rows[reference].runs.values()))
    texts = [f"{explain_intervals(means)} {DIFFERENCES}"]
    return Section(f"errors-{number}", f"Errors on {run.metrics['data']['name']}", texts, tables, plots)


def kinds_table(rows: Rows) -> Grid:
    """Share of each kind of error, one line per row of the table."""
    bars = {label: bars_of_kinds(row.kinds()) for label, row in rows.items()}
    return replace(bar_grid(bars), caption="Errors by kind, % of gold mentions, with 95 % intervals")


def f1_plot(name: str, rows: Mapping[str, Mapping[str, MeanBucket]]) -> Chart:
    """F1 by group as points, one series per row; the numbers have all rows, the picture the first ones."""
    bars = {label: [bar(group, it.f1) for group, it in groups.items()] for label, groups in rows.items()}
    drawn = dict(list(bars.items())[:MAX_DRAWN])
    title = f"F1 by {HEADINGS.get(name, name)}"
    title += "" if len(drawn) == len(bars) else f", the first {len(drawn)} rows"
    return group_plot(drawn, "test F1", title, bar_grid(bars))


def bar_grid(rows: Mapping[str, Sequence[Value]]) -> Grid:
    """Values with intervals: one line per row, one column per group."""
    groups = list(dict.fromkeys(bar.row for bars in rows.values() for bar in bars))
    lines = []
    for label, bars in rows.items():
        by_group = {bar.row: f"{bar.value:.2f} ({cells.interval(bar)})" for bar in bars}
        lines.append([label, *(by_group.get(group, "") for group in groups)])
    return Grid(("", *groups), lines)


def differences(rows: Rows, name: str, reference: str) -> Grid:
    """Differences in F1 from the reference: one line per group, one column per other row."""
    scores = {label: scores_by_group(row, name) for label, row in rows.items()}
    others = [label for label in rows if label != reference]
    lines = []
    for group, reference_scores in scores[reference].items():
        gaps = [difference_cell(scores[label].get(group, {}), reference_scores) for label in others]
        lines.append([group, *gaps])
    return Grid((HEADINGS.get(name, name), *others), lines)


def scores_by_group(row: RowErrors, name: str) -> dict[str, dict[int, float]]:
    """F1 in percent by group and seed, for groups with a gold mention."""
    scores: dict[str, dict[int, float]] = {}
    for seed, errors in row.errors.items():
        for group, bucket in errors.breakdown.get(name, {}).items():
            if bucket.gold:
                scores.setdefault(group, {})[seed] = 100 * bucket.f1
    return scores


def difference_cell(a: Mapping[int, float], b: Mapping[int, float]) -> str:
    return cells.difference(difference(a, b), otherwise=cells.seed_counts(a, b)) if a and b else ""


def row_sections(row: RowErrors) -> list[Section | None]:
    """Looser scores, errors by kind and by group, confusion and calibration; None for those that the runs lack."""
    return [
        looser_section(row.looser_scores()),
        kinds_section(row.kinds()),
        *group_sections(row),
        confusion_section(row.confusion()),
        calibration_section(row.calibration(MAX_CALIBRATED), len(row.runs)),
    ]


def looser_section(scores: Mapping[str, Summary]) -> Section | None:
    """Mean F1 of the types, and F1 by looser matches."""
    if not scores:
        return None
    table = replace(looser_grid(scores), caption="Scores beside F1, on test")
    return Section("looser", "Looser scores", [LOOSER_TEXT], [table])


def kinds_section(kinds: Mapping[str, Mean]) -> Section | None:
    """Share of each kind of error."""
    if not kinds:
        return None
    bars = bars_of_kinds(kinds)
    plot = bar_plot(bars, "% of gold mentions", "Errors by kind", kinds_grid(kinds))
    return Section("kinds", "Errors by kind", [KINDS_TEXT, explain_intervals(kinds.values())], plots=[plot])


def group_sections(row: RowErrors) -> list[Section | None]:
    """F1 by group of mentions. Runs archived without errors have F1 by type and length alone."""
    breakdown = {name: groups for name, groups in row.breakdown.items() if groups}
    if not breakdown:
        if all(errors.outcomes is not None for errors in row.errors.values()):
            return []
        known = [plot for name in (TYPE, LENGTH) if (plot := known_plot(row, name)) is not None]
        return [Section("archived", "Errors", [NOT_ARCHIVED], plots=known)]
    plots = [
        bar_plot(
            [bar(group, bucket.f1) for group, bucket in groups.items()],
            "test F1",
            f"F1 by {HEADINGS.get(name, name)}",
            groups_grid(name, groups),
        )
        for name, groups in breakdown.items()
    ]
    means = [bucket.f1 for groups in breakdown.values() for bucket in groups.values()]
    texts = [f"{explain_intervals(means)} {SEEN_TEXT if SEEN in breakdown else ''}".rstrip()]
    return [Section("groups", "F1 by group of mentions", texts, plots=plots)]


def known_plot(row: RowErrors, name: str) -> Chart | None:
    """F1 of each group as bars, from what runs archived without errors have."""
    runs = [f1_by_mention(run, name) for run in row.runs.values()]
    scores = {group: [f1[group] for f1 in runs if group in f1] for f1 in runs for group in f1}
    means = {group: summarize(of_group).within(0.0, 100.0) for group, of_group in scores.items()}
    bars = [Value(group, it.mean, it.low, it.high) for group, it in means.items()]
    grid = Grid((HEADINGS[name], "F1", "95 % of F1"), [*map(bar_cells, bars)])
    return bar_plot(bars, "test F1", f"F1 by {HEADINGS[name]}", grid) if bars else None


def confusion_section(confusion: MeanConfusion | None) -> Section | None:
    """Confusion matrix with a line per gold type."""
    if confusion is None:
        return None
    return Section("confusion", "Confusion of types", [CONFUSION_TEXT], [confusion_grid(confusion)])


def calibration_section(calibration: MeanCalibration | None, runs: int) -> Section | None:
    """Reliability diagram and expected calibration error. runs: of the row."""
    if calibration is None:
        return None
    bars = [bar(f"{bin_.start:.1f} to {bin_.end:.1f}", bin_.correct) for bin_ in calibration.bins]
    means = [100 * bin_.mean for bin_ in calibration.bins]
    error = bar("", calibration.error)
    text = f"Expected calibration error {error.value:.2f} % ({cells.interval(error)})."
    if calibration.error.runs < runs:
        text += f" Of {calibration.error.runs} of the {runs} runs."
    plot = reliability(bars, means, "Calibration on test", calibration_grid(calibration))
    texts = [CALIBRATION_TEXT, f"{text} {explain_intervals(calibration.means)}"]
    return Section("calibration", "Calibration", texts, plots=[plot])
