"""Intervals and tests over seeds: the mean of a row, the difference of two rows, and the published number.

The scores of a row are one number per seed, all in one unit (fractions or percent). Intervals are 95 %, two-sided.
They generalize to new seeds on the same test set; `randomization.randomization_test` also to new sentences.
"""

import math
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import mean, stdev  # exact: equal scores have a deviation of exactly 0
from typing import Literal

import scipy  # imports its parts when they are first used; scipy.stats, the slowest, is not

Test = Literal["Welch t", "pooled t"]

Scores = Iterable[float] | Mapping[int, float]
"""The score of each seed, or scores by seed."""

CONFIDENCE = 0.95
POWER = 0.8
"""Probability of detecting a true difference that `seeds_needed` plans for."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Sample mean and standard deviation (n - 1), with the t interval of the mean; for one seed, only the mean."""

    mean: float
    sd: float | None
    n: int
    low: float | None
    high: float | None

    def within(self, least: float, most: float) -> "Summary":
        """The summary with its interval cut at the ends of a scale."""
        if self.low is None or self.high is None:
            return self
        return replace(self, low=max(least, self.low), high=min(most, self.high))


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of a minus mean of b, with its interval and two-sided p; None if a row has too few seeds.

    low, high: None also without a spread between seeds.
    error, freedom: its standard error and the degrees of freedom of the t test; None likewise.
    """

    mean: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    test: Test | None = None
    error: float | None = None
    freedom: float | None = None


@dataclass(frozen=True, slots=True)
class AgainstPublished:
    """Our mean minus the published number, the prediction interval, and whether the number lies inside."""

    difference: float
    low: float | None
    high: float | None
    inside: bool | None


def summarize(scores: Scores) -> Summary:
    """Mean, deviation and interval of at least one score. ValueError for none."""
    return summary(tuple(map(float, scores.values() if isinstance(scores, Mapping) else scores)))


@lru_cache(maxsize=1000)  # each pair of rows asks for both of them again
def summary(scores: tuple[float, ...]) -> Summary:
    """As `summarize`."""
    if not scores:
        raise ValueError("expected the score of at least one seed, got none")
    center, n = mean(scores), len(scores)
    if n == 1:
        return Summary(center, None, 1, None, None)
    sd = stdev(scores)
    half = t_critical(n - 1, 1 - CONFIDENCE) * sd / math.sqrt(n)
    return Summary(center, sd, n, center - half, center + half)


def difference(a: Scores, b: Scores) -> Difference:
    """Difference of two rows by Welch's t (1947). It needs two seeds in each row.

    Equal seeds are not paired: the scores of two rows hardly correlate over seeds, so that pairing halves the degrees
    of freedom and gains nothing (benchmarks/seed_bank).
    """
    first, second = summarize(a), summarize(b)
    gap = first.mean - second.mean
    if first.sd is None or second.sd is None:
        return Difference(gap)
    # only rows of equal size have the same gap, with the opposite sign, when all their seeds are swapped
    by_orders = (1 + (first.n == second.n)) / math.comb(first.n + second.n, first.n)
    return t_test(gap, *welch(first.sd, first.n, second.sd, second.n), "Welch t", by_orders)


def against_published(
    scores: Iterable[float], published: float, *, sd: float | None = None, runs: int = 1
) -> AgainstPublished:
    """Compare the published mean of `runs` runs with the prediction interval of the mean of as many new runs of ours.

    The prediction interval is mean ± t s sqrt(1/n + 1/runs). With the paper's own `sd` it is
    mean ± t sqrt(s²/n + sd²/runs), with Welch's degrees of freedom. One seed gives no interval.
    """
    if sd is not None and runs < 2:
        raise ValueError(f"a published deviation ({sd}) requires at least 2 runs, got runs={runs}")
    ours = summarize(scores)
    gap = ours.mean - published
    if ours.sd is None:
        return AgainstPublished(gap, None, None, None)
    if sd is None:
        error, freedom = ours.sd * math.sqrt(1 / ours.n + 1 / runs), float(ours.n - 1)
    else:
        error, freedom = welch(ours.sd, ours.n, sd, runs)
    half = t_critical(freedom, 1 - CONFIDENCE) * error
    return AgainstPublished(gap, ours.mean - half, ours.mean + half, abs(gap) <= half)


def seeds_needed(
    sd_a: float, sd_b: float, difference: float, *, power: float = POWER, alpha: float = 0.05
) -> int:
    """Fewest seeds per row with which Welch's two-sided test detects a true difference with probability `power`.

    Computed from the noncentral t. The deviations are taken as known, so this is a rough guide.
    """
    if difference == 0:
        raise ValueError("no number of seeds can detect a difference of 0")
    seeds = range(2, sys.maxsize)
    return 2 + bisect_left(seeds, power, key=lambda n: power_of_welch(sd_a, sd_b, difference, n, alpha))


def pooled_difference(a: Scores, b: Scores, rows: Iterable[Scores]) -> Difference | None:
    """Difference of two rows on the assumption that both vary as `rows` do: Student's t with their pooled variance.

    The rows may have one seed each. None if no row of `rows` has two seeds.
    """
    first, second = summarize(a), summarize(b)
    spreads = [(it.sd**2, it.n - 1) for it in map(summarize, rows) if it.sd is not None]
    freedom = sum(own for _, own in spreads)
    if not freedom:
        return None
    variance = math.fsum(s2 * own for s2, own in spreads) / freedom
    error = math.sqrt(variance * (1 / first.n + 1 / second.n))
    return t_test(first.mean - second.mean, error, freedom, "pooled t")


def p_of_equivalence(difference: Difference, margin: float) -> float | None:
    """p of the hypothesis that the true means differ by `margin` or more.

    Two one-sided t tests with the difference's own error (Schuirmann 1987). A small p shows that the difference lies
    within ± margin. None if a row has too few seeds, and without a spread between seeds, as in a tiny test set or
    where nothing has been learned yet.
    """
    if not difference.error or difference.freedom is None:
        return None
    return t_tail((margin - abs(difference.mean)) / difference.error, difference.freedom)


def minimum_detectable_effect(
    error: float, freedom: float, *, power: float = POWER, alpha: float = 0.05
) -> float:
    """The smallest true difference that a two-sided t test with this error detects with probability `power`."""
    high = t_critical(freedom, alpha)
    while power_of_t(high, freedom, alpha) < power:
        high *= 1.5
    return error * float(
        scipy.optimize.brentq(lambda shift: power_of_t(shift, freedom, alpha) - power, 0.0, high)
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected for their number (Holm 1979), in the same order; at most 1."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, number in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[number]))
        adjusted[number] = largest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """q values (Benjamini & Hochberg 1995): of the tests with q <= 5 %, 5 % at most are false claims, on average."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    adjusted, smallest = [1.0] * len(p_values), 1.0
    for rank, number in zip(range(len(p_values), 0, -1), order, strict=True):
        smallest = min(smallest, len(p_values) / rank * p_values[number])
        adjusted[number] = smallest
    return adjusted


Correction = Callable[[Sequence[float]], list[float]]
"""Corrects p values for their number, as `holm` and `benjamini_hochberg`."""


def of_tested(correction: Correction, p_values: Sequence[float | None]) -> list[float | None]:
    """p values corrected for the number of those that are not None; None stays None."""
    adjusted = iter(correction([p for p in p_values if p is not None]))
    return [None if p is None else next(adjusted) for p in p_values]


def t_tail(t: float, freedom: float) -> float:
    """Probability that Student's t exceeds `t`."""
    return float(scipy.special.stdtr(freedom, -t))


def t_test(gap: float, error: float, freedom: float, test: Test, without_spread: float = 1.0) -> Difference:
    """Difference by a t test with this standard error.

    Without a spread between seeds there is neither t nor interval. A gap other than 0 then has the p of an exact
    permutation test, `without_spread`.
    """
    if not error:
        return Difference(gap, None, None, without_spread if gap else 1.0, test, error, freedom)
    # scipy.stats.ttest_rel and ttest_ind return NaN for equal scores; for others, our tests compare with them
    half = t_critical(freedom, 1 - CONFIDENCE) * error
    p = 2 * t_tail(abs(gap) / error, freedom)
    return Difference(gap, gap - half, gap + half, p, test, error, freedom)


def welch(sd_a: float, n_a: int, sd_b: float, n_b: int) -> tuple[float, float]:
    """Standard error of a difference of means, and its degrees of freedom (Welch 1947)."""
    a, b = sd_a**2 / n_a, sd_b**2 / n_b
    if a + b == 0:
        return 0.0, float(n_a + n_b - 2)
    share = a / (a + b)
    return math.sqrt(a + b), 1 / (share**2 / (n_a - 1) + (1 - share) ** 2 / (n_b - 1))


def power_of_welch(sd_a: float, sd_b: float, difference: float, n: int, alpha: float) -> float:
    """Power of Welch's two-sided test with n seeds per row."""
    error, freedom = welch(sd_a, n, sd_b, n)
    if error == 0:
        return 1.0
    return power_of_t(abs(difference) / error, freedom, alpha)


@lru_cache(maxsize=1000)  # the rows of a table and the search for a given power repeat the same few calls
def t_critical(freedom: float, alpha: float) -> float:
    """The t beyond which a two-sided test rejects; half the width of the 1 - alpha interval, in standard errors."""
    return float(-scipy.special.stdtrit(freedom, alpha / 2))


def power_of_t(shift: float, freedom: float, alpha: float) -> float:
    """Power of a two-sided t test for a true difference of `shift` standard errors."""
    critical = t_critical(freedom, alpha)
    # both tails as upper ones, by symmetry
    return noncentral_t_tail(critical, freedom, shift) + noncentral_t_tail(critical, freedom, -shift)


def noncentral_t_tail(t: float, freedom: float, shift: float) -> float:
    """Probability that a noncentral t exceeds `t`."""
    below = float(scipy.special.nctdtr(freedom, shift, t))
    if math.isnan(below):  # for some large shifts
        return float(shift > 0)
    return 1 - below
