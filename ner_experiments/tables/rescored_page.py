"""A table scored against another gold file, as Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ner_experiments.analysis import statistics
from ner_experiments.analysis.statistics import Summary
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.tables.claims import Claim
from ner_experiments.tables.rescore import Change, Gold, Ranking, Rescored, RescoredRun, rankings
from ner_experiments.tables.scores import Result
from ner_experiments.utils.files import sha256
from ner_experiments.view import cells
from ner_experiments.view.table import Grid

HEADINGS = ("", "own gold", "95 %", "other gold", "95 %", "change", "95 %", "rank", "rank, other gold")
LEGEND = (
    "In percent: mean ± standard deviation (runs), and the 95 % t-interval of the mean over seeds. Change: other gold "
    "minus own gold for the same runs, in points."
)
CLAIM_HEADINGS = ("claim", "own gold", "other gold", "exploratory verdict", "exploratory verdict, other gold")


def markdown(
    rescored: Rescored, gold: Gold, changes: Sequence[Change], unchecked: Sequence[Claim], command: str
) -> str:
    """The rows under both golds, their ranks, the claims about them, what could not be compared, and the command."""
    page, ranked = rescored.page, rankings(rescored)
    parts = [f"# {page.table.title}, against {gold.path.name}", f"{page.table.source}. {origin(rescored)}"]
    if page.deviations:
        parts.append(f"**{page.deviations_heading}:** `{' '.join(page.deviations)}`")
    parts += [grid(rescored, ranked).markdown(), LEGEND, *filter(None, map(correlation, ranked))]
    parts.append(compared(rescored, gold))
    if changes:
        parts += [claims_in_short(changes), Grid(CLAIM_HEADINGS, [*map(claim_line, changes)]).markdown()]
    parts.append(f"Made by `{command}`.")
    if lines := not_rescored(rescored, unchecked):
        parts.append("\n".join(["Not rescored:", "", *(f"- {line}" for line in lines)]))
    return "\n\n".join(parts) + "\n"


def origin(rescored: Rescored) -> str:
    """A sentence on the runs: exploratory, unless they recorded a registration, which further gold does not decide."""
    number = sum(bool(run.metrics.get("registration")) for run in rescored.other.runs)
    if not number:
        return "All runs and verdicts on this page are *exploratory*."
    return f"{number} of {len(rescored.other.runs)} runs are registered; other gold is secondary, and decides nothing."


def as_json(rescored: Rescored, gold: Gold, changes: Sequence[Change], unchecked: Sequence[Claim]) -> str:
    """The content of the page as JSON."""
    content: dict[str, Any] = {
        "name": rescored.page.table.name,
        "deviations": list(rescored.page.deviations),
        "gold": {
            "file": gold.path.name,
            "sha256": sha256(gold.path),
            "mentions": gold.types.total(),
            "left_out": {test_set: it.left_out for test_set, it in rescored.projections.items()},
        },
        "rows": [
            {
                "label": old.row.label,
                "own": asdict(statistics.summarize(old.scores)),
                "other": asdict(statistics.summarize(new.scores)),
                "change": asdict(change(old, new)),
                "own_scores": {**old.scores},
                "other_scores": {**new.scores},
                "left_out": left_out(new),
            }
            for old, new in rows(rescored)
        ],
        "rankings": [asdict(it) for it in rankings(rescored)],
        "claims": [
            {"id": it.own.claim.id, "own": it.own.record(), "other": it.other.record(), "changed": it.changed}
            for it in changes
        ],
        "claims_not_rescored": [claim.id for claim in unchecked],
        "runs_not_rescored": {str(folder): reason for folder, reason in rescored.not_rescored.items()},
        "rows_not_rescored": dict(rescored.other_rows),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def grid(rescored: Rescored, ranked: Sequence[Ranking]) -> Grid:
    ranks = {
        label: [f"{own}", f"{other}"]
        for it in ranked
        for label, own, other in zip(it.labels, it.own, it.other, strict=True)
    }
    lines = []
    for old, new in rows(rescored):
        own, other, gap = statistics.summarize(old.scores), statistics.summarize(new.scores), change(old, new)
        lines.append(
            [
                old.row.label,
                cells.score(own),
                cells.interval(own),
                cells.score(other),
                cells.interval(other),
                cells.points(gap.mean, "+"),
                cells.interval(gap),
                *ranks[old.row.label],
            ]
        )
    return Grid(HEADINGS, lines)


def rows(rescored: Rescored) -> list[tuple[Result, Result]]:
    """The rows with rescored runs, by their own gold and by the other."""
    pairs = zip(rescored.own.results, rescored.other.results, strict=True)
    return [(own, other) for own, other in pairs if other.runs]


def change(own: Result, other: Result) -> Summary:
    """Other gold minus own gold, seed by seed."""
    return statistics.summarize([other.scores[seed] - score for seed, score in own.scores.items()])


def correlation(ranked: Ranking) -> str:
    """A sentence on how alike the two golds rank the rows; empty for fewer rows than are ranked."""
    if ranked.tau is None:
        return ""
    return (
        f"Kendall's tau of the two rankings of {len(ranked.labels)} rows on {ranked.data}: {ranked.tau:.2f}, "
        f"{ranked.low:.2f} to {ranked.high:.2f} in 95 % of 1,000 bootstrap draws of test sentences."
    )


def compared(rescored: Rescored, gold: Gold) -> str:
    """Paragraph on the gold file: its mentions, and the number of those that could not be compared."""
    text = f"{gold.path.name} has {gold.types.total():,} gold mentions (SHA-256 `{sha256(gold.path)}`)."
    missing = sorted({it.left_out for it in rescored.projections.values()})
    predicted = sorted({number for _, row in rows(rescored) for number in left_out(row).values()})
    if missing == predicted == [0]:
        return f"{text} All have a place on the runs' tokens."
    return (
        f"{text} {numbers(missing)} of them are left out, as they start or end inside a token of the runs' text, cross "
        f"the end of a sentence, or have characters that it lacks; with them, {numbers(predicted)} predicted mentions "
        "of each run that touch the same tokens."
    )


def left_out(row: Result) -> dict[int, int]:
    """For each seed, the number of predicted mentions that are not compared."""
    return {seed: run.left_out for seed, run in row.runs.items() if isinstance(run, RescoredRun)}


def numbers(values: Sequence[int]) -> str:
    """`3`, or `3 to 5`."""
    return " to ".join(f"{number:,}" for number in dict.fromkeys([values[0], values[-1]]))


def claims_in_short(changes: Sequence[Change]) -> str:
    changed = [it.own.claim.id for it in changes if it.changed]
    tests = "1 test of a claim" if len(changes) == 1 else f"{len(changes)} tests of claims"
    verb = "changes its" if len(changed) == 1 else "change their"
    text = f"Of {tests} about these rows, {len(changed) or 'none'} {verb} verdict"
    return f"{text}: {', '.join(changed)}." if changed else f"{text}."


def claim_line(it: Change) -> list[str]:
    own, other = it.own, it.other
    return [
        own.claim.id,
        *(cells.difference(each.over_seeds) for each in (own, other)),
        own.verdict,
        other.verdict,
    ]


def not_rescored(rescored: Rescored, unchecked: Sequence[Claim] = ()) -> list[str]:
    """Runs, rows and claims that were not rescored, with the reasons."""
    untagged: set[Path] = set()
    lines = []
    for result in rescored.page.results:
        runs = [it for it in result.runs.values() if isinstance(it, ArchivedRun) and not it.has_tags]
        if runs and result.row.label not in rescored.other_rows:
            untagged.update(run.folder for run in runs)
            names = ", ".join(run.folder.name for run in runs)
            lines.append(
                f"{result.row.label}: archived without predicted tags, to be trained again: {names} in "
                f"{runs[0].folder.parent}"
            )
    lines += [reason for folder, reason in rescored.not_rescored.items() if folder not in untagged]
    labels: dict[str, list[str]] = {}
    for label, reason in rescored.other_rows.items():
        labels.setdefault(reason, []).append(label)
    lines += [f"{'; '.join(rows)}: {reason}" for reason, rows in labels.items()]
    if unchecked:
        names = ", ".join(claim.id for claim in unchecked)
        lines.append(f"claims that need such runs: {names}")
    return lines
