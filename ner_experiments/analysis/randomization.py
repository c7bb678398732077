"""Approximate randomization: does the difference of two rows hold for new seeds and new sentences?

The input is each run's counts by sentence on one test set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Real, UInt8

COINS_PER_CHUNK = 2_000_000
"""Bounds the memory to 16 MB for any number of sentences and draws."""
PAIRS_AT_ONCE = 100
"""Pairs of rows that share one drawing: 8 MB of differences for 10,000 draws."""


@dataclass(frozen=True, slots=True)
class Randomization:
    """Mean score of a minus mean score of b, both in [0, 1], and its two-sided p.

    `run_share` is the share of the variance between a row's runs that sentences do not explain: some runs are better
    or worse everywhere. It is None if a row has one run, whose luck cannot be told apart from the quality of the row.
    `sentence_variance` is the variance of the difference over the choice of its `sentences` (see `sentence_variance`).
    """

    difference: float
    p: float
    run_share: float | None
    sentence_variance: float
    sentences: int

    @property
    def p_over_seeds_and_sentences(self) -> float | None:
        """p for new seeds and new sentences; None if a row has one run."""
        return None if self.run_share is None else self.p

    @property
    def p_over_sentences(self) -> float | None:
        """p for new sentences and the same runs if a row has one run, else None."""
        return self.p if self.run_share is None else None


def randomization_test(
    a: Int[np.ndarray, "runs_a sentences_a counts_a"],
    b: Int[np.ndarray, "runs_b sentences_b counts_b"],
    *,
    draws: int = 10_000,
    seed: int = 0,
) -> Randomization:
    """Approximate randomization (Noreen 1989; Yeh 2000 for F1), extended to rows of several runs.

    `a` and `b` are counts on one test set by sentence: (correct, predicted, gold) mentions for F1, or (correct,
    total) tags for accuracy. The score of a row is the mean over its runs.
    Null hypothesis: both rows have the same expected score over new seeds and new sentences.

    With one run per row this is Yeh's test: a coin for each sentence swaps its two outcomes. These coins alone reject
    too often where seeds are random too, since a lucky seed is better everywhere and no swap of sentences reveals it.
    With one run in either row only these coins are tossed, and p covers sentences alone.
    Reading (ours): a draw from the null is the sum of two permutations.
    Sentences: each coin swaps the sentence's mean counts over runs. This covers everything that differs
    independently between sentences, by row or by run.
    Runs: whole runs are reassigned to the two rows, scaled by sqrt(run_share), since the sentences account for the
    rest of the variance between runs.
    p = (1 + draws at least as far from 0 as the difference) / (1 + draws), so never 0.

    Sentences are taken as independent, also within a document, and runs as unpaired. Under simulated true nulls,
    p <= 0.05 occurred in 2 to 8 % with 3 to 10 runs per row and in up to 10 % with 2, but p <= 0.01 in up to 3 %
    with 3 runs: with so few runs, very small p values are too small.
    """
    return randomization_tests([a, b], [(0, 1)], draws=draws, seed=seed)[0]


def randomization_tests(
    rows: Sequence[Int[np.ndarray, "_ sentences counts"]],
    pairs: Sequence[tuple[int, int]],
    *,
    draws: int = 10_000,
    seed: int = 0,
) -> list[Randomization]:
    """`randomization_test` of pairs of rows on one test set, given by their indices.

    Every pair has the same coins and the same deals of runs, so they are drawn once for `PAIRS_AT_ONCE` pairs.
    """
    for a, b in pairs:
        check_same_test_set(rows[a], rows[b])
    used = {index: RowStatistics.of(rows[index]) for pair in pairs for index in pair}
    tests: list[Randomization] = []
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        tests += compare_block(used, pairs[start : start + PAIRS_AT_ONCE], draws, np.random.default_rng(seed))
    return tests


@dataclass(frozen=True, slots=True)
class RowStatistics:
    """The score of each run, means over runs by sentence, and sums of squares over the runs.

    means: of the counts. contributions: of the sentences to the score of a run.
    between: of the scores. explained: of the contributions of the sentences to them.
    """

    scores: Float[np.ndarray, " runs"]
    means: Float[np.ndarray, "sentences 2"]
    contributions: Float[np.ndarray, " sentences"]
    between: float
    explained: float

    @classmethod
    def of(cls, counts: Int[np.ndarray, "runs sentences counts"]) -> RowStatistics:
        parts = numerator_and_denominator(counts)
        scores, own = score_of_parts(parts.sum(axis=1)), influence(parts)
        between, explained = (float(squared_deviations(it).sum()) for it in (scores, own))
        return cls(scores, parts.mean(axis=0), own.mean(axis=0), between, explained)


def compare_block(
    rows: Mapping[int, RowStatistics],
    indices: Sequence[tuple[int, int]],
    draws: int,
    rng: np.random.Generator,
) -> list[Randomization]:
    """The tests of pairs of rows, given by their indices; memory grows with their number."""
    compared = sorted({index for pair in indices for index in pair})
    places = np.searchsorted(compared, indices)
    null = swap_sentences(np.stack([rows[index].means for index in compared]), places, draws, rng)
    pairs = [(rows[a], rows[b]) for a, b in indices]
    state, shares = rng.bit_generator.state, [run_share(a, b) for a, b in pairs]
    by_sizes: dict[tuple[int, int], list[int]] = {}
    for number, ((a, b), share) in enumerate(zip(pairs, shares, strict=True)):
        if share:
            by_sizes.setdefault((len(a.scores), len(b.scores)), []).append(number)
    for sizes, numbers in by_sizes.items():
        rng.bit_generator.state = state
        scores = np.stack(
            [np.concatenate([row.scores for row in pairs[number]]) for number in numbers], axis=1
        )
        scale = np.sqrt([shares[number] or 0.0 for number in numbers])
        null[numbers] += (deal_runs(*sizes, draws, rng) @ (scale * scores)).T
    tests = []
    for (a, b), share, swapped in zip(pairs, shares, null, strict=True):
        gap = float(a.scores.mean() - b.scores.mean())
        as_far = np.abs(swapped) >= abs(gap) - 1e-12  # ties count, despite rounding errors
        p, variance = (1 + int(as_far.sum())) / (1 + draws), sentence_variance(a, b)
        tests.append(Randomization(gap, p, share, variance, len(a.means)))
    return tests


def check_same_test_set(
    a: Int[np.ndarray, "runs_a sentences_a counts_a"], b: Int[np.ndarray, "runs_b sentences_b counts_b"]
) -> None:
    if a.shape[1:] != b.shape[1:]:
        raise ValueError(
            "rows of one test set: expected the same sentences and counts, "
            f"got shapes {a.shape[1:]} and {b.shape[1:]}"
        )
    gold = np.concatenate([a[..., -1], b[..., -1]])
    wrong: Bool[np.ndarray, " sentences"] = (gold != gold[0]).any(axis=0)
    if wrong.any():
        sentence = int(wrong.argmax())
        totals = sorted(set(gold[:, sentence].tolist()))
        raise ValueError(
            f"rows of one test set: expected one gold count, got {totals} for sentence {sentence} (from 0)"
        )


def score(counts: Int[np.ndarray, "sentences counts"]) -> float:
    """F1 or accuracy of one run, in [0, 1], from its counts by sentence."""
    return float(score_of_parts(numerator_and_denominator(counts[None]).sum(axis=1))[0])


def numerator_and_denominator(
    counts: Int[np.ndarray, "runs sentences counts"],
) -> Int[np.ndarray, "runs sentences 2"]:
    """Accuracy is correct / total; F1 is 2 correct / (predicted + gold)."""
    if counts.shape[-1] == 2:
        return counts
    return np.stack([2 * counts[..., 0], counts[..., 1] + counts[..., 2]], axis=-1)


def score_of_parts(parts: Real[np.ndarray, "*shape 2"]) -> Float[np.ndarray, "*shape"]:
    """F1 or accuracy from its numerator and denominator, 0 where undefined, as in conlleval."""
    top, bottom = parts[..., 0], parts[..., 1]
    return np.divide(top, bottom, out=np.zeros(top.shape), where=bottom > 0)


def run_share(a: RowStatistics, b: RowStatistics) -> float | None:
    """1 - sum_i Var_r(z_ri) / Var_r(score_r), at least 0, with variances pooled within rows; None if a row has one run.

    z_ri is the contribution of sentence i to the score of run r, to first order (the influence function of a ratio).
    If runs differed independently between sentences, numerator and denominator would be equal.
    """
    if 1 in (len(a.scores), len(b.scores)):
        return None
    between, explained = a.between + b.between, a.explained + b.explained
    return max(0.0, 1 - explained / between) if between else 0.0


def sentence_variance(a: RowStatistics, b: RowStatistics) -> float:
    """Variance of the difference of two rows' mean scores over the choice of sentences alone; at least 0.

    That of the sentences' mean contributions, less the part that differs from run to run, which the variance over
    seeds has already.
    """
    gaps, count = a.contributions - b.contributions, len(a.contributions)
    if count < 2:
        return 0.0
    of_runs = sum(row.explained / ((runs - 1) * runs) for row in (a, b) if (runs := len(row.scores)) > 1)
    return max(0.0, count / (count - 1) * float(squared_deviations(gaps).sum()) - of_runs)


def squared_deviations(values: Float[np.ndarray, " runs *rest"]) -> Float[np.ndarray, " runs *rest"]:
    return (values - values.mean(axis=0)) ** 2


def influence(parts: Int[np.ndarray, "runs sentences 2"]) -> Float[np.ndarray, "runs sentences"]:
    """Contribution of each sentence to the score of its run, to first order."""
    total = parts.sum(axis=1)
    top, bottom = parts[..., 0], parts[..., 1]
    return (top - score_of_parts(total)[:, None] * bottom) / np.maximum(1, total[:, 1:])


def swap_sentences(
    means: Float[np.ndarray, "rows sentences 2"],
    pairs: Int[np.ndarray, "pairs 2"],
    draws: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "pairs draws"]:
    """Differences of the scores of pairs of rows after a coin for each sentence swaps its counts."""
    null = np.empty((len(pairs), draws))
    sentences, (first, second) = means.shape[1], pairs.T
    step = max(1, COINS_PER_CHUNK // sentences)
    # swapping equal counts changes nothing
    differing = np.flatnonzero((means != means[0]).any(axis=(0, 2)))
    columns = np.ascontiguousarray(np.moveaxis(means[:, differing], 0, 1))
    totals = means.sum(axis=1)
    for start in range(0, draws, step):
        coins = toss((min(step, draws - start), sentences), rng)
        swapped = np.tensordot(coins[:, differing].astype(np.float64), columns, 1)
        moved = swapped[:, second] - swapped[:, first]
        found = score_of_parts(totals[first] + moved) - score_of_parts(totals[second] - moved)
        null[:, start : start + step] = found.T
    return null


def toss(shape: tuple[int, int], rng: np.random.Generator) -> UInt8[np.ndarray, "draws sentences"]:
    """The coins of `rng.integers(2, size=shape, dtype=np.uint8)`, each the highest bit of a random byte; faster."""
    tossed = np.frombuffer(rng.bytes(shape[0] * shape[1]), dtype=np.uint8) >> 7
    return tossed.reshape(shape)


def deal_runs(
    runs_a: int, runs_b: int, draws: int, rng: np.random.Generator
) -> Float[np.ndarray, "draws runs"]:
    """Weights of the runs in the difference of the mean scores after they are assigned to the rows at random."""
    dealt = rng.permuted(np.tile(np.arange(runs_a + runs_b), (draws, 1)), axis=1)
    weights = np.full(dealt.shape, -1 / runs_b)
    np.put_along_axis(weights, dealt[:, :runs_a], 1 / runs_a, axis=1)
    return weights
