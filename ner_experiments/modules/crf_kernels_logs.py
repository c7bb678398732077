"""The CRF's forward-backward algorithm in log space and float64, compiled: where products would underflow.

For single sentences of a batch; `crf_kernels` takes all others.
"""

import math
from typing import no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.crf_kernels_arithmetic import largest_of
from ner_experiments.modules.crf_kernels_batch import close_gradient, make_batch, score_of_tags
from ner_experiments.modules.numba_kernels import FAST, called, exp


@njit(**FAST)
@no_type_check
def forward(scores, start, pairs, end, log_alpha, log_sums):
    """log_alpha[t] = log_sums[t] + scores[t]; log_sums[t] is the log of the sum over the tags before.

    One more row of log_sums holds log_alpha + end. Returns log Z.
    """
    length, size = scores.shape
    for j in range(size):
        log_alpha[0, j] = start[j] + np.float64(scores[0, j])
    for t in range(1, length):
        before, largest, total = log_alpha[t - 1], np.full(size, -np.inf), np.zeros(size)
        for i in range(size):
            for j in range(size):
                largest[j] = max(largest[j], before[i] + pairs[i, j])
        for i in range(size):
            for j in range(size):
                total[j] += exp(before[i] + pairs[i, j] - largest[j])
        for j in range(size):
            log_sums[t, j] = math.log(total[j]) + largest[j]
            log_alpha[t, j] = log_sums[t, j] + scores[t, j]
    closing = log_sums[length]
    for j in range(size):
        closing[j] = log_alpha[length - 1, j] + end[j]
    top, sum_z = largest_of(closing), 0.0
    for j in range(size):
        sum_z += exp(closing[j] - top)
    return top + math.log(sum_z)


@njit(**FAST)
@no_type_check
def backward(pairs, log_alpha, log_sums, log_z, weight, by_scores, by_pairs):
    """by_scores = weight * p(y_t); by_pairs += weight * the expected transitions."""
    length, size = by_scores.shape
    m, before = np.empty(size), np.empty(size)
    for j in range(size):
        m[j] = exp(log_sums[length, j] - log_z)
    for t in range(length - 1, 0, -1):
        for j in range(size):
            by_scores[t, j] = weight * m[j]
        for i in range(size):
            total = 0.0
            for j in range(size):
                pair = m[j] * exp(log_alpha[t - 1, i] + pairs[i, j] - log_sums[t, j])
                by_pairs[i, j] += weight * pair
                total += pair
            before[i] = total
        m, before = before, m
    for j in range(size):
        by_scores[0, j] = weight * m[j]


@called
@no_type_check
def share(first, last, chunks, mask, tags, scores, start, pairs, end, weight, result):
    """As `crf_kernels.share`, of the sentences that were refused."""
    batch = make_batch(mask, tags, scores, start, pairs, end)
    for chunk in range(first, last):
        for number in range(chunk, batch.order.size, chunks):
            b = batch.order[number]
            if not result.refused[b]:
                continue
            real = scores[b, : batch.lengths[b]]
            log_alpha = np.empty((real.shape[0] + 1, start.size))
            log_sums = np.empty_like(log_alpha)
            log_z = forward(real, start, pairs, end, log_alpha, log_sums)
            result.losses[b] = log_z - score_of_tags(batch, b)
            if result.by_scores.size:
                by_scores, found = result.by_scores[b], result.by_transitions[chunk]
                backward(pairs, log_alpha, log_sums, log_z, weight, by_scores[: real.shape[0]], found)
                close_gradient(batch, b, weight, by_scores, found)
