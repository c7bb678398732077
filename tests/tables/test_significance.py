"""The interval of a difference over seeds and sentences: simulated coverage, limits, and a plain loop."""

import math

import numpy as np
import pytest
from scipy.stats import t

from ner_experiments.analysis.randomization import randomization_test
from ner_experiments.analysis.statistics import Difference, difference, p_of_equivalence
from ner_experiments.tables import significance
from ner_experiments.tables.pairs import compare_seeds
from ner_experiments.tables.significance import over_seeds_and_sentences


def counts_of(rng: np.random.Generator, runs: int, hard: np.ndarray, luck: float) -> np.ndarray:
    """Correct tags and all tags by run and sentence: the chance of a tag depends on its sentence and on its run."""
    chance = np.clip(hard + rng.normal(0, luck, (runs, 1)), 0, 1)
    total = np.full(hard.shape, 10)
    return np.stack([rng.binomial(total, chance), np.broadcast_to(total, chance.shape)], axis=-1)


def points(counts: np.ndarray) -> dict[int, float]:
    """Accuracy of each run in points, by seed."""
    return dict(enumerate((100 * counts[..., 0].sum(axis=1) / counts[..., 1].sum(axis=1)).tolist()))


def over_seeds(a: np.ndarray, b: np.ndarray) -> significance.Tested:
    (test,) = compare_seeds([points(a), points(b)])
    return test


def interval(a: np.ndarray, b: np.ndarray) -> Difference:
    found = over_seeds_and_sentences(over_seeds(a, b), randomization_test(a, b, draws=1))
    assert found is not None
    return found


def test_it_covers_the_gap_of_all_seeds_and_sentences() -> None:
    """Two rows of equal expected accuracy that are good at different sentences: new seeds and new sentences."""
    rng, inside, of_seeds, rounds = np.random.default_rng(0), 0, 0, 400
    for _ in range(rounds):
        base = rng.uniform(0.3, 0.9, 150)
        a, b = (counts_of(rng, 4, base + rng.normal(0, 0.1, 150), 0.01) for _ in range(2))
        found, seeds_alone = interval(a, b), over_seeds(a, b).over_seeds
        for name, one in (("both", found), ("seeds", seeds_alone)):
            assert one.low is not None
            assert one.high is not None
            covered = one.low <= 0 <= one.high
            inside, of_seeds = inside + (covered and name == "both"), of_seeds + (covered and name == "seeds")
        assert found.mean == seeds_alone.mean
    assert 0.92 <= inside / rounds <= 0.98
    assert of_seeds / rounds < 0.9  # the seeds alone say nothing about other sentences


def test_it_is_the_sum_of_both_variances_by_a_plain_loop() -> None:
    rng = np.random.default_rng(1)
    a, b = (counts_of(rng, runs, rng.uniform(0.3, 0.9, 40), 0.05) for runs in (3, 5))
    # of 400 tags in all, 10 in each sentence: what a sentence adds to the score, beyond its share of it
    rows = [
        [[(own - math.fsum(run) / 40) / 400 for own in run] for run in row[..., 0].tolist()] for row in (a, b)
    ]
    means = [[math.fsum(run[i] for run in row) / len(row) for i in range(40)] for row in rows]
    gaps = [100 * (first - second) for first, second in zip(*means, strict=True)]
    center = math.fsum(gaps) / 40
    of_sentences = 40 / 39 * math.fsum((gap - center) ** 2 for gap in gaps)
    for row, mean in zip(rows, means, strict=True):
        squares = math.fsum((100 * (run[i] - mean[i])) ** 2 for run in row for i in range(40))
        of_sentences -= squares / (len(row) - 1) / len(row)
    seeds = over_seeds(a, b).over_seeds
    assert seeds.error is not None
    assert seeds.freedom is not None
    total = seeds.error**2 + of_sentences
    freedom = total**2 / (seeds.error**4 / seeds.freedom + of_sentences**2 / 39)
    half = t.ppf(0.975, freedom) * math.sqrt(total)
    found = interval(a, b)
    assert (found.low, found.high) == pytest.approx((seeds.mean - half, seeds.mean + half))


def test_sentences_on_which_rows_agree_widen_nothing() -> None:
    correct = np.array([[[3, 4], [2, 4]], [[4, 4], [1, 4]], [[3, 4], [3, 4]]])
    other = correct[::-1]
    assert randomization_test(correct, other, draws=1).sentence_variance == pytest.approx(0, abs=1e-30)
    found, seeds = interval(correct, other), over_seeds(correct, other).over_seeds
    assert (found.low, found.high) == pytest.approx((seeds.low, seeds.high))


def test_it_is_never_narrower_than_over_seeds_alone() -> None:
    """With two seeds, the many degrees of freedom of the sentences would make it so."""
    rng, wider = np.random.default_rng(3), 0
    for _ in range(100):
        base = rng.uniform(0.3, 0.9, 200)
        a, b = (counts_of(rng, 2, base, 0.03) for _ in range(2))
        both, seeds = interval(a, b), over_seeds(a, b).over_seeds
        low, high = both.low or math.nan, both.high or math.nan
        assert low <= (seeds.low or math.nan) < (seeds.high or math.nan) <= high
        wider += low < (seeds.low or math.nan)
    assert 0 < wider < 100


def test_there_is_none_for_a_single_seed() -> None:
    counts = counts_of(np.random.default_rng(2), 4, np.full(20, 0.5), 0.1)
    assert (
        over_seeds_and_sentences(over_seeds(counts[:1], counts), randomization_test(counts[:1], counts))
        is None
    )


def test_tests_that_are_planned_but_not_made_count_in_their_own_correction() -> None:
    a, b = (
        difference([80.0, 80.1, 80.2], [79.0, 79.2, 79.1]),
        difference([80.0, 80.1, 80.2], [80.1, 80.0, 80.2]),
    )
    alone = significance.correct_together([a, b], 1.0, 0.05, planned=0, planned_equal=0)
    more = significance.correct_together([a, b], 1.0, 0.05, planned=3, planned_equal=4)
    assert alone[0].p_adjusted == pytest.approx(2 * a.p)
    assert more[0].p_adjusted == pytest.approx(3 * a.p)
    equal = p_of_equivalence(b, 1.0)
    assert equal is not None
    assert [it[1].p_equal for it in (alone, more)] == pytest.approx([2 * equal, 4 * equal])
    assert [it[0].number for it in (alone, more)] == [2, 3]


def test_a_pair_without_a_spread_takes_no_place_among_the_planned_tests_of_equivalence() -> None:
    """It has a p, but none of equivalence: a third test of equivalence is still to be made."""
    ours = [80.0, 80.1, 80.2]
    differences = [
        difference(ours, [80.1, 80.0, 80.2]),
        difference(ours, ours),
        difference([80.0] * 3, [79.0] * 3),
    ]
    found = significance.correct_together(differences, 1.0, 0.05, planned=3, planned_equal=3)
    assert [it.over_seeds.p is None for it in found] == [False] * 3
    equal = p_of_equivalence(differences[0], 1.0)
    assert equal is not None
    assert found[0].p_equal == pytest.approx(3 * equal)
    assert found[2].p_equal is None
