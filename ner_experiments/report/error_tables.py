"""The errors of a table's rows side by side, and their differences from the row that the paper puts first."""

from __future__ import annotations

from collections.abc import Mapping

from ner_experiments.analysis.over_seeds import MeanBucket
from ner_experiments.analysis.rows import RowErrors
from ner_experiments.report import plot_bars
from ner_experiments.report.error_sections import bar, heading, over
from ner_experiments.report.sections import Section, Shown
from ner_experiments.report.svg import LOOKS, Plot
from ner_experiments.statistics import difference
from ner_experiments.table_page import Grid, interval, of_seeds

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
    some = dict(list(bars.items())[:LOOKS])
    title = f"F1 by {heading(name)}" + ("" if len(some) == len(bars) else f", the first {len(some)} rows")
    return plot_bars.points(some, f"errors-{number}-{name.replace(' ', '-')}", "test F1", title, grid)


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
    for seed, run in row.runs.items():
        for group, bucket in run.breakdown().get(name, {}).items():
            if bucket.gold:
                found.setdefault(group, {})[seed] = 100 * bucket.f1
    return found


def gap(ours: Mapping[int, float], theirs: Mapping[int, float]) -> str:
    if not (ours and theirs):
        return ""
    found = difference(ours, theirs)
    return f"{found.mean:+.2f} ({interval(found.low, found.high) or of_seeds(ours, theirs)})"
