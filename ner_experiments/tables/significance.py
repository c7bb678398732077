"""Differences between the rows of a table, their significance, and a verdict on each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ner_experiments.analysis import statistics
from ner_experiments.analysis.randomization import Randomization, randomization_tests
from ner_experiments.analysis.statistics import Correction, Difference, Summary
from ner_experiments.tables.scores import Result

ALPHA = 0.05
"""Accepted probability of at least one false claim over all differences of a table that are tested together."""

PairVerdict = Literal["ahead", "behind", "equal", "undecided"]


@dataclass(frozen=True)
class Tested:
    """A difference over seeds in points, corrected for the number of those that are tested with it.

    p_adjusted: its p, corrected by Holm; None if a row has one seed.
    p_equal: p of a difference of the smallest effect or more, corrected likewise; None if a row has one seed, or if
        no seed of either row differs from the others.
    q: its p, corrected by Benjamini and Hochberg; None if a row has one seed.
    smallest_effect: in points.
    alpha: the level at which the verdict is given.
    number: how many differences are tested together.
    """

    over_seeds: Difference
    p_adjusted: float | None
    p_equal: float | None
    q: float | None
    smallest_effect: float
    alpha: float
    number: int

    @property
    def verdict(self) -> PairVerdict:
        """Row a is ahead of row b, behind it, equal to within the smallest effect, or the order is undecided.

        Open if a row has one seed: a test over sentences says nothing about other seeds.
        """
        if self.p_adjusted is not None and self.p_adjusted <= self.alpha:
            return "ahead" if self.over_seeds.mean > 0 else "behind"
        return "equal" if self.p_equal is not None and self.p_equal <= self.alpha else "undecided"

    @property
    def detectable(self) -> float | None:
        """The true difference that these seeds detect with 80 % power, at the strictest level of Holm's correction.

        It says how much an undecided verdict leaves open. None for other verdicts, and without a standard error.
        """
        ours = self.over_seeds
        if self.verdict != "undecided" or not ours.error or ours.freedom is None:
            return None
        return statistics.minimum_detectable_effect(ours.error, ours.freedom, alpha=self.alpha / self.number)


def correct_together(
    differences: Sequence[Difference],
    smallest_effect: float,
    alpha: float,
    *,
    planned: int = 0,
    planned_equal: int = 0,
) -> list[Tested]:
    """Correct differences for their number; those that have no p, as a row has one seed, do not count.

    planned, planned_equal: how many tests of a difference, and of equivalence, are corrected together, if they are more
        than those that have a p. Those that are not among `differences` count as finding nothing, so that no verdict is
        weakened when they are made.
    """
    p_values = [it.p for it in differences]
    equal = [statistics.p_of_equivalence(it, smallest_effect) for it in differences]

    def tested(values: Sequence[float | None]) -> int:
        return sum(p is not None for p in values)

    def corrected(correction: Correction, values: Sequence[float | None], number: int) -> list[float | None]:
        not_made = [1.0] * (number - tested(values))
        return statistics.of_tested(correction, [*values, *not_made])[: len(values)]

    columns = zip(
        differences,
        corrected(statistics.holm, p_values, planned),
        corrected(statistics.holm, equal, planned_equal),
        corrected(statistics.benjamini_hochberg, p_values, planned),
        strict=True,
    )
    return [
        Tested(it, p, p_equal, q, smallest_effect, alpha, max(tested(p_values), planned))
        for it, p, p_equal, q in columns
    ]


def over_sentences(pairs: Sequence[tuple[Result, Result]]) -> list[Randomization]:
    """Approximate randomization of pairs of rows on one test set: over sentences, and seeds if both have several."""
    rows = {id(row): row for pair in pairs for row in pair}
    number = {key: place for place, key in enumerate(rows)}
    indices = [(number[id(a)], number[id(b)]) for a, b in pairs]
    return randomization_tests([row.counts for row in rows.values()], indices)


def over_seeds_and_sentences(test: Tested, sentences: Randomization) -> Difference | None:
    """The difference in points, with its interval for new seeds and new sentences; None if a row has one seed.

    Welch's variance over seeds is the first source of variance, and the choice of sentences, which both rows share, the
    second. Degrees of freedom are Satterthwaite's (1946), which can exceed those over seeds so far that the interval
    would be narrower than over seeds alone; it is then that one.
    """
    ours = test.over_seeds
    if ours.error is None or ours.freedom is None or sentences.sentences < 2:
        return None
    seeds, of_sentences = ours.error**2, 100**2 * sentences.sentence_variance
    shares = seeds**2 / ours.freedom + of_sentences**2 / (sentences.sentences - 1)
    total = seeds + of_sentences
    freedom = total**2 / shares if shares else ours.freedom
    both = statistics.t_test(ours.mean, math.sqrt(total), freedom, "Welch t")
    if both.low is not None and ours.low is not None and both.low > ours.low:
        return replace(both, low=ours.low, high=ours.high)
    return both


def difference_record(test: Tested, sentences: Randomization) -> dict[str, Any]:
    """The tests of a difference by name, as in `ner-experiments table --json`. Differences are in points."""
    ours = test.over_seeds
    both = over_seeds_and_sentences(test, sentences) or Difference(ours.mean)
    return {
        "difference": ours.mean,
        "low": ours.low,
        "high": ours.high,
        "low_over_seeds_and_sentences": both.low,
        "high_over_seeds_and_sentences": both.high,
        "test_over_seeds": ours.test,
        "p_over_seeds": ours.p,
        "p_over_seeds_and_sentences": sentences.p_over_seeds_and_sentences,
        "p_over_sentences": sentences.p_over_sentences,
        "p_adjusted": test.p_adjusted,
        "detectable": test.detectable,
        "verdict": test.verdict,
    }


def seeds_to_detect(
    a: Summary | None, b: Summary | None, difference: float, *, alpha: float = ALPHA, most: int | None = None
) -> int | None:
    """Seeds per row that detect the difference with 80 % power at this level.

    None if it is unknown, as a row has no two seeds or neither row's scores vary, if the difference is 0, and if more
    than `most` seeds are needed.
    """
    if not (a and b and difference) or a.sd is None or b.sd is None or a.sd == b.sd == 0:
        return None
    if most and statistics.power_of_welch(a.sd, b.sd, difference, most, alpha) < statistics.POWER:
        return None
    return statistics.seeds_needed(a.sd, b.sd, difference, alpha=alpha)


def assumed_difference(a: Result, b: Result, group: Sequence[Result]) -> Difference | None:
    """The difference of two rows, one of them of one seed, with the pooled variance of the group's rows; or None.

    None also if no row of the group has two seeds.
    """
    if len(a.scores) > 1 and len(b.scores) > 1:
        return None
    return statistics.pooled_difference(a.scores, b.scores, [it.scores for it in group])
