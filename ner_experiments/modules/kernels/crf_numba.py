"""numba kernels of the CRF: forward-backward in scaled products and in log space, and Viterbi; `cpu` calls them.

`likelihood_chunks` multiplies probabilities and rescales them at each step (Rabiner 1989, section V.A): one
vector-matrix product per token, and one exponential per score. Factors below exp(-87) of the largest become 0, which
is exact to rounding as long as every sum used as a divisor stays far above that. Otherwise `forward` returns NaN, and
`log_space_chunks` computes the sentence in log space and float64. NaN in the scores stays NaN. `viterbi_chunks` finds
the best tags.

These three process the chunks first..last-1; a chunk is every `chunks`-th sentence by decreasing length. Columns are
padded to a multiple of 16 tags, full vector registers, and rows of matrices to a multiple of `UNROLL`. Bounds are not
checked, so `make_batch` validates tags and masks.
"""

import math
from functools import partial
from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.kernels.compilation import FAST, compiled
from ner_experiments.modules.kernels.numba_ops import IN_ORDER, add_outer, exp
from ner_experiments.modules.kernels.rules import MASK_RULE, RESCALED, TAG_RULE

UNROLL = 4
"""Rows of a matrix per pass over the sums: fewer passes load and store them less often."""
LIMIT = 1e24
"""Bound of 1 / sum: the exp(-87) = 1.6e-38 that is dropped per tag is then below 1e-12 of the sum."""


class Batch(NamedTuple):
    order: np.ndarray
    """Indices of the sentences by decreasing length."""
    lengths: np.ndarray
    tags: np.ndarray
    """Gold tags; empty for log Z alone and for Viterbi."""
    scores: np.ndarray
    start: np.ndarray
    pairs: np.ndarray
    end: np.ndarray


class Result(NamedTuple):
    losses: np.ndarray
    """log Z minus the score of the tags, per sentence."""
    underflowed: np.ndarray
    """Sentences that need `log_space_chunks`."""
    grad_scores: np.ndarray
    """Gradient of weight * sum of the losses; empty if not needed."""
    grad_transitions: np.ndarray
    """Gradients with respect to pairs, start and end, one below the other, per chunk."""
    loss: np.ndarray
    """weight * sum of the losses; this and the following are set by `reduce_chunks`."""
    grad_start: np.ndarray
    grad_pairs: np.ndarray
    grad_end: np.ndarray


@compiled
@no_type_check
def likelihood_chunks(first, last, chunks, mask, tags, scores, start, pairs, end, weight, result):
    """Compute losses and gradients of the chunks; return whether a sentence underflowed and remains to be computed.

    Also reduces the chunks if these are all chunks and no sentence underflowed.
    """
    batch = make_batch(mask, tags, scores, start, pairs, end)
    factors = make_factors(start, pairs, end)
    alpha = np.empty((scores.shape[1], padded_columns(start.size)), scores.dtype)
    inverse, counts, m = np.empty_like(alpha), np.empty_like(factors.pairs), np.empty_like(alpha[0])
    any_underflowed, gradient = False, result.grad_scores.size > 0
    for chunk in range(first, last):
        grad_transitions = result.grad_transitions[chunk]
        grad_transitions[:] = 0
        counts[:] = 0
        for number in range(chunk, batch.order.size, chunks):
            b = batch.order[number]
            length = batch.lengths[b]
            log_z = forward(scores[b, :length], factors, alpha, inverse, m)
            log_z += factors.log_scale_ends + (length - 1) * factors.log_scale_pairs
            result.losses[b] = log_z - sequence_score(batch, b)
            result.underflowed[b] = np.isnan(log_z)
            any_underflowed |= result.underflowed[b]
            if gradient and not result.underflowed[b]:
                grad_scores = result.grad_scores[b]
                backward(factors.pairs_t, alpha, inverse, weight, m, grad_scores[:length], counts)
                finish_gradient(batch, b, weight, grad_scores, grad_transitions)
        if gradient:
            for i in range(start.size):
                for j in range(start.size):
                    grad_transitions[i, j] += factors.pairs[i, j] * counts[i, j]
    if last - first == chunks and not any_underflowed:
        reduce_chunks(weight, result)
    return any_underflowed


@njit(**FAST)
@no_type_check
def make_batch(mask, tags, scores, start, pairs, end):
    """Sort the sentences; raises ValueError for tags and masks that would index out of bounds."""
    sentences, time, size = scores.shape
    lengths, order = np.zeros(sentences, np.int64), np.empty(sentences, np.int64)
    place = np.zeros(time + 2, np.int64)  # position of the first sentence of each length, from the longest
    for b in range(sentences):
        for t in range(time):
            if mask[b, t] and lengths[b] < t:
                raise ValueError(MASK_RULE)
            lengths[b] += mask[b, t]
        place[time - lengths[b] + 1] += 1
    for gap in range(time + 1):
        place[gap + 1] += place[gap]
    if place[time] < sentences:
        raise ValueError(MASK_RULE)
    for b in range(sentences):
        order[place[time - lengths[b]]] = b
        place[time - lengths[b]] += 1
    for b in range(tags.shape[0]):
        for t in range(lengths[b]):
            if not 0 <= tags[b, t] < size:
                raise ValueError(TAG_RULE)
    return Batch(order, lengths, tags, scores, start, pairs, end)


class Factors(NamedTuple):
    """Exponentials of the transitions minus their maximum."""

    start: np.ndarray
    pairs: np.ndarray
    pairs_t: np.ndarray
    """Transpose of `pairs`."""
    end: np.ndarray
    log_scale_ends: float
    """Sum of the maxima subtracted from start and end, to be added to log Z once per sentence."""
    log_scale_pairs: float
    """Maximum subtracted from the pairs, to be added to log Z once per transition."""


@njit(**FAST)
@no_type_check
def make_factors(start, pairs, end):
    """Factors of these transitions.

    `pairs` is padded with 1, so that no sum is 0, and `pairs_t` with 0, so that padded tags have no weight.
    """
    size, wide = pairs.shape[0], padded_columns(pairs.shape[0])
    ends = np.empty((2, wide), pairs.dtype)
    pairs_exp, pairs_t = (
        np.ones((padded_rows(size), wide), pairs.dtype),
        np.zeros((padded_rows(size), wide), pairs.dtype),
    )
    largest = maximum(pairs.reshape(-1))
    zero = pairs.dtype.type(largest)
    for i in range(size):
        row = pairs_exp[i]
        for j in range(size):
            row[j] = exp(pairs[i, j] - zero)
        for j in range(size):
            pairs_t[j, i] = row[j]
    log_scale_ends = exp_shifted(start, ends[0]) + exp_shifted(end, ends[1])
    return Factors(ends[0], pairs_exp, pairs_t, ends[1], log_scale_ends, largest)


@njit(**FAST)
@no_type_check
def forward(scores, factors, alpha, inverse, last):
    """log Z, without the scales of the factors; NaN if a sum comes close to underflow.

    Sets alpha[t] to p(scores up to t, y_t) up to scale, inverse[t] to 1 / (alpha[t-1] @ pairs), and last to p(y_n).
    """
    one = alpha.dtype.type(1)
    log_z, emitted = 0.0, last
    for t in range(scores.shape[0]):
        log_z += exp_shifted(scores[t], emitted)
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
def backward(pairs_t, alpha, inverse, weight, m, grad_scores, counts):
    """grad_scores = weight * p(y_t); counts += weight * expected transition counts / pairs.

    Runs from m = p(y_n) backward along the Markov chain p(y_t | y_{t+1}). Overwrites m and inverse.
    """
    length, size = grad_scores.shape
    for t in range(length - 1, 0, -1):
        ratio = inverse[t]
        for j in range(size):
            grad_scores[t, j] = weight * m[j]
        for j in range(ratio.shape[0]):
            ratio[j] *= m[j]
        m[:] = 0
        add_product(ratio, pairs_t, m)
        for j in range(ratio.shape[0]):
            ratio[j] *= weight
            m[j] *= alpha[t - 1, j]
    for j in range(size):
        grad_scores[0, j] = weight * m[j]
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


@njit(**FAST)
@no_type_check
def sequence_score(batch, b):
    """Sum of the scores and transitions that the tags of the sentence select; 0 without tags."""
    if not batch.tags.size:
        return 0.0
    tags, scores, last = batch.tags[b], batch.scores[b], batch.lengths[b] - 1
    total = np.float64(batch.start[tags[0]]) + scores[0, tags[0]] + batch.end[tags[last]]
    for t in range(1, last + 1):
        total += np.float64(batch.pairs[tags[t - 1], tags[t]]) + scores[t, tags[t]]
    return total


@njit(**FAST)
@no_type_check
def finish_gradient(batch, b, weight, grad_scores, grad_transitions):
    """Add the gradients with respect to start and end, which are marginals; subtract that of `sequence_score`."""
    length, size = batch.lengths[b], batch.start.size
    for j in range(size):
        grad_transitions[size, j] += grad_scores[0, j]
        grad_transitions[size + 1, j] += grad_scores[length - 1, j]
    grad_scores[length:] = 0
    if batch.tags.size:
        tags = batch.tags[b]
        for t in range(length):
            grad_scores[t, tags[t]] -= weight
            if t > 0:
                grad_transitions[tags[t - 1], tags[t]] -= weight
        grad_transitions[size, tags[0]] -= weight
        grad_transitions[size + 1, tags[length - 1]] -= weight


@compiled
@no_type_check
def log_space_chunks(first, last, chunks, mask, tags, scores, start, pairs, end, weight, result):
    """`likelihood_chunks` for the sentences that underflowed."""
    batch = make_batch(mask, tags, scores, start, pairs, end)
    for chunk in range(first, last):
        for number in range(chunk, batch.order.size, chunks):
            b = batch.order[number]
            if not result.underflowed[b]:
                continue
            real = scores[b, : batch.lengths[b]]
            log_alpha = np.empty((real.shape[0] + 1, start.size))
            log_sums = np.empty_like(log_alpha)
            log_z = forward_log_space(real, start, pairs, end, log_alpha, log_sums)
            result.losses[b] = log_z - sequence_score(batch, b)
            if result.grad_scores.size:
                grad_scores, grad_transitions = result.grad_scores[b], result.grad_transitions[chunk]
                backward_log_space(
                    pairs, log_alpha, log_sums, log_z, weight, grad_scores[: real.shape[0]], grad_transitions
                )
                finish_gradient(batch, b, weight, grad_scores, grad_transitions)


@njit(**FAST)
@no_type_check
def forward_log_space(scores, start, pairs, end, log_alpha, log_sums):
    """log Z. Sets log_alpha[t] = log_sums[t] + scores[t], where log_sums[t] is log-sum-exp over the tag before.

    The last row of log_sums is log_alpha + end.
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
    top, sum_z = maximum(closing), 0.0
    for j in range(size):
        sum_z += exp(closing[j] - top)
    return top + math.log(sum_z)


@njit(**FAST)
@no_type_check
def backward_log_space(pairs, log_alpha, log_sums, log_z, weight, grad_scores, grad_pairs):
    """grad_scores = weight * p(y_t); grad_pairs += weight * expected transition counts."""
    length, size = grad_scores.shape
    m, before = np.empty(size), np.empty(size)
    for j in range(size):
        m[j] = exp(log_sums[length, j] - log_z)
    for t in range(length - 1, 0, -1):
        for j in range(size):
            grad_scores[t, j] = weight * m[j]
        for i in range(size):
            total = 0.0
            for j in range(size):
                pair = m[j] * exp(log_alpha[t - 1, i] + pairs[i, j] - log_sums[t, j])
                grad_pairs[i, j] += weight * pair
                total += pair
            before[i] = total
        m, before = before, m
    for j in range(size):
        grad_scores[0, j] = weight * m[j]


@compiled
@no_type_check
def reduce_chunks(weight, result):
    """Sum losses over sentences, and gradients with respect to transitions over chunks."""
    loss, size = 0.0, result.grad_start.size
    for b in range(result.losses.size):
        loss += weight * result.losses[b]
    result.loss[()] = loss
    result.grad_pairs[:] = 0
    result.grad_start[:] = 0
    result.grad_end[:] = 0
    for chunk in range(result.grad_transitions.shape[0]):
        part = result.grad_transitions[chunk]
        for i in range(size):
            for j in range(size):
                result.grad_pairs[i, j] += part[i, j]
            result.grad_start[i] += part[size, i]
            result.grad_end[i] += part[size + 1, i]


@partial(compiled, options=IN_ORDER)
@no_type_check
def viterbi_chunks(first, last, chunks, mask, scores, start, pairs, end, tags):
    """Best tags, 0 at padding.

    Stores no back-pointers: the backward pass repeats the argmax for the tags of the path only.
    """
    size = start.size
    batch = make_batch(mask, tags[:0], scores, start, pairs, end)
    padded_pairs = np.full((size, (size + 7) // 8 * 8), -np.inf, pairs.dtype)
    pairs_t = np.ascontiguousarray(pairs.T)
    padded_pairs[:, :size] = pairs
    reached, best = np.empty_like(padded_pairs[0]), np.empty((scores.shape[1], size), scores.dtype)
    for chunk in range(first, last):
        for number in range(chunk, batch.order.size, chunks):
            b = batch.order[number]
            length = batch.lengths[b]
            for t in range(length):
                if t == 0:
                    for j in range(size):
                        reached[j] = start[j]
                else:
                    max_sum(best[t - 1], padded_pairs, reached)
                largest = scores.dtype.type(maximum(scores[b, t]))
                for j in range(size):
                    best[t, j] = reached[j] + (scores[b, t, j] - largest)
                if t % RESCALED == RESCALED - 1:
                    largest = scores.dtype.type(maximum(best[t]))
                    for j in range(size):
                        best[t, j] -= largest
            tag = best_previous_tag(best[length - 1], end)
            tags[b, length:] = 0
            tags[b, length - 1] = tag
            for t in range(length - 2, -1, -1):
                tag = best_previous_tag(best[t], pairs_t[tag])
                tags[b, t] = tag


@njit(**IN_ORDER)
@no_type_check
def best_previous_tag(scores, transitions):
    """Tag with the largest score + transition; the lowest among equals."""
    best, largest = 0, scores[0] + transitions[0]
    for i in range(1, scores.shape[0]):
        value = scores[i] + transitions[i]
        if value > largest:
            best, largest = i, value
    return best


@njit(**FAST)
@no_type_check
def add_product(x, y, out):
    """out += x @ y, for y with a multiple of `UNROLL` rows."""
    for k in range(0, y.shape[0], UNROLL):
        a, b, c, d = x[k], x[k + 1], x[k + 2], x[k + 3]
        y_a, y_b, y_c, y_d = y[k], y[k + 1], y[k + 2], y[k + 3]
        for j in range(y.shape[1]):
            out[j] += a * y_a[j] + b * y_b[j] + c * y_c[j] + d * y_d[j]


@njit(**FAST)
@no_type_check
def max_sum(x, y, out):
    """out[j] = max(x[k] + y[k, j] for all k), for y with a multiple of 8 columns."""
    depth, k = y.shape[0], 0
    out[:] = -np.inf
    while k + 8 <= depth:  # 4 rows a pass take 1.2 times as long with 17 and 37 tags
        a, b, c, d, e, f, g, h = x[k], x[k + 1], x[k + 2], x[k + 3], x[k + 4], x[k + 5], x[k + 6], x[k + 7]
        y_a, y_b, y_c, y_d = y[k], y[k + 1], y[k + 2], y[k + 3]
        y_e, y_f, y_g, y_h = y[k + 4], y[k + 5], y[k + 6], y[k + 7]
        for j in range(y.shape[1]):
            one = larger(larger(a + y_a[j], b + y_b[j]), larger(c + y_c[j], d + y_d[j]))
            other = larger(larger(e + y_e[j], f + y_f[j]), larger(g + y_g[j], h + y_h[j]))
            out[j] = larger(out[j], larger(one, other))
        k += 8
    while k < depth:
        a, y_a = x[k], y[k]
        for j in range(y.shape[1]):
            out[j] = larger(out[j], a + y_a[j])
        k += 1


@njit(**FAST)
@no_type_check
def larger(one, other):
    """Maximum; `other` if it is NaN."""
    return one if one > other else other


@njit(**FAST)
@no_type_check
def maximum(values):
    """Maximum, as four interleaved ones to hide the latency of each."""
    a = b = c = d = values[0]
    whole = values.shape[0] // 4 * 4
    for j in range(0, whole, 4):
        a, b, c, d = max(a, values[j]), max(b, values[j + 1]), max(c, values[j + 2]), max(d, values[j + 3])
    for j in range(whole, values.shape[0]):
        a = max(a, values[j])
    return np.float64(max(max(a, b), max(c, d)))


@njit(**FAST)
@no_type_check
def exp_shifted(values, out):
    """out = exp(values - maximum), 0 at padding; returns the maximum."""
    largest = maximum(values)
    zero = out.dtype.type(largest)
    for j in range(values.shape[0]):
        out[j] = exp(values[j] - zero)
    out[values.shape[0] :] = 0
    return largest


@njit(**FAST)
@no_type_check
def rescale(row, total):
    """Multiply the row by the power of 2 that brings the total into [1, 2), which is exact; returns minus its log."""
    exponent = (np.float64(total).view(np.int64) >> 52) - 1023
    factor = row.dtype.type(np.int64((1023 - exponent) << 52).view(np.float64))
    for j in range(row.shape[0]):
        row[j] *= factor
    return exponent * 0.6931471805599453


@njit(**FAST)
@no_type_check
def padded_columns(size):
    """Number of columns of a padded array."""
    return (size + 15) // 16 * 16


@njit(**FAST)
@no_type_check
def padded_rows(size):
    """Number of rows of a padded matrix."""
    return (size + UNROLL - 1) // UNROLL * UNROLL
