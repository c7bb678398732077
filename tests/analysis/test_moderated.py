"""Moderated variances against SciPy's distributions, brute-force moments, simulation, and limma's limits."""

import math

import numpy as np
import pytest
import scipy
from scipy import stats

from ner_experiments.analysis import statistics
from ner_experiments.analysis.moderated import (
    MAX_PRIOR_FREEDOM,
    Prior,
    fit_prior,
    inverse_trigamma,
    moderated_difference,
    moderated_error,
    over_seeds_and_sentences,
    prior_of,
    sentence_variance,
)
from ner_experiments.analysis.statistics import minimum_detectable_effect


def test_the_detectable_effect_is_found_where_scipy_gives_no_value() -> None:
    """SciPy's nct.cdf is NaN at some points of the far tail that this search visits."""
    error, freedom, alpha = 0.2276, 2.203379888951391, 0.05 / 12
    effect = minimum_detectable_effect(error, freedom, alpha=alpha)
    critical = stats.t.isf(alpha / 2, freedom)
    assert stats.nct.sf(critical, freedom, effect / error) == pytest.approx(0.8)


@pytest.mark.parametrize("value", [1e-6, 0.01, 0.5, 1.0, math.pi**2 / 6, 40.0, 1e6])
def test_the_inverse_of_trigamma(value: float) -> None:
    assert scipy.special.polygamma(1, inverse_trigamma(value)) == pytest.approx(value)
    assert inverse_trigamma(math.pi**2 / 6) == pytest.approx(1.0)  # trigamma(1)


def test_the_prior_is_that_of_which_the_variances_were_drawn() -> None:
    """s² / s0² of d and d0 degrees of freedom follows an F distribution (Smyth 2004, section 3)."""
    for seed, (freedom, prior_freedom, variance) in enumerate([(2, 4, 0.25), (4, 8, 9.0), (1, 3, 1.0)]):
        rng = np.random.default_rng(seed)
        drawn = variance * stats.f(freedom, prior_freedom).rvs(40_000, random_state=rng)
        prior = fit_prior([*drawn], [freedom] * len(drawn))
        assert prior is not None
        assert prior.freedom == pytest.approx(prior_freedom, rel=0.1)
        assert prior.variance == pytest.approx(variance, rel=0.05)


def test_the_prior_solves_the_equations_of_the_moments() -> None:
    """Mean and variance of log F are those of SciPy's quadrature, for unequal degrees of freedom."""
    variances, freedoms = [0.1, 0.9, 0.02, 2.5, 0.3], [2.0, 4.0, 1.0, 2.0, 7.0]
    prior = fit_prior(variances, freedoms)
    assert prior is not None

    def moment(freedom: float, power: int, center: float) -> float:
        density = stats.f(freedom, prior.freedom).pdf  # of exp(x): times exp(x)
        return float(
            scipy.integrate.quad(
                lambda x: (x - center) ** power * density(math.exp(x)) * math.exp(x), -60, 60
            )[0]
        )

    centers = [moment(d, 1, 0) for d in freedoms]
    residuals = [math.log(s2 / prior.variance) - it for s2, it in zip(variances, centers, strict=True)]
    assert math.fsum(residuals) == pytest.approx(0, abs=1e-6)
    expected = np.mean([moment(d, 2, center) for d, center in zip(freedoms, centers, strict=True)])
    assert np.var(residuals, ddof=1) == pytest.approx(expected, rel=1e-5)


def test_variances_that_differ_by_chance_alone_have_one_variance_and_the_capped_freedom() -> None:
    prior = fit_prior([1.0, 1.0, 1.0], [2, 2, 2])
    assert prior is not None
    assert prior.freedom == math.inf
    variance, freedom = prior.moderate(4.0, 2.0)
    assert freedom == 2 + MAX_PRIOR_FREEDOM
    assert variance == pytest.approx((MAX_PRIOR_FREEDOM * prior.variance + 2 * 4.0) / freedom)


def test_a_prior_takes_two_variances() -> None:
    assert fit_prior([1.0], [2]) is None
    assert fit_prior([1.0, 0.0], [2, 2]) is None
    assert prior_of([[80.0], [80.0, 80.5], [79.0, 80.5]]) == fit_prior([0.125, 1.125], [1, 1])


def test_without_weight_of_the_prior_it_is_welchs_t() -> None:
    a, b = [80.0, 80.5, 80.2], [84.0, 84.9, 84.1, 83.0]
    found = moderated_difference(a, b, Prior(1e-12, 1.0))
    welch = statistics.difference(a, b)
    assert (found.mean, found.low, found.high, found.p) == pytest.approx(
        (welch.mean, welch.low, welch.high, welch.p)
    )


def test_a_row_of_one_seed_has_the_variance_of_the_prior() -> None:
    one, other = statistics.summarize([80.0]), statistics.summarize([81.0, 82.0])
    prior = Prior(4.0, 0.5)
    error, freedom = moderated_error(one, other, prior)
    second = (4 * 0.5 + 0.5) / 5 / 2
    assert error == pytest.approx(math.sqrt(0.5 + second))
    assert freedom == pytest.approx((0.5 + second) ** 2 / (0.5**2 / 4 + second**2 / 5))


def test_the_minimum_detectable_effect_has_the_power() -> None:
    sd, n = 0.7, 5
    error = sd * math.sqrt(2 / n)
    effect = minimum_detectable_effect(error, 2 * n - 2)
    assert statistics.power_of_welch(sd, sd, effect, n, 0.05) == pytest.approx(0.8)
    assert (
        effect
        > minimum_detectable_effect(error, 1e6)
        == pytest.approx(error * (1.959964 + 0.841621), rel=1e-4)
    )


def counts_of(rng: np.random.Generator, runs: int, hard: np.ndarray, luck: float) -> np.ndarray:
    """Correct tags and all tags by run and sentence: the chance of a tag depends on its sentence and on its run."""
    chance = np.clip(hard + rng.normal(0, luck, (runs, 1)), 0, 1)
    total = np.full(hard.shape, 10)
    return np.stack([rng.binomial(total, chance), np.broadcast_to(total, chance.shape)], axis=-1)


def test_the_interval_over_seeds_and_sentences_covers_the_gap_of_all_sentences() -> None:
    """Two rows of equal expected accuracy that are good at different sentences: new seeds and new sentences."""
    rng, inside, rounds, runs = np.random.default_rng(0), 0, 400, 4
    for _ in range(rounds):
        base = rng.uniform(0.3, 0.9, 150)
        a, b = (counts_of(rng, runs, base + rng.normal(0, 0.1, 150), 0.01) for _ in range(2))
        scores = [row[..., 0].sum(axis=1) / row[..., 1].sum(axis=1) for row in (a, b)]
        summaries = [statistics.summarize(row) for row in scores]
        error, freedom = moderated_error(*summaries, Prior(1e-12, 1.0))
        found = over_seeds_and_sentences(a, b, error, freedom)
        assert found.mean == pytest.approx(scores[0].mean() - scores[1].mean())
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= 0 <= found.high
    assert 0.92 <= inside / rounds <= 0.98


def test_sentences_on_which_rows_are_equal_have_no_variance() -> None:
    counts = np.random.default_rng(0).integers(1, 9, (1, 20, 3))
    assert sentence_variance(counts, np.repeat(counts, 3, axis=0)) == pytest.approx(0, abs=1e-30)
