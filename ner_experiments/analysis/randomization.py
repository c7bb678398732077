"""Approximate randomisation: is the difference of two rows more than luck of seeds and of sentences?

What it needs is each run's counts, sentence by sentence, on one test set.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int, Real

COINS_AT_ONCE = 2_000_000
"""Bounds the memory: 16 MB of coins, however many sentences and draws."""


@dataclass(frozen=True, slots=True)
class Randomization:
    """Mean score of a minus mean score of b, both in [0, 1], and its two-sided p.

    `run_share` is the part of the variance between a row's runs that sentences do not explain: runs that are
    better or worse everywhere. None if both rows have one run: p then speaks of these two runs only.
    """

    difference: float
    p: float
    run_share: float | None


def randomization_test(
    a: Int[np.ndarray, "runs_a sentences_a counts_a"],
    b: Int[np.ndarray, "runs_b sentences_b counts_b"],
    *,
    draws: int = 10_000,
    seed: int = 0,
) -> Randomization:
    """Approximate randomisation (Noreen 1989; Yeh 2000 for F1), here for rows of several runs.

    `a` and `b` count one test set, sentence by sentence: (correct, predicted, gold) mentions for F1, or
    (correct, total) tags for accuracy. A row's score is the mean over its runs.
    Null: both rows have the same expected score, over new seeds and new sentences.

    With one run a row this is Yeh's test: a coin for each sentence swaps its two outcomes. With several, such
    coins alone reject too often: a lucky seed is better everywhere, and no swap of sentences shows that.
    Reading (ours): a draw from the null is the sum of two exchanges.
    Sentences: each coin swaps the sentence's mean counts over runs; this carries whatever differs
    independently from sentence to sentence, be it by row or by run.
    Runs: whole runs are dealt anew to the two rows, times sqrt(run_share), since the rest of the variance
    between runs is in the sentences already.
    p = (1 + draws at least as far from 0 as the difference) / (1 + draws), so never 0.

    Sentences are taken as independent, also within a document, and runs as unpaired. Simulated true nulls
    had p <= 0.05 in 2 to 8 % with 3 to 10 runs a row and in up to 10 % with 2, but p <= 0.01 in up to 3 %
    with 3 runs: with so few, a very small p is smaller than it should be.
    """
    _check_one_test_set(a, b)
    parts = [_numerator_and_denominator(row) for row in (a, b)]
    scores = [_ratio(row.sum(axis=1)) for row in parts]
    gap = float(scores[0].mean() - scores[1].mean())
    share = _run_share(parts, scores)
    rng = np.random.default_rng(seed)
    null = _swap_sentences(parts[0].mean(axis=0), parts[1].mean(axis=0), draws, rng)
    if share:
        null += math.sqrt(share) * _deal_runs(scores[0], scores[1], draws, rng)
    as_far = np.abs(null) >= abs(gap) - 1e-12  # a tie counts, whatever its last bit
    return Randomization(gap, (1 + int(as_far.sum())) / (1 + draws), share)


def _check_one_test_set(
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
        found = sorted(set(gold[:, sentence].tolist()))
        raise ValueError(
            f"rows of one test set: expected one gold count, got {found} for sentence {sentence} (from 0)"
        )


def score(counts: Int[np.ndarray, "sentences counts"]) -> float:
    """F1 or accuracy of one run, in [0, 1], by its counts in each sentence."""
    return float(_ratio(_numerator_and_denominator(counts[None]).sum(axis=1))[0])


def _numerator_and_denominator(
    counts: Int[np.ndarray, "runs sentences counts"],
) -> Int[np.ndarray, "runs sentences 2"]:
    """Accuracy is correct / total; F1 is 2 correct / (predicted + gold)."""
    if counts.shape[-1] == 2:
        return counts
    return np.stack([2 * counts[..., 0], counts[..., 1] + counts[..., 2]], axis=-1)


def _ratio(parts: Real[np.ndarray, "*shape 2"]) -> Float[np.ndarray, "*shape"]:
    """0 where it is undefined, as in conlleval."""
    top, bottom = parts[..., 0], parts[..., 1]
    return np.divide(top, bottom, out=np.zeros(top.shape), where=bottom > 0)


def _run_share(
    parts: list[Int[np.ndarray, "_ sentences 2"]], scores: list[Float[np.ndarray, " _"]]
) -> float | None:
    """1 - sum_i Var_r(z_ri) / Var_r(score_r), at least 0; variances within rows, pooled.

    z_ri is what sentence i adds to the score of run r, to first order (a ratio's influence function). Did
    runs differ independently from sentence to sentence, numerator and denominator would be equal.
    """
    freedom = sum(len(row) - 1 for row in scores)
    if freedom == 0:
        return None
    between = sum(float(_squares(row).sum()) for row in scores) / freedom
    explained = sum(float(_squares(_influence(row)).sum()) for row in parts) / freedom
    return max(0.0, 1 - explained / between) if between else 0.0


def _squares(values: Float[np.ndarray, "runs *rest"]) -> Float[np.ndarray, "runs *rest"]:
    return (values - values.mean(axis=0)) ** 2


def _influence(parts: Int[np.ndarray, "runs sentences 2"]) -> Float[np.ndarray, "runs sentences"]:
    total = parts.sum(axis=1)
    top, bottom = parts[..., 0], parts[..., 1]
    return (top - _ratio(total)[:, None] * bottom) / np.maximum(1, total[:, 1:])


def _swap_sentences(
    a: Float[np.ndarray, "sentences 2"],
    b: Float[np.ndarray, "sentences 2"],
    draws: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, " draws"]:
    null = np.empty(draws)
    step = max(1, COINS_AT_ONCE // len(a))
    for start in range(0, draws, step):
        coins = rng.integers(2, size=(min(step, draws - start), len(a)), dtype=np.uint8)
        moved = coins.astype(np.float64) @ (b - a)
        null[start : start + step] = _ratio(a.sum(axis=0) + moved) - _ratio(b.sum(axis=0) - moved)
    return null


def _deal_runs(
    a: Float[np.ndarray, " runs_a"], b: Float[np.ndarray, " runs_b"], draws: int, rng: np.random.Generator
) -> Float[np.ndarray, " draws"]:
    dealt = rng.permuted(np.tile(np.concatenate([a, b]), (draws, 1)), axis=1)
    return dealt[:, : len(a)].mean(axis=1) - dealt[:, len(a) :].mean(axis=1)
