"""How far a table's numbers can be trusted: a row's mean, the difference of two, the published number.

A row's scores are one number per seed, all in one unit (fractions or percent). Intervals are 95 %, two-sided.
They speak of new seeds on the same test set; `randomisation.randomization_test` speaks of new sentences too.
"""

import math
import sys
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import mean, stdev  # exact: equal scores have a deviation of exactly 0
from typing import Literal

from scipy.stats import nct, t

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Summary:
    """`sd` is the sample's (n - 1), `low` to `high` Student's interval of the mean; None for one seed."""

    mean: float
    sd: float | None
    n: int
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of a minus mean of b, its interval and two-sided p; None where a row has too few seeds."""

    mean: float
    low: float | None
    high: float | None
    p: float | None
    test: Literal["paired t", "Welch t"] | None


@dataclass(frozen=True, slots=True)
class AgainstPublished:
    """Our mean minus the published number; where that number was to be expected, and whether it is there."""

    difference: float
    low: float | None
    high: float | None
    inside: bool | None


def summarize(scores: Iterable[float]) -> Summary:
    scores = [float(score) for score in scores]
    if not scores:
        raise ValueError("expected the score of at least one seed, got none")
    centre, n = mean(scores), len(scores)
    if n == 1:
        return Summary(centre, None, 1, None, None)
    sd = stdev(scores)
    half = _quantile(n - 1) * sd / math.sqrt(n)
    return Summary(centre, sd, n, centre - half, centre + half)


def difference(a: Mapping[int, float], b: Mapping[int, float]) -> Difference:
    """Paired by seed where both rows have the same seeds, otherwise Welch's (1947) for two samples.

    `a` and `b` are scores by seed. The pairs need two seeds, Welch's needs two in each row.
    """
    if a.keys() == b.keys():
        pairs = summarize(a[seed] - b[seed] for seed in a)
        if pairs.sd is None:
            return Difference(pairs.mean, None, None, None, None)
        return _tested(pairs.mean, pairs.sd / math.sqrt(pairs.n), pairs.n - 1, "paired t")
    first, second = summarize(a.values()), summarize(b.values())
    gap = first.mean - second.mean
    if first.sd is None or second.sd is None:
        return Difference(gap, None, None, None, None)
    return _tested(gap, *_welch(first.sd, first.n, second.sd, second.n), "Welch t")


def against_published(
    scores: Iterable[float], published: float, *, sd: float | None = None, runs: int = 1
) -> AgainstPublished:
    """Whether a published mean of so many `runs` could be the mean of as many further runs of ours.

    `low` to `high` is Student's prediction interval, mean ± t s sqrt(1/n + 1/runs). Where the paper prints
    its own `sd`, its runs vary by that and ours by ours: mean ± t sqrt(s²/n + sd²/runs), Welch's freedom.
    None for one seed.
    """
    if sd is not None and runs < 2:
        raise ValueError(f"a published deviation ({sd}) is of at least 2 runs, got runs={runs}")
    ours = summarize(scores)
    gap = ours.mean - published
    if ours.sd is None:
        return AgainstPublished(gap, None, None, None)
    if sd is None:
        error, freedom = ours.sd * math.sqrt(1 / ours.n + 1 / runs), float(ours.n - 1)
    else:
        error, freedom = _welch(ours.sd, ours.n, sd, runs)
    half = _quantile(freedom) * error
    return AgainstPublished(gap, ours.mean - half, ours.mean + half, abs(gap) <= half)


def seeds_needed(
    sd_a: float, sd_b: float, difference: float, *, power: float = 0.8, alpha: float = 0.05
) -> int:
    """Fewest seeds per row with which Welch's two-sided test sees a true difference with chance `power`.

    By the noncentral t. The deviations are taken as known, so this is a hint, not a promise.
    """
    if difference == 0:
        raise ValueError("no number of seeds shows a difference of 0")
    seeds = range(2, sys.maxsize)
    return 2 + bisect_left(seeds, power, key=lambda n: _power(sd_a, sd_b, difference, n, alpha))


def _quantile(freedom: float) -> float:
    return float(t.ppf((1 + CONFIDENCE) / 2, freedom))


def _tested(gap: float, error: float, freedom: float, test: Literal["paired t", "Welch t"]) -> Difference:
    half = _quantile(freedom) * error
    p = float(2 * t.sf(abs(gap) / error, freedom)) if error else float(gap == 0)
    return Difference(gap, gap - half, gap + half, p, test)


def _welch(sd_a: float, n_a: int, sd_b: float, n_b: int) -> tuple[float, float]:
    """Standard error of a difference of means, and its degrees of freedom (Welch 1947)."""
    a, b = sd_a**2 / n_a, sd_b**2 / n_b
    if a + b == 0:
        return 0.0, float(n_a + n_b - 2)
    share = a / (a + b)
    return math.sqrt(a + b), 1 / (share**2 / (n_a - 1) + (1 - share) ** 2 / (n_b - 1))


def _power(sd_a: float, sd_b: float, difference: float, n: int, alpha: float) -> float:
    error, freedom = _welch(sd_a, n, sd_b, n)
    if error == 0:
        return 1.0
    critical, shift = t.isf(alpha / 2, freedom), abs(difference) / error
    return float(nct.sf(critical, freedom, shift) + nct.cdf(-critical, freedom, shift))
