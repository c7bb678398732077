"""Verdicts on the claims of the ledger, computed from the archived runs: holds, equal, opposite or open.

The claims whose first row is of one source are a family: Holm's correction counts those of them that are tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from ner_experiments.analysis import archive, statistics
from ner_experiments.analysis.statistics import Difference
from ner_experiments.runs.run import Run
from ner_experiments.tables import results_folder, spec
from ner_experiments.tables.claims import Claim, Reference, Side, Source
from ner_experiments.tables.pairs import MAX_SEEDS
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.significance import ALPHA, Tested, seeds_to_detect, tested_together

Verdict = Literal["holds", "equal", "opposite", "open"]
Scores = Mapping[int, float]
Reader = Callable[[Source], Page | None]
"""Reads the archived runs of a source, as `read_source`."""

BY_DIRECTION: Mapping[str, Mapping[str, Verdict]] = {
    "higher": {"ahead": "holds", "behind": "opposite", "equal": "equal", "open": "open"},
    "lower": {"ahead": "opposite", "behind": "holds", "equal": "equal", "open": "open"},
    "equal": {"ahead": "opposite", "behind": "opposite", "equal": "holds", "open": "open"},
}
"""The verdict on a claim with this direction, by that on its first side against its second."""


@dataclass(frozen=True, kw_only=True)
class Decided:
    """A claim, what was measured for it, and the verdict that follows.

    a, b: scores by seed, in points; b is empty if the claim is about a alone.
    over_seeds: the difference of a and b. p_adjusted: its p after Holm's correction; None if a side has one seed.
    runs_made_for_it: the number of runs that recorded the hash of this claim when they were started.
    detectable: the smallest true difference, in points, that a test with these runs detects with 80 % power.
    seeds_needed: seeds per side with which the paper's difference is detected with 80 % power, or the smallest effect
        if the paper prints none; None if a side has one seed, or if more than `MAX_SEEDS` are needed.
    """

    claim: Claim
    a: Scores
    b: Scores
    verdict: Verdict
    over_seeds: Difference | None = None
    p_adjusted: float | None = None
    runs_made_for_it: int = 0
    detectable: float | None = None
    seeds_needed: int | None = None

    @property
    def runs(self) -> tuple[int, ...]:
        """Seeds of each side."""
        return tuple(len(side) for side in (self.a, self.b) if side)

    @property
    def needs(self) -> str:
        """A phrase for the evidence that an open claim lacks; empty for any other."""
        if self.verdict != "open":
            return ""
        if not self.a or (self.claim.direction != "at most" and not self.b):
            return "runs of both rows"
        if self.detectable is None:
            return "a second seed of each row that has one"
        if self.seeds_needed is None:
            return f"more than {MAX_SEEDS:,} seeds per row"
        if self.seeds_needed <= min(self.runs):
            return f"a true difference of {self.detectable:.2f} points"
        return f"{self.seeds_needed} seeds per row, or a true difference of {self.detectable:.2f} points"

    @property
    def size(self) -> str:
        """`smaller` or `larger` if the claim holds but the paper's difference is outside our interval; else empty."""
        ours, published = self.over_seeds, self.claim.published
        if self.verdict != "holds" or ours is None or ours.low is None or ours.high is None or not published:
            return ""
        low, high = sorted(sign(published) * end for end in (ours.low, ours.high))
        return "smaller" if abs(published) > high else "larger" if abs(published) < low else ""

    def record(self) -> dict[str, Any]:
        """Its values by name, as in `ner-experiments claims --json`. Differences are in points."""
        claim, ours = self.claim, self.over_seeds
        return {
            "id": claim.id,
            "paper": claim.paper,
            "place": claim.place,
            "claim": claim.claim,
            "hash": claim.hash,
            "table": claim.source.table,
            "overrides": [*claim.source.overrides],
            "deviates": claim.source.deviates,
            "corpus": claim.corpus,
            "a": [reference.label for reference in claim.a],
            "b": [reference.label for reference in claim.b],
            "direction": claim.direction,
            "bound": claim.bound,
            "published": claim.published,
            "smallest_effect": claim.source.smallest_effect,
            "verdict": self.verdict,
            "size": self.size,
            "difference": ours and ours.mean,
            "low": ours and ours.low,
            "high": ours and ours.high,
            "p": ours and ours.p,
            "p_adjusted": self.p_adjusted,
            "test": ours and ours.test,
            "runs": [*self.runs],
            "runs_made_for_it": self.runs_made_for_it,
            "minimum_detectable_effect": self.detectable,
            "seeds_needed": self.seeds_needed,
            "needs": self.needs,
        }


def decide(claims: Sequence[Claim], results: Path) -> list[Decided]:
    """The claims with their verdicts, in the order given. Pass all claims of a family: they are corrected together.

    Raises ValueError if the runs of a claim are of another corpus than it says.
    """
    archived = cache(partial(read_source, results))
    by_id: dict[str, Decided] = {}
    for _, family in groupby(sorted(claims, key=family_of), key=family_of):
        by_id |= {it.claim.id: it for it in decide_family(list(family), archived)}
    return [by_id[claim.id] for claim in claims]


def family_of(claim: Claim) -> str:
    """The name of the family of claims that are corrected together."""
    return claim.source.name


def decide_family(claims: Sequence[Claim], archived: Reader) -> list[Decided]:
    measured = [sides(claim, archived) for claim in claims]
    compared = [statistics.difference(a, b) if a and b else None for a, b in measured]
    tested = tested_together([it for it in compared if it], claims[0].source.smallest_effect, ALPHA)
    of_claim = iter(tested)
    level = ALPHA / max(1, sum(it.p_adjusted is not None for it in tested))
    decided = []
    for claim, (a, b), difference in zip(claims, measured, compared, strict=True):
        test = next(of_claim) if difference else None
        decided.append(
            Decided(
                claim=claim,
                a=a,
                b=b,
                verdict=verdict(claim, a, test),
                over_seeds=difference,
                p_adjusted=test.p_adjusted if test else None,
                runs_made_for_it=sum(
                    claim.hash in run.metrics.get("claims", ()) for run in runs(claim, archived)
                ),
                **power(claim, a, b, difference, level),
            )
        )
    return decided


def verdict(claim: Claim, a: Scores, test: Tested | None) -> Verdict:
    if claim.bound is not None:
        return "open" if not a else "holds" if max(a.values()) <= claim.bound else "opposite"
    return BY_DIRECTION[claim.direction][test.verdict] if test else "open"


def power(claim: Claim, a: Scores, b: Scores, difference: Difference | None, level: float) -> dict[str, Any]:
    """`detectable` and `seeds_needed` of a claim that is tested at this level."""
    if difference is None or difference.error is None or difference.freedom is None:
        return {}
    error, effect = difference.error, claim.published or claim.source.smallest_effect
    found = statistics.minimum_detectable_effect(error, difference.freedom, alpha=level) if error else 0.0
    rows = statistics.summarize(a), statistics.summarize(b)
    return {
        "detectable": found,
        "seeds_needed": seeds_to_detect(*rows, effect, alpha=level, most=MAX_SEEDS),
    }


def sign(number: float) -> int:
    return 1 if number > 0 else -1


# The runs of a claim


def read_source(results: Path, source: Source) -> Page | None:
    """The archived runs of a source; None if there are none. Of an analysis, those of the table that it analyzes."""
    folder = results_folder.find_folder(results, spec.load(source.table).runs_of, source.overrides)
    return results_folder.read(folder) if folder else None


def sides(claim: Claim, archived: Reader) -> tuple[Scores, Scores]:
    """Scores of a and b by seed, in points. Of a row of an analysis, those of its two rows."""
    check_corpus(claim, archived)
    measure = claim.a[0].row.measure
    if measure is None:
        return of_side(claim.a, archived), of_side(claim.b, archived)
    page = archived(claim.source)

    def figures(label: str) -> Scores:
        runs = result_of(page, label).runs if page else {}
        return {seed: archive.f1_by_mention(run, measure.figure)[measure.key] for seed, run in runs.items()}

    return figures(measure.of), figures(measure.over)


def of_side(side: Side, archived: Reader) -> Scores:
    """Scores by seed; of two rows, their differences for the seeds that both have."""
    rows = [scores(reference, archived) for reference in side]
    if len(rows) < 2:
        return rows[0] if rows else {}
    first, second = rows
    return {seed: first[seed] - second[seed] for seed in first if seed in second}


def scores(reference: Reference, archived: Reader) -> Scores:
    page = archived(reference.source)
    return result_of(page, reference.label).scores if page else {}


def result_of(page: Page, label: str) -> Result:
    return next(result for result in page.results if result.row.label == label)


def runs(claim: Claim, archived: Reader) -> Iterable[Run]:
    """The runs of all rows of a claim."""
    for reference in claim.references:
        page = archived(reference.source)
        if page is None:
            continue
        measure = reference.row.measure
        for label in [measure.of, measure.over] if measure else [reference.label]:
            yield from result_of(page, label).runs.values()


def check_corpus(claim: Claim, archived: Reader) -> None:
    names = sorted({run.metrics["data"]["name"] for run in runs(claim, archived)} - {claim.corpus})
    if names:
        raise ValueError(f"claim {claim.id}: corpus must be that of its runs, {names[0]}, got {claim.corpus}")
