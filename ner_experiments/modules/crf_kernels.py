"""The CRF's forward-backward algorithm, compiled for the CPU; `compiled` runs it.

Products of probabilities, scaled at each step (Rabiner 1989, section V.A): one vector-matrix product for a
token, and one exponential for each of its scores. Whatever is below exp(-87) of the largest becomes 0. That
is exact as long as each sum that is divided by stays far above: else `forward` gives NaN, and
`crf_kernels_logs`, which always serve, take the sentence. What was NaN stays NaN.

`crf_kernels_batch` says what a share is, `crf_kernels_arithmetic` what is padded.
"""

import math
from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.crf_kernels_arithmetic import exp_of, largest_of, padded, rescale
from ner_experiments.modules.crf_kernels_batch import close_gradient, make_batch, score_of_tags, sum_up
from ner_experiments.modules.crf_kernels_rows import add_product, even
from ner_experiments.modules.numba_kernels import FAST, called, exp
from ner_experiments.modules.tile_kernels import add_outer

LIMIT = 1e24
"""Of 1 / sum: what exp(-87) = 1.6e-38 leaves out of a larger sum is 1e-12 of it, for each tag."""


class Factors(NamedTuple):
    """Exponentials of the transitions; `back` is the transpose of `pairs`."""

    start: np.ndarray
    pairs: np.ndarray
    back: np.ndarray
    end: np.ndarray
    of_sentence: float
    """Log of what they were divided by: once for a sentence, and for each of its transitions."""
    of_transition: float


@njit(**FAST)
@no_type_check
def make_factors(start, pairs, end):
    """Padded so that sums over padded tags are above 0, and the weights from there are 0."""
    size, wide = pairs.shape[0], padded(pairs.shape[0])
    ends = np.empty((2, wide), pairs.dtype)
    forth, back = np.ones((even(size), wide), pairs.dtype), np.zeros((even(size), wide), pairs.dtype)
    largest = largest_of(pairs.reshape(-1))
    zero = pairs.dtype.type(largest)
    for i in range(size):
        row = forth[i]
        for j in range(size):
            row[j] = exp(pairs[i, j] - zero)
        for j in range(size):
            back[j, i] = row[j]
    of_sentence = exp_of(start, ends[0]) + exp_of(end, ends[1])
    return Factors(ends[0], forth, back, ends[1], of_sentence, largest)


@njit(**FAST)
@no_type_check
def forward(scores, factors, alpha, inverse, last):
    """log Z, less the logs of the factors; NaN if a sum comes near the smallest number.

    alpha[t] is scaled p(scores up to t, y_t), inverse[t] is 1 / (alpha[t-1] @ pairs), last is p(y_n).
    """
    one = alpha.dtype.type(1)
    log_z, emitted = 0.0, last
    for t in range(scores.shape[0]):
        log_z += exp_of(scores[t], emitted)
        now, sums = alpha[t], inverse[t]
        if t == 0:
            for j in range(sums.shape[0]):
                sums[j] = factors.start[j]
        else:
            sums[:] = 0
            add_product(alpha[t - 1], factors.pairs, sums)
        inverses = total = one * 0
        for j in range(now.shape[0]):
            now[j] = sums[j] * emitted[j]
            total += now[j]
            sums[j] = one / sums[j]
            inverses += sums[j]
        if not (total * LIMIT > 1 and (t == 0 or inverses < LIMIT)):
            return np.nan
        log_z += rescale(now, total)
    total = one * 0
    for j in range(last.shape[0]):
        last[j] = alpha[scores.shape[0] - 1, j] * factors.end[j]
        total += last[j]
    if not total * LIMIT > 1:
        return np.nan
    for j in range(last.shape[0]):
        last[j] /= total
    return log_z + math.log(total)


@njit(**FAST)
@no_type_check
def backward(back, alpha, inverse, weight, m, by_scores, counts):
    """by_scores = weight * p(y_t); counts += weight * the expected transitions / their factors.

    From m = p(y_n) back along the Markov chain p(y_t | y_{t+1}). Overwrites m and inverse.
    """
    length, size = by_scores.shape
    for t in range(length - 1, 0, -1):
        ratio = inverse[t]
        for j in range(size):
            by_scores[t, j] = weight * m[j]
        for j in range(ratio.shape[0]):
            ratio[j] *= m[j]
        m[:] = 0
        add_product(ratio, back, m)
        for j in range(ratio.shape[0]):
            ratio[j] *= weight
            m[j] *= alpha[t - 1, j]
    for j in range(size):
        by_scores[0, j] = weight * m[j]
    wide, numbers = alpha.shape[1], np.arange(size)
    before, after = alpha.reshape(-1), inverse.reshape(-1)
    add_outer(
        counts.reshape(-1),
        numbers * wide,
        0,
        before,
        numbers,
        0,
        wide,
        after,
        wide,
        wide,
        size,
        length - 1,
        size,
    )


@called
@no_type_check
def share(first, last, chunks, mask, tags, scores, start, pairs, end, weight, result):
    """Whether a sentence was refused, so that results are missing; if not, and all is done, sums up."""
    batch = make_batch(mask, tags, scores, start, pairs, end)
    factors = make_factors(start, pairs, end)
    alpha = np.empty((scores.shape[1], padded(start.size)), scores.dtype)
    inverse, counts, m = np.empty_like(alpha), np.empty_like(factors.pairs), np.empty_like(alpha[0])
    any_refused, derive = False, result.by_scores.size > 0
    for chunk in range(first, last):
        found = result.by_transitions[chunk]
        found[:] = 0
        counts[:] = 0
        for number in range(chunk, batch.order.size, chunks):
            b = batch.order[number]
            length = batch.lengths[b]
            log_z = forward(scores[b, :length], factors, alpha, inverse, m)
            log_z += factors.of_sentence + (length - 1) * factors.of_transition
            result.losses[b] = log_z - score_of_tags(batch, b)
            result.refused[b] = np.isnan(log_z)
            any_refused |= result.refused[b]
            if derive and not result.refused[b]:
                by_scores = result.by_scores[b]
                backward(factors.back, alpha, inverse, weight, m, by_scores[:length], counts)
                close_gradient(batch, b, weight, by_scores, found)
        if derive:
            for i in range(start.size):
                for j in range(start.size):
                    found[i, j] += factors.pairs[i, j] * counts[i, j]
    if last - first == chunks and not any_refused:
        sum_up(weight, result)
    return any_refused
