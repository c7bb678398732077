"""Approximate randomization: does the difference of two rows hold for new seeds and new sentences?

The input is each run's counts by sentence on one test set.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Real, UInt8

COINS_PER_CHUNK = 2_000_000
"""Bounds the memory to 16 MB for any number of sentences and draws."""


@dataclass(frozen=True, slots=True)
class Randomization:
    """Mean score of a minus mean score of b, both in [0, 1], and its two-sided p.

    `run_share` is the share of the variance between a row's runs that sentences do not explain: some runs are better
    or worse everywhere. It is None if a row has one run, whose luck cannot be told apart from the quality of the row.
    """

    difference: float
    p: float
    run_share: float | None

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
    check_same_test_set(a, b)
    parts = [numerator_and_denominator(row) for row in (a, b)]
    scores = [ratio(row.sum(axis=1)) for row in parts]
    gap = float(scores[0].mean() - scores[1].mean())
    share = run_share(parts, scores)
    rng = np.random.default_rng(seed)
    null = swap_sentences(parts[0].mean(axis=0), parts[1].mean(axis=0), draws, rng)
    if share:
        null += math.sqrt(share) * reassign_runs(scores[0], scores[1], draws, rng)
    as_far = np.abs(null) >= abs(gap) - 1e-12  # ties count, despite rounding errors
    return Randomization(gap, (1 + int(as_far.sum())) / (1 + draws), share)


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
    return float(ratio(numerator_and_denominator(counts[None]).sum(axis=1))[0])


def numerator_and_denominator(
    counts: Int[np.ndarray, "runs sentences counts"],
) -> Int[np.ndarray, "runs sentences 2"]:
    """Accuracy is correct / total; F1 is 2 correct / (predicted + gold)."""
    if counts.shape[-1] == 2:
        return counts
    return np.stack([2 * counts[..., 0], counts[..., 1] + counts[..., 2]], axis=-1)


def ratio(parts: Real[np.ndarray, "*shape 2"]) -> Float[np.ndarray, "*shape"]:
    """Quotient, 0 where undefined, as in conlleval."""
    top, bottom = parts[..., 0], parts[..., 1]
    return np.divide(top, bottom, out=np.zeros(top.shape), where=bottom > 0)


def run_share(
    parts: list[Int[np.ndarray, "_ sentences 2"]], scores: list[Float[np.ndarray, " _"]]
) -> float | None:
    """1 - sum_i Var_r(z_ri) / Var_r(score_r), at least 0, with variances pooled within rows; None if a row has one run.

    z_ri is the contribution of sentence i to the score of run r, to first order (the influence function of a ratio).
    If runs differed independently between sentences, numerator and denominator would be equal.
    """
    if min(map(len, scores)) == 1:
        return None
    freedom = sum(len(row) - 1 for row in scores)
    between = sum(float(squared_deviations(row).sum()) for row in scores) / freedom
    explained = sum(float(squared_deviations(influence(row)).sum()) for row in parts) / freedom
    return max(0.0, 1 - explained / between) if between else 0.0


def squared_deviations(values: Float[np.ndarray, " runs *rest"]) -> Float[np.ndarray, " runs *rest"]:
    return (values - values.mean(axis=0)) ** 2


def influence(parts: Int[np.ndarray, "runs sentences 2"]) -> Float[np.ndarray, "runs sentences"]:
    """Contribution of each sentence to the score of its run, to first order."""
    total = parts.sum(axis=1)
    top, bottom = parts[..., 0], parts[..., 1]
    return (top - ratio(total)[:, None] * bottom) / np.maximum(1, total[:, 1:])


def swap_sentences(
    a: Float[np.ndarray, "sentences 2"],
    b: Float[np.ndarray, "sentences 2"],
    draws: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, " draws"]:
    """Differences of the scores after a coin for each sentence swaps its counts."""
    null = np.empty(draws)
    step = max(1, COINS_PER_CHUNK // len(a))
    differing = np.flatnonzero((a != b).any(axis=1))  # swapping equal counts changes nothing
    gaps = b[differing] - a[differing]
    for start in range(0, draws, step):
        coins = toss((min(step, draws - start), len(a)), rng)
        moved = coins[:, differing].astype(np.float64) @ gaps
        null[start : start + step] = ratio(a.sum(axis=0) + moved) - ratio(b.sum(axis=0) - moved)
    return null


def toss(shape: tuple[int, int], rng: np.random.Generator) -> UInt8[np.ndarray, "draws sentences"]:
    """The coins of `rng.integers(2, size=shape, dtype=np.uint8)`, each the highest bit of a random byte; faster."""
    tossed = np.frombuffer(rng.bytes(shape[0] * shape[1]), dtype=np.uint8) >> 7
    return tossed.reshape(shape)


def reassign_runs(
    a: Float[np.ndarray, " runs_a"], b: Float[np.ndarray, " runs_b"], draws: int, rng: np.random.Generator
) -> Float[np.ndarray, " draws"]:
    """Differences of the mean scores after runs are assigned to the rows at random."""
    dealt = rng.permuted(np.tile(np.concatenate([a, b]), (draws, 1)), axis=1)
    return dealt[:, : len(a)].mean(axis=1) - dealt[:, len(a) :].mean(axis=1)
