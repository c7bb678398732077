"""Levels of looks: what they spend together, and the rate of false claims under a true null."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_ind

from ner_experiments.analysis.sequential import levels


@pytest.mark.parametrize("looks", [[3], [3, 5, 8], [2, 3, 4, 5, 6]])
def test_all_looks_together_spend_alpha(looks: list[int]) -> None:
    found = levels(looks, alpha=0.05)
    assert math.fsum(found) == pytest.approx(0.05)
    assert all(level > 0 for level in found)
    by_hand = 0.05 * math.log(1 + (math.e - 1) * looks[0] / looks[-1])
    assert found[0] == pytest.approx(by_hand)


@pytest.mark.parametrize("looks", [[], [1, 3], [3, 3], [5, 3]])
def test_wrong_looks_are_refused(looks: list[int]) -> None:
    with pytest.raises(ValueError, match="looks must be ascending numbers of seeds, at least 2 each"):
        levels(looks, alpha=0.05)


def test_false_claims_stay_below_alpha() -> None:
    """Two rows of one distribution, tested at each look until a test claims a difference."""
    rng, looks, claims, trials = np.random.default_rng(0), [3, 5, 8], 0, 4000
    a, b = rng.normal(size=(2, trials, looks[-1]))
    open_trials = np.ones(trials, dtype=bool)
    for look, level in zip(looks, levels(looks, 0.05), strict=True):
        p = ttest_ind(a[:, :look], b[:, :look], axis=1, equal_var=False).pvalue
        claims += int((open_trials & (p <= level)).sum())
        open_trials &= p > level
    assert claims / trials <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)
    assert claims / trials > 0.02  # the error that may be spent is mostly spent
