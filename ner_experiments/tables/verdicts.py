"""Verdicts on the claims of the ledger, computed from the archived runs: holds, equal, opposite or undecided.

The claims whose first row is of one source are a family: Holm's correction counts them all, also those whose runs are
still missing. They are tested at the looks of the source's plan, each at the level that it may spend
(analysis/sequential.py). A claim that is tested more than once, with runs of several settings, has the verdict of the
tests that decide it. Each verdict says whether its runs recorded the hash of their claim before their test score was
known, and whether it needs looks that were added when results were known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeVar

from ner_experiments.analysis import archive, statistics
from ner_experiments.analysis.sequential import levels
from ner_experiments.analysis.statistics import Difference
from ner_experiments.runs.run import Run
from ner_experiments.runs.store import find_archive
from ner_experiments.tables import results_folder, spec
from ner_experiments.tables.claims import Claim, ClaimSource, Reference, Side
from ner_experiments.tables.experiments import deviations
from ner_experiments.tables.results_folder import Read
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.significance import ALPHA, Tested, correct_together

ClaimVerdict = Literal["holds", "equal", "opposite", "undecided"]
Registered = Literal["full", "part", "none"]
"""Whether all, some or none of the runs of a test recorded its hash when they were started."""
Size = Literal["", "smaller", "larger"]
T = TypeVar("T")
Scores = Mapping[int, float]
TEST = "test"
"""The test set of the corpus; others are those of `audit.extra_tests`."""
Reader = Callable[[ClaimSource, str], Result]
"""A row of a source, or of the table that it analyzes, by its label, with its archived runs, if there are any."""

BY_DIRECTION: Mapping[str, Mapping[str, ClaimVerdict]] = {
    "higher": {"ahead": "holds", "behind": "opposite", "equal": "equal", "undecided": "undecided"},
    "lower": {"ahead": "opposite", "behind": "holds", "equal": "equal", "undecided": "undecided"},
    "equal": {"ahead": "opposite", "behind": "opposite", "equal": "holds", "undecided": "undecided"},
}
"""The verdict on a claim with this direction, by that on its first side against its second."""


@dataclass(frozen=True)
class Look:
    """A look at a claim that its plan allows: the seeds of each side, and the test."""

    seeds: tuple[int, ...]
    test: Tested


@dataclass(frozen=True, kw_only=True)
class Decided:
    """A claim, what was measured for it, and the verdict that follows.

    a, b: scores by seed, in points, of the seeds that the look has; b is empty if the claim is about a alone.
    over_seeds: the difference of a and b.
    look: the one that decided the claim, or the last one; None before the first, and if the claim has a bound.
    first_verdict: the verdict without the looks that were added when results were known.
    registered: whether the runs of the seeds in a and b recorded the hash of this claim when they were started.
    runs_made_for_it: the number of runs, of any seed, that did.
    """

    claim: Claim
    a: Scores
    b: Scores
    verdict: ClaimVerdict
    first_verdict: ClaimVerdict
    registered: Registered = "none"
    over_seeds: Difference | None = None
    look: Look | None = None
    runs_made_for_it: int = 0

    @property
    def p_adjusted(self) -> float | None:
        """The p of the difference after Holm's correction; None before the first look."""
        return self.look.test.p_adjusted if self.look else None

    @property
    def runs(self) -> tuple[int, ...]:
        """Seeds of each side."""
        return tuple(len(side) for side in (self.a, self.b) if side)

    @property
    def lacks_rows(self) -> bool:
        """Whether a row that the claim compares has no runs."""
        return not self.a or (self.claim.direction != "at most" and not self.b)

    @property
    def size(self) -> Size:
        """`smaller` or `larger` if the claim holds but the paper's difference is outside our interval; else empty."""
        return size_of(self.over_seeds, self.claim.published) if self.verdict == "holds" else ""

    def record(self) -> dict[str, Any]:
        """Its values by name, as in `ner-experiments claims --json`. Differences are in points."""
        claim = self.claim
        return contrast_record(claim, self.over_seeds) | {
            "repeats": claim.repeats,
            "hash": claim.hash,
            "overrides": [*claim.source.overrides],
            "deviates": claim.source.deviates,
            "registered": self.registered,
            "verdict_before_added_looks": self.first_verdict,
            "bound": claim.bound,
            "smallest_effect": claim.source.smallest_effect,
            "verdict": self.verdict,
            "size": self.size,
            "p_adjusted": self.p_adjusted,
            "level": self.look.test.alpha if self.look else None,
            "runs": [*self.runs],
            "runs_made_for_it": self.runs_made_for_it,
        }


def contrast_record(claim: Claim, ours: Difference | None) -> dict[str, Any]:
    """A claim and our difference by name, as in the JSON of exploratory and of registered tests, in points."""
    return {
        "id": claim.id,
        "paper": claim.paper,
        "place": claim.place,
        "claim": claim.claim,
        "rung": claim.rung,
        "corpus": claim.corpus,
        "table": claim.source.table,
        "a": [reference.label for reference in claim.a],
        "b": [reference.label for reference in claim.b],
        "direction": claim.direction,
        "published": claim.published,
        "difference": ours and ours.mean,
        "low": ours and ours.low,
        "high": ours and ours.high,
        "p": ours and ours.p,
        "test": ours and ours.test,
    }


def size_of(ours: Difference | None, published: float | None, *, by: float = 0.0) -> Size:
    """Whether our difference is smaller or larger than the paper's, which is more than `by` outside our interval."""
    if ours is None or ours.low is None or ours.high is None or not published:
        return ""
    low, high = (ours.low, ours.high) if published > 0 else (-ours.high, -ours.low)
    return "smaller" if abs(published) - by > high else "larger" if abs(published) + by < low else ""


@dataclass(frozen=True)
class ClaimTests:
    """A claim of a paper with all its tests: the first, then those that repeat it."""

    tests: tuple[Decided, ...]

    @property
    def id(self) -> str:
        """The id of the first test."""
        return self.tests[0].claim.id

    @property
    def verdict(self) -> ClaimVerdict:
        """The verdict of all tests that decide the claim; undecided if none does or they disagree."""
        return agreed(it.verdict for it in self.tests)

    @property
    def first_verdict(self) -> ClaimVerdict:
        """The verdict without the looks that were added when results were known."""
        return agreed(it.first_verdict for it in self.tests)

    @property
    def disagree(self) -> bool:
        """Whether its tests decide it differently."""
        return self.verdict == "undecided" and self.shown.verdict != "undecided"

    @property
    def shown(self) -> Decided:
        """The first test that decides the claim; else the first that a look has tested; else the first of all."""
        decisive = (it for it in self.tests if it.verdict != "undecided")
        tested = (it for it in self.tests if it.look)
        return next(decisive, None) or next(tested, self.tests[0])

    def record(self) -> dict[str, Any]:
        """The values of the test that is shown, with the verdict on the claim, and those of all tests."""
        own = {
            "id": self.id,
            "verdict": self.verdict,
            "size": "" if self.disagree else self.shown.size,
            "figures_of": self.shown.claim.id,
        }
        return self.shown.record() | own | {"tests": [it.record() for it in self.tests]}


def agreed(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    found = {*verdicts} - {"undecided"}
    return found.pop() if len(found) == 1 else "undecided"


def by_claim(decided: Sequence[Decided]) -> list[ClaimTests]:
    """The claims, each with its tests, in the order of their first tests."""
    tests: dict[str, list[Decided]] = {}
    for it in decided:
        tests.setdefault(it.claim.first_id, []).append(it)
    return [ClaimTests(tuple(group)) for group in tests.values()]


def decide(claims: Sequence[Claim], results: Path, read: Read = results_folder.read) -> list[Decided]:
    """The claims with their verdicts, in the order given. Pass all claims of a family: they are corrected together.

    Raises ValueError if the runs of a claim are of another corpus than it says.
    """
    return decide_by(claims, reader(results, read))


def decide_by(claims: Sequence[Claim], archived: Reader) -> list[Decided]:
    """As `decide`, with the runs that a reader returns."""
    by_source = attrgetter("source.name")
    by_id: dict[str, Decided] = {}
    for _, group in groupby(sorted(claims, key=by_source), key=by_source):
        family = [*group]
        source = family[0].source
        found = decide_family(family, archived, source.looks)
        if source.first_looks:
            first = decide_family(family, archived, source.first_looks)
            found = [replace(it, first_verdict=old.verdict) for it, old in zip(found, first, strict=True)]
        by_id |= {it.claim.id: it for it in found}
    return [by_id[claim.id] for claim in claims]


def with_families(ledger: Sequence[Claim], wanted: Iterable[Claim]) -> list[Claim]:
    """All claims that are corrected together with those wanted: those whose first row is of the same source."""
    names = {claim.source.name for claim in wanted}
    return [claim for claim in ledger if claim.source.name in names]


def decide_family(claims: Sequence[Claim], archived: Reader, planned: Sequence[int]) -> list[Decided]:
    """Replay the planned looks of a family. A claim that a look decides is not tested again at a later one."""
    source = claims[0].source
    measured = [sides(claim, archived) for claim in claims]
    looks: dict[int, Look] = {}
    for count, level in zip(planned, levels(planned, ALPHA), strict=True):
        seeds = source.seeds[:count]
        undecided = {
            number: pair
            for number, pair in enumerate(measured)
            if claims[number].bound is None
            and (number not in looks or looks[number].test.verdict == "undecided")
        }
        compared = {
            number: statistics.difference(only(a, seeds), only(b, seeds))
            for number, (a, b) in undecided.items()
            if {*seeds} <= a.keys() & b.keys()
        }
        # Holm's procedure drops what it has found: differences in the tests of a difference, equal rows in those of
        # equivalence. A claim that the other kind of test has decided still counts.
        found = [look.test.verdict for look in looks.values() if look.test.verdict != "undecided"]
        equal = found.count("equal")
        tests = correct_together(
            [*compared.values()],
            source.smallest_effect,
            level,
            planned=len(undecided) + equal,
            planned_equal=len(undecided) + len(found) - equal,
        )
        looks |= {number: Look(seeds, test) for number, test in zip(compared, tests, strict=True)}
    return [
        decided(claim, a, b, looks.get(number), archived)
        for number, (claim, (a, b)) in enumerate(zip(claims, measured, strict=True))
    ]


def decided(claim: Claim, a: Scores, b: Scores, look: Look | None, archived: Reader) -> Decided:
    """A claim with its verdict: undecided before the first look, with the difference of the planned runs."""
    seeds = look.seeds if look else claim.source.seeds
    a, b = only(a, seeds), only(b, seeds)
    found = verdict(claim, a, look)
    recorded = [
        (run.metrics["seed"], claim.hash in run.metrics.get("claims", ())) for run in runs(claim, archived)
    ]
    of_test = [is_recorded for seed, is_recorded in recorded if seed in seeds]
    return Decided(
        claim=claim,
        a=a,
        b=b,
        verdict=found,
        first_verdict=found,
        registered="none" if not any(of_test) else "full" if all(of_test) else "part",
        over_seeds=look.test.over_seeds if look else statistics.difference(a, b) if a and b else None,
        look=look,
        runs_made_for_it=sum(is_recorded for _, is_recorded in recorded),
    )


def only(by_seed: Mapping[int, T], seeds: Collection[int]) -> dict[int, T]:
    """The entries of these seeds, as far as there are any."""
    return {seed: found for seed, found in by_seed.items() if seed in seeds}


def verdict(claim: Claim, a: Scores, look: Look | None) -> ClaimVerdict:
    if claim.bound is not None:
        return "undecided" if not a else "holds" if max(a.values()) <= claim.bound else "opposite"
    return BY_DIRECTION[claim.direction][look.test.verdict] if look else "undecided"


# The runs of a claim


def reader(results: Path, read: Read = results_folder.read) -> Reader:
    """A reader of results/, which reads each table once. The runs of an analysis are those of the table it analyzes."""

    @cache
    def find(table: str, overrides: tuple[str, ...]) -> Page | None:
        found = find_archive(results, table, overrides)
        if found is None and overrides:  # archives leave out overrides that the table has anyway
            found = find_archive(results, table, deviations(spec.load(table), overrides))
        return read(found.folder) if found else None

    return row_reader(lambda source: find(spec.load(source.table).runs_of, tuple(source.overrides)))


def row_reader(page_of: Callable[[ClaimSource], Page | None]) -> Reader:
    """A reader of the rows of the pages of sources; None: a source has no runs."""

    def row(source: ClaimSource, label: str) -> Result:
        page = page_of(source)
        rows = page.results if page else map(Result, spec.load(spec.load(source.table).runs_of).rows)
        return next(result for result in rows if result.row.label == label)

    return row


def sides(claim: Claim, archived: Reader, test_set: str = TEST) -> tuple[Scores, Scores]:
    """Scores of a and b on a test set by seed, in points. Of a row of an analysis, those of its two rows."""
    names = sorted({run.metrics["data"]["name"] for run in runs(claim, archived)} - {claim.corpus})
    if names:
        raise ValueError(f"claim {claim.id}: corpus must be that of its runs, {names[0]}, got {claim.corpus}")
    measure = claim.a[0].row.measure
    if measure is None:
        return of_side(claim.a, archived, test_set), of_side(claim.b, archived, test_set)

    def figures(label: str) -> Scores:
        if test_set != TEST:  # figures are archived of test alone
            return {}
        found = archived(claim.source, label).runs
        return {seed: archive.f1_by_mention(it, measure.figure)[measure.key] for seed, it in found.items()}

    return figures(measure.of), figures(measure.over)


def of_side(side: Side, archived: Reader, test_set: str) -> Scores:
    """Scores by seed; of two rows, their differences for the seeds that both have."""
    rows: list[Scores] = []
    for reference in side:
        row = archived(reference.source, reference.label)
        on_others = {
            seed: run.on(test_set).score for seed, run in row.runs.items() if test_set in run.extra_tests
        }
        rows.append(row.scores if test_set == TEST else on_others)
    if len(rows) < 2:
        return rows[0] if rows else {}
    first, second = rows
    return {seed: first[seed] - second[seed] for seed in first if seed in second}


def rows(claim: Claim, archived: Reader) -> Iterator[tuple[Reference, Result]]:
    """The rows whose runs a claim needs; of a row of an analysis, the two that it compares."""
    for reference in claim.references:
        for _, label in reference.trained:
            yield reference, archived(reference.source, label)


def runs(claim: Claim, archived: Reader) -> Iterator[Run]:
    """The runs of all rows of a claim."""
    for _, row in rows(claim, archived):
        yield from row.runs.values()
