"""Approximate randomization: against every exchange in exact fractions, a normal limit, simulated nulls."""

import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ner_experiments.analysis import randomization
from ner_experiments.analysis.randomization import (
    numerator_and_denominator,
    randomization_test,
    score,
    score_of_parts,
    swap_sentences,
    toss,
)

Counts = np.ndarray
"""Runs, sentences, and (correct, predicted, gold) or (correct, total)."""


def outcomes(
    rng: np.random.Generator, *, runs: int, gold: Counts, by_row: float, by_run: float, ease: Counts
) -> Counts:
    """A row's mention counts; the chance of each mention depends on sentence, sentence by row, and run."""
    logits = ease + rng.normal(0, by_row, len(gold)) + rng.normal(0, by_run, (runs, 1))
    correct = rng.binomial(gold, 1 / (1 + np.exp(-logits)))
    predicted = correct + rng.binomial(gold - correct + 1, 0.6)
    return np.stack([correct, predicted, np.broadcast_to(gold, correct.shape)], axis=-1)


def two_rows(
    seed: int, *, runs: int, sentences: int = 150, by_row: float = 0, by_run: float = 0, better: float = 0
) -> tuple[Counts, Counts]:
    rng = np.random.default_rng(seed)
    gold, ease = rng.integers(1, 4, sentences), rng.normal(1, 1, sentences)
    a = outcomes(rng, runs=runs, gold=gold, by_row=by_row, by_run=by_run, ease=ease + better)
    return a, outcomes(rng, runs=runs, gold=gold, by_row=by_row, by_run=by_run, ease=ease)


def as_tags(counts: Counts) -> Counts:
    return counts[..., [0, 2]]


def exact(counts: list[list[Fraction]]) -> Fraction:
    """F1 or accuracy of the sentences' counts, by definition."""
    sums = [sum(column) for column in zip(*counts, strict=True)]
    if len(sums) == 2:
        return sums[0] / sums[1]
    precision, recall = sums[0] / sums[1], sums[0] / sums[2]
    return 2 * precision * recall / (precision + recall)


def fractions(counts: Counts) -> list:
    return [fractions(part) for part in counts] if counts.ndim else Fraction(int(counts))


def averaged(row: list) -> list[list[Fraction]]:
    return [[sum(x) / len(row) for x in zip(*runs, strict=True)] for runs in zip(*row, strict=True)]


def all_swaps(a: list, b: list) -> list[Fraction]:
    """The difference under every choice of sentences to swap."""
    kept = itertools.product((False, True), repeat=len(a))
    pairs = [[(y, x) if swap else (x, y) for x, y, swap in zip(a, b, coins, strict=True)] for coins in kept]
    return [exact([x for x, _ in pair]) - exact([y for _, y in pair]) for pair in pairs]


def share_by_pairs(rows: list[Counts]) -> float:
    """1 - explained / observed variance of runs, from pairs of runs and slopes in sentences' weights."""

    def score(run: Counts, weights: Counts) -> float:
        sums = weights @ run
        return sums[0] / sums[1] if len(sums) == 2 else 2 * sums[0] / (sums[1] + sums[2])

    observed = explained = 0.0
    for row in rows:
        ones = np.ones(row.shape[1])
        scores = [score(run, ones) for run in row]
        steps = 1e-6 * np.eye(row.shape[1])
        slopes = [
            [(score(run, ones + step) - score(run, ones - step)) / 2e-6 for step in steps] for run in row
        ]
        for i, j in itertools.combinations(range(len(row)), 2):
            observed += (scores[i] - scores[j]) ** 2 / len(row)
            explained += sum((x - y) ** 2 for x, y in zip(slopes[i], slopes[j], strict=True)) / len(row)
    return max(0.0, 1 - explained / observed)


def check_p(estimated: float, expected: float, draws: int) -> None:
    assert 0.01 < expected < 0.99
    assert abs(estimated - expected) < 4 * math.sqrt(expected * (1 - expected) / draws)


@pytest.mark.parametrize("seed", [0, 3, 6, 7, 9, 10])
@pytest.mark.parametrize("kind", ["mentions", "tags"])
def test_one_run_a_row_is_the_share_of_swaps_at_least_as_far(seed: int, kind: str) -> None:
    a, b = two_rows(seed, runs=1, sentences=7, better=1)
    if kind == "tags":
        a, b = as_tags(a), as_tags(b)
    swaps = all_swaps(fractions(a[0]), fractions(b[0]))
    ours = randomization_test(a, b, draws=50_000)
    assert ours.run_share is None
    assert ours.difference == pytest.approx(float(swaps[0]))
    check_p(ours.p, sum(abs(x) >= abs(swaps[0]) for x in swaps) / len(swaps), 50_000)


@pytest.mark.parametrize("seed", [0, 1, 8, 13])
@pytest.mark.parametrize("kind", ["mentions", "tags"])
def test_several_runs_are_every_swap_with_every_deal(seed: int, kind: str) -> None:
    a, b = two_rows(seed, runs=3, sentences=6, by_run=2)
    a = a[:2]
    if kind == "tags":
        a, b = as_tags(a), as_tags(b)
    scores = [float(exact(run)) for run in fractions(np.concatenate([a, b]))]
    share = share_by_pairs([a, b])
    deals = [sum(hand) / 2 - (sum(scores) - sum(hand)) / 3 for hand in itertools.combinations(scores, 2)]
    swaps = [float(x) for x in all_swaps(averaged(fractions(a)), averaged(fractions(b)))]
    gap = sum(scores[:2]) / 2 - sum(scores[2:]) / 3
    null = [swap + math.sqrt(share) * deal for swap in swaps for deal in deals]
    ours = randomization_test(a, b, draws=50_000)
    assert ours.difference == pytest.approx(gap)
    assert ours.run_share == pytest.approx(share, abs=1e-6)
    check_p(ours.p, sum(abs(x) >= abs(gap) - 1e-9 for x in null) / len(null), 50_000)


def test_with_one_run_in_a_row_p_covers_sentences_alone() -> None:
    """Its luck cannot be told from the row's worth, however many runs the other row has."""
    a, b = two_rows(0, runs=5, sentences=200, by_run=0.3)
    several = randomization_test(a, b)
    assert (several.p_over_seeds_and_sentences, several.p_over_sentences) == (several.p, None)
    for one, other in ((a[:1], b[:1]), (a[:1], b)):
        test = randomization_test(one, other)
        assert (test.p_over_seeds_and_sentences, test.p_over_sentences) == (None, test.p)
    means = np.stack([numerator_and_denominator(row).mean(axis=0) for row in (a[:1], b)])
    (null,) = swap_sentences(means, np.array([[0, 1]]), 10_000, np.random.default_rng(0))
    gap = np.mean([score(run) for run in a[:1]]) - np.mean([score(run) for run in b])
    assert test.p == (1 + np.count_nonzero(abs(null) >= abs(gap) - 1e-12)) / 10_001


def test_many_sentences_reach_the_normal_limit_in_little_memory() -> None:
    a, b = (as_tags(row) for row in two_rows(3, runs=1, sentences=3500, better=0.07))
    difference = (a - b)[0, :, 0]
    expected = 2 * stats.norm.sf(abs(difference.sum()) / math.sqrt((difference**2).sum()))
    tracemalloc.start()
    ours = randomization_test(a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.02 < expected < 0.5
    assert ours.p == pytest.approx(expected, abs=0.02)
    assert peak < 30e6


@pytest.mark.parametrize(("runs", "by_row", "by_run"), [(3, 1, 0.1), (5, 0, 0.3), (10, 0, 0)])
def test_true_nulls_are_rejected_in_5_percent(runs: int, by_row: float, by_run: float) -> None:
    p = [
        randomization_test(*two_rows(seed, runs=runs, by_row=by_row, by_run=by_run), draws=199).p
        for seed in range(500)
    ]
    assert 0.02 <= np.mean(np.array(p) <= 0.05) <= 0.08


def test_single_runs_cannot_see_the_luck_of_seeds() -> None:
    p = [randomization_test(*two_rows(seed, runs=1, by_run=0.3), draws=199).p for seed in range(200)]
    assert np.mean(np.array(p) <= 0.05) > 0.2


@pytest.mark.parametrize(("by_run", "least"), [(0, 0.9), (0.1, 0.6)])
def test_a_true_difference_is_seen(by_run: float, least: float) -> None:
    p = [
        randomization_test(*two_rows(seed, runs=5, by_run=by_run, better=0.35), draws=199).p
        for seed in range(100)
    ]
    assert np.mean(np.array(p) <= 0.05) > least


def test_p_is_never_0() -> None:
    a = np.tile([[[1, 1, 1]]], (2, 300, 1))
    b = a * [0, 1, 1]
    assert randomization_test(a, b, draws=999).p == pytest.approx(1 / 1000)


def test_equal_rows_have_p_1() -> None:
    a, _ = two_rows(0, runs=3)
    equal = randomization_test(a, a[::-1], draws=99)
    assert (equal.difference, equal.p) == (0, 1)


def test_a_test_set_without_mentions_scores_0() -> None:
    nothing = np.zeros((2, 3, 3), dtype=int)
    found = nothing + np.array([0, 1, 0])
    assert randomization_test(nothing, found, draws=9).difference == 0
    assert randomization_test(nothing, nothing, draws=9).p == 1


def test_rows_of_other_sentences_are_refused() -> None:
    a, b = two_rows(0, runs=2, sentences=4)
    with pytest.raises(ValueError, match=r"the same sentences and counts, got shapes \(4, 3\) and \(3, 3\)"):
        randomization_test(a, b[:, 1:])
    b[1, 2, 2] = 9
    with pytest.raises(ValueError, match=r"one gold count, got \[\d, 9\] for sentence 2 \(from 0\)"):
        randomization_test(a, b)


@pytest.mark.parametrize("shape", [(1, 7), (5, 5), (3, 3453)])
def test_the_coins_are_those_of_numpys_integers_and_leave_the_generator_in_the_same_state(
    shape: tuple[int, int],
) -> None:
    expected, found = np.random.default_rng(3), np.random.default_rng(3)
    assert (toss(shape, found) == expected.integers(2, size=shape, dtype=np.uint8)).all()
    assert found.bit_generator.state == expected.bit_generator.state


def test_sentences_with_equal_counts_are_left_out_of_the_product_alone() -> None:
    """Against the product over all sentences; the coins of a sentence do not depend on the other sentences."""
    rng = np.random.default_rng(0)
    same = rng.integers(0, 4, (50, 2)).astype(float)
    rows = np.stack([np.where(rng.random((50, 1)) < 0.8, same, rng.integers(0, 4, (50, 2))) for _ in "abc"])
    coins = np.random.default_rng(1).integers(2, size=(1000, 50), dtype=np.uint8)
    pairs = np.array([[0, 1], [2, 0]])
    found = swap_sentences(rows, pairs, 1000, np.random.default_rng(1))
    for (a, b), null in zip(rows[pairs], found, strict=True):
        moved = coins @ (b - a)
        expected = score_of_parts(a.sum(axis=0) + moved) - score_of_parts(b.sum(axis=0) - moved)
        np.testing.assert_allclose(null, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("at_once", [2, 100])
def test_pairs_tested_together_are_those_tested_one_by_one(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(randomization, "PAIRS_AT_ONCE", at_once)
    a, b = two_rows(2, runs=4, sentences=40, by_run=0.5)
    rows = [a, b, a[:2], b[1:], a[1:2]]
    numbers = list(itertools.combinations(range(len(rows)), 2))
    together = randomization.randomization_tests(rows, numbers, draws=999)
    for (one, other), test in zip(numbers, together, strict=True):
        alone = randomization_test(rows[one], rows[other], draws=999)
        assert (test.p, test.run_share) == (alone.p, alone.run_share)
        assert test.difference == pytest.approx(alone.difference)


def test_runs_are_dealt_as_numpy_permutes_their_scores() -> None:
    scores = np.random.default_rng(5).normal(size=7)
    weights = randomization.deal_runs(3, 4, 50, np.random.default_rng(1))
    dealt = np.random.default_rng(1).permuted(np.tile(scores, (50, 1)), axis=1)
    expected = dealt[:, :3].mean(axis=1) - dealt[:, 3:].mean(axis=1)
    np.testing.assert_allclose(weights @ scores, expected, rtol=0, atol=1e-14)
