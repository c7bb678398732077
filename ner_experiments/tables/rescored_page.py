"""A table scored against another gold file, as Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ner_experiments.analysis import statistics
from ner_experiments.analysis.statistics import Summary
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.tables.claims import Claim
from ner_experiments.tables.rescored import Change, Ranking, Rescored, RescoredRun, rankings
from ner_experiments.tables.scores import Result
from ner_experiments.utils.files import sha256
from ner_experiments.view import cells, pages
from ner_experiments.view.table import Grid

HEADINGS = ("", "own gold", "95 %", "other gold", "95 %", "change", "95 %", "rank", "rank, other gold")
CLAIM_HEADINGS = ("claim", "own gold", "other gold", "exploratory verdict", "exploratory verdict, other gold")


@dataclass(frozen=True)
class RescoredView:
    """The rows of a table under both golds, their ranks, the claims about them, and what could not be compared."""

    rescored: Rescored
    changes: Sequence[Change] = ()
    unchecked: Sequence[Claim] = ()

    def markdown(self, command: str = "") -> str:
        """The page; command: that which makes it, if the page names it."""
        return pages.page("rescored.md.j2", view=self, page=self.rescored.page, command=command)

    def json(self) -> str:
        return json.dumps(self.record(), indent=2, ensure_ascii=False) + "\n"

    def record(self) -> dict[str, Any]:
        """The content of the page by name."""
        rescored = self.rescored
        return {
            "name": rescored.page.table.name,
            "deviations": list(rescored.page.deviations),
            "gold": {
                "file": rescored.gold.name,
                "sha256": sha256(rescored.gold),
                "mentions": rescored.mentions,
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
                for old, new in self.rows
            ],
            "rankings": [asdict(it) for it in self.rankings],
            "claims": [
                {
                    "id": it.own.claim.id,
                    "own": it.own.record(),
                    "other": it.other.record(),
                    "changed": it.changed,
                }
                for it in self.changes
            ],
            "claims_not_rescored": [claim.id for claim in self.unchecked],
            "runs_not_rescored": {str(folder): reason for folder, reason in rescored.not_rescored.items()},
            "rows_not_rescored": dict(rescored.other_rows),
        }

    @property
    def origin(self) -> str:
        """A sentence on the runs: exploratory, unless they were registered, which other gold does not decide.

        Empty for files: nothing shows whether they were planned.
        """
        runs = self.rescored.other.runs
        if not self.rescored.projections:
            return ""
        number = sum(bool(run.metrics.get("registration")) for run in runs)
        if not number:
            return "All runs and verdicts on this page are *exploratory*."
        return f"{number} of {len(runs)} runs are registered; other gold is secondary, and decides nothing."

    @cached_property
    def rows(self) -> list[tuple[Result, Result]]:
        """The rows with rescored runs, by their own gold and by the other."""
        pairs = zip(self.rescored.own.results, self.rescored.other.results, strict=True)
        return [(own, other) for own, other in pairs if other.runs]

    @cached_property
    def rankings(self) -> Sequence[Ranking]:
        return rankings(self.rescored)

    @property
    def scores(self) -> Grid:
        ranks = {
            label: [f"{own}", f"{other}"]
            for it in self.rankings
            for label, own, other in zip(it.labels, it.own, it.other, strict=True)
        }
        lines = []
        for old, new in self.rows:
            gap = change(old, new)
            both = [(cells.score(it.measured), cells.interval(it.measured)) for it in (old, new)]
            changed = (cells.points(gap.mean, "+"), cells.interval(gap))
            lines.append([old.row.label, *both[0], *both[1], *changed, *ranks[old.row.label]])
        return Grid(HEADINGS, lines)

    @property
    def correlations(self) -> list[str]:
        """A sentence on how alike the two golds rank the rows, for each test set with as many as are ranked."""
        return [
            f"Kendall's tau of the two rankings of {len(it.labels)} rows on {it.data}: {it.tau:.2f}, {it.low:.2f} to "
            f"{it.high:.2f} in 95 % of 1,000 bootstrap draws of test sentences."
            for it in self.rankings
            if it.tau is not None
        ]

    @property
    def compared(self) -> str:
        """Paragraph on the gold file: its mentions, and the number of those that could not be compared."""
        gold = self.rescored.gold
        text = f"{gold.name} has {self.rescored.mentions:,} gold mentions (SHA-256 `{sha256(gold)}`)."
        if not self.rescored.projections:
            return f"{text} All are compared."
        missing = sorted({it.left_out for it in self.rescored.projections.values()})
        predicted = sorted({number for _, row in self.rows for number in left_out(row).values()})
        if missing == predicted == [0]:
            return f"{text} All have a place on the runs' tokens."
        return (
            f"{text} {cells.numbers(missing)} of them are left out, as they start or end inside a token of the runs' "
            "text, cross the end of a sentence, or have characters that it lacks; with them, "
            f"{cells.numbers(predicted)} predicted mentions of each run that touch the same tokens."
        )

    @property
    def claims_in_short(self) -> str:
        changed = [it.own.claim.id for it in self.changes if it.changed]
        tests = "1 test of a claim" if len(self.changes) == 1 else f"{len(self.changes)} tests of claims"
        verb = "changes its" if len(changed) == 1 else "change their"
        text = f"Of {tests} about these rows, {len(changed) or 'none'} {verb} verdict"
        return f"{text}: {', '.join(changed)}." if changed else f"{text}."

    @property
    def claims(self) -> Grid:
        lines = []
        for it in self.changes:
            both = (it.own, it.other)
            differences = [cells.difference(each.over_seeds) for each in both]
            lines.append([it.own.claim.id, *differences, *(each.verdict for each in both)])
        return Grid(CLAIM_HEADINGS, lines)

    @property
    def not_rescored(self) -> list[str]:
        """Runs, rows and claims that were not rescored, with the reasons."""
        lines = not_rescored(self.rescored)
        if self.unchecked:
            lines.append(f"claims that need such runs: {', '.join(claim.id for claim in self.unchecked)}")
        return lines


def change(own: Result, other: Result) -> Summary:
    """Other gold minus own gold, seed by seed."""
    return statistics.summarize([other.scores[seed] - score for seed, score in own.scores.items()])


def left_out(row: Result) -> dict[int, int]:
    """For each seed, the number of predicted mentions that are not compared."""
    return {seed: run.left_out for seed, run in row.runs.items() if isinstance(run, RescoredRun)}


def not_rescored(rescored: Rescored) -> list[str]:
    """Runs and rows that were not rescored, with the reasons."""
    untagged: set[Path] = set()
    lines = rescored.page.not_counted
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
    return lines + [f"{'; '.join(rows)}: {reason}" for reason, rows in labels.items()]
