"""Moderated variances: deviations of a few seeds, shrunk towards those of the other rows of the same table and corpus.

Smyth (2004), "Linear models and empirical Bayes methods", section 6, as in limma's `squeezeVar`. The variances of a
table's rows are taken as draws from a scaled inverse chi-squared distribution, whose degrees of freedom and scale are
estimated from all of them by the moments of their logarithms. A row's variance becomes the mean of its own and of the
prior one, weighted by their degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # imports scipy.special and scipy.stats when they are first used
from jaxtyping import Int

from ner_experiments.analysis import statistics
from ner_experiments.analysis.randomization import (
    check_same_test_set,
    influence,
    numerator_and_denominator,
    ratio,
    squared_deviations,
)
from ner_experiments.analysis.statistics import Difference, Summary

MAX_PRIOR_FREEDOM = 10.0
"""Cap of the prior degrees of freedom: a table has few rows, whose variances may look equal by chance."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Degrees of freedom and variance of the prior; infinite freedom if the variances differ by no more than chance."""

    freedom: float
    variance: float

    def moderate(
        self, variance: float, freedom: float, cap: float = MAX_PRIOR_FREEDOM
    ) -> tuple[float, float]:
        """Moderated variance, and its degrees of freedom."""
        own = min(self.freedom, cap)
        return (own * self.variance + freedom * variance) / (own + freedom), own + freedom


def fit_prior(variances: Sequence[float], freedoms: Sequence[float]) -> Prior | None:
    """The prior of variances with these degrees of freedom (limma's `fitFDist`).

    log s² has the mean log s0² + digamma(d/2) - digamma(d0/2) + log(d0/d) and the variance trigamma(d/2) +
    trigamma(d0/2). None with fewer than two variances that are positive and have a degree of freedom.
    """
    pairs = [(s2, d) for s2, d in zip(variances, freedoms, strict=True) if s2 > 0 and d > 0]
    if len(pairs) < 2:
        return None
    digamma, polygamma = scipy.special.digamma, scipy.special.polygamma
    logs = [math.log(s2) - float(digamma(d / 2)) + math.log(d / 2) for s2, d in pairs]
    center = math.fsum(logs) / len(logs)
    spread = math.fsum((it - center) ** 2 for it in logs) / (len(logs) - 1)
    excess = spread - math.fsum(float(polygamma(1, d / 2)) for _, d in pairs) / len(pairs)
    if excess <= 0:
        return Prior(math.inf, math.exp(center))
    freedom = 2 * inverse_trigamma(excess)
    return Prior(freedom, math.exp(center + float(digamma(freedom / 2)) - math.log(freedom / 2)))


def inverse_trigamma(value: float) -> float:
    """The x with trigamma(x) = value > 0, which the bounds 1/x < trigamma(x) < 1/x + 1/x² enclose."""
    low, high = 1 / value, (1 + math.sqrt(1 + 4 * value)) / (2 * value)
    return float(
        scipy.optimize.brentq(lambda x: scipy.special.polygamma(1, x) - value, low, high, xtol=1e-12)
    )


def prior_of(rows: Iterable[Iterable[float]]) -> Prior | None:
    """The prior of the rows of one table and corpus, given as scores; rows of one seed have no variance."""
    summaries = [statistics.summarize(row) for row in rows]
    spread = [(it.sd**2, it.n - 1.0) for it in summaries if it.sd is not None]
    return fit_prior([s2 for s2, _ in spread], [d for _, d in spread])


def moderated_error(a: Summary, b: Summary, prior: Prior) -> tuple[float, float]:
    """Standard error of the difference of two means by moderated variances, and its degrees of freedom.

    The degrees of freedom are Welch's, with those of the moderated variances. A row of one seed has the prior's
    variance alone.
    """
    parts = []
    for row in (a, b):
        variance, freedom = prior.moderate(0.0 if row.sd is None else row.sd**2, row.n - 1.0)
        parts.append((variance / row.n, freedom))
    total = math.fsum(part for part, _ in parts)
    return math.sqrt(total), total**2 / math.fsum(part**2 / freedom for part, freedom in parts)


def moderated_difference(a: Iterable[float], b: Iterable[float], prior: Prior) -> Difference:
    """Difference of two rows by the moderated t, which does not pair seeds."""
    first, second = statistics.summarize(a), statistics.summarize(b)
    return statistics.t_test(first.mean - second.mean, *moderated_error(first, second, prior), "moderated t")


def over_seeds_and_sentences(
    a: Int[np.ndarray, "runs_a sentences counts"],
    b: Int[np.ndarray, "runs_b sentences counts"],
    error: float,
    freedom: float,
) -> Difference:
    """Difference of two rows, in [0, 1], with an interval and p for new seeds and new sentences.

    error, freedom: of the difference over seeds, such as `moderated_error`; this is the first source of variance. The
    second is the choice of sentences, which both rows share. Degrees of freedom are Satterthwaite's (1946).
    """
    check_same_test_set(a, b)
    means = [ratio(numerator_and_denominator(row).sum(axis=1)).mean() for row in (a, b)]
    sentences = sentence_variance(a, b)
    total = error**2 + sentences
    shares = error**4 / freedom + sentences**2 / (a.shape[1] - 1)
    return statistics.t_test(float(means[0] - means[1]), math.sqrt(total), total**2 / shares, "moderated t")


def sentence_variance(
    a: Int[np.ndarray, "runs_a sentences counts"], b: Int[np.ndarray, "runs_b sentences counts"]
) -> float:
    """Variance of the difference of two rows' mean scores, in [0, 1], over the choice of sentences alone; at least 0.

    That of the sentences' mean influence (see `randomization.influence`), less the part that differs from run to run,
    which the variance over seeds has already.
    """
    parts = [influence(numerator_and_denominator(row)) for row in (a, b)]
    gaps = parts[0].mean(axis=0) - parts[1].mean(axis=0)
    of_runs = sum(
        float(squared_deviations(row).sum()) / ((len(row) - 1) * len(row)) for row in parts if len(row) > 1
    )
    count = len(gaps)
    return max(0.0, count / (count - 1) * float(squared_deviations(gaps).sum()) - of_runs)
