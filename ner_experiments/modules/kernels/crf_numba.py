"""The CRF's algorithms, compiled for the CPU: forward-backward in scaled products, in log space, and Viterbi.

`likelihood_share` multiplies probabilities and rescales them at each step (Rabiner 1989, section V.A): one
vector-matrix product per token, and one exponential per score. Whatever is below exp(-87) of the largest becomes 0.
That is exact as long as every sum that is divided by stays far above; else `forward` gives NaN, and `share_in_logs`,
in log space and float64, takes the sentence. NaN in the scores stays NaN. `viterbi_share` finds the best tags.

A share is the chunks from the first to the last; of the sentences, longest first, a chunk has every `chunks`-th.
Arrays are padded to a multiple of 16 tags, whole vector registers, where the innermost loops run along them; matrices
have an even number of rows. Bounds are not checked.
"""

import math
from functools import partial
from typing import Any, NamedTuple, no_type_check

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ner_experiments.modules.kernels.numba_ops import (
    FAST,
    FUSED,
    IN_ORDER,
    VECTOR,
    add_outer,
    called,
    exp,
    lanes_of,
    places,
    spread,
)


@njit(**FAST)
@no_type_check
def largest_of(values):
    """Four at once: a processor waits for one maximum before the next."""
    a = b = c = d = values[0]
    whole = values.shape[0] // 4 * 4
    for j in range(0, whole, 4):
        a, b, c, d = max(a, values[j]), max(b, values[j + 1]), max(c, values[j + 2]), max(d, values[j + 3])
    for j in range(whole, values.shape[0]):
        a = max(a, values[j])
    return np.float64(max(max(a, b), max(c, d)))


@njit(**FAST)
@no_type_check
def exp_of(values, out):
    """out = exp(values - their largest), 0 where it is padded; returns the largest."""
    largest = largest_of(values)
    zero = out.dtype.type(largest)
    for j in range(values.shape[0]):
        out[j] = exp(values[j] - zero)
    out[values.shape[0] :] = 0
    return largest


@njit(**FAST)
@no_type_check
def rescale(row, total):
    """Multiplies by the power of 2, exactly, that brings the total into [1, 2); returns minus its log."""
    exponent = (np.float64(total).view(np.int64) >> 52) - 1023
    factor = row.dtype.type(np.int64((1023 - exponent) << 52).view(np.float64))
    for j in range(row.shape[0]):
        row[j] *= factor
    return exponent * 0.6931471805599453


@njit(**FAST)
@no_type_check
def padded(size):
    return (size + 15) // 16 * 16


CHAINS = 2
"""A processor waits four cycles for a sum to which it is to add, and can begin two in each."""
MOST = 8
"""Vectors at once."""


def make_line(vectors: int, maxima: bool) -> Any:
    """out[to + j] = what it is and all x[k] and y[k stride + to + j], k < depth, combined."""

    @intrinsic
    def line(typing_context, out, to, x, y, stride, depth):  # type: ignore[no-untyped-def]
        number = types.intp
        return types.void(out, number, x, y, number, number), Line(vectors, maxima).emit

    return line


class Line:
    """Writes the loop over k, with everything inside it unrolled."""

    def __init__(self, vectors: int, maxima: bool):
        self.vectors = vectors
        self.combine = self.larger if maxima else self.sum

    @no_type_check
    def emit(self, context, builder, signature, arguments):
        out, x, y = (
            context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (0, 2, 3)
        )
        to, stride, depth = (arguments[i] for i in (1, 4, 5))
        item = signature.args[0].dtype.bitwidth // 8
        vector = ir.VectorType(out.type.pointee, VECTOR // item)
        outs = places(builder, vector, out, to, self.vectors)
        start = [builder.load(place, align=item) for place in outs]
        nothing = ir.Constant(vector, [-np.inf if self.combine == self.larger else 0.0] * vector.count)
        chains = [
            [cgutils.alloca_once_value(builder, value) for value in values]
            for values in (start, *[[nothing] * self.vectors] * (CHAINS - 1))
        ]
        rounds = builder.udiv(depth, depth.type(CHAINS))
        with cgutils.for_range(builder, rounds, intp=depth.type) as loop:
            for number, chain in enumerate(chains):
                k = builder.add(builder.mul(loop.index, depth.type(CHAINS)), depth.type(number))
                factor = spread(builder, vector, builder.load(builder.gep(x, [k])))
                row = places(builder, vector, y, builder.add(to, builder.mul(k, stride)), self.vectors)
                for total, place in zip(chain, row, strict=True):
                    part = builder.load(place, align=item)
                    builder.store(self.combine(builder, builder.load(total), factor, part), total)
        for place, totals in zip(outs, zip(*chains, strict=True), strict=True):
            value, *others = (builder.load(total) for total in totals)
            for other in others:
                value = self.join(builder, value, other)
            builder.store(value, place, align=item)
        return context.get_dummy_value()

    @no_type_check
    def sum(self, builder, total, factor, part):
        return builder.fadd(total, builder.fmul(factor, part, flags=FUSED), flags=FUSED)

    @no_type_check
    def larger(self, builder, total, factor, part):
        return maximum(builder, total, builder.fadd(factor, part))

    @no_type_check
    def join(self, builder, one, other):
        return builder.fadd(one, other) if self.combine == self.sum else maximum(builder, one, other)


@no_type_check
def maximum(builder, one, other):
    """NaN if the other is NaN."""
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


def over_vectors(maxima: bool) -> Any:
    """Lines for any number of vectors."""
    one, two, three, four, five, six, seven, eight = (make_line(v, maxima) for v in range(1, MOST + 1))

    @njit(**FAST)
    @no_type_check
    def combine(x, y, out):
        lanes, (depth, stride) = lanes_of(y), y.shape
        to = 0
        while to + MOST * lanes <= stride:
            eight(out, to, x, y, stride, depth)
            to += MOST * lanes
        rest = (stride - to) // lanes
        if rest == 7:
            seven(out, to, x, y, stride, depth)
        elif rest == 6:
            six(out, to, x, y, stride, depth)
        elif rest == 5:
            five(out, to, x, y, stride, depth)
        elif rest == 4:
            four(out, to, x, y, stride, depth)
        elif rest == 3:
            three(out, to, x, y, stride, depth)
        elif rest == 2:
            two(out, to, x, y, stride, depth)
        elif rest == 1:
            one(out, to, x, y, stride, depth)

    return combine


add_product = over_vectors(maxima=False)
"""out += x @ y"""
reach = over_vectors(maxima=True)
"""out[j] = the largest of out[j] and all x[k] + y[k, j]"""


@njit(**FAST)
@no_type_check
def even(size):
    """Rows of a matrix."""
    return (size + CHAINS - 1) // CHAINS * CHAINS


class Batch(NamedTuple):
    order: np.ndarray
    """The numbers of the sentences, the longest first."""
    lengths: np.ndarray
    tags: np.ndarray
    """Of no sentence, where only log Z or the best tags are asked for."""
    scores: np.ndarray
    start: np.ndarray
    pairs: np.ndarray
    end: np.ndarray


class Result(NamedTuple):
    losses: np.ndarray
    """log Z of each sentence, less the score of its tags."""
    refused: np.ndarray
    """Whether products would have underflowed in the sentence."""
    by_scores: np.ndarray
    """The gradient of the sum of the losses, times a weight; of no sentence, where none is asked for."""
    by_transitions: np.ndarray
    """Of each chunk: by pairs, start and end, one below the other."""
    loss: np.ndarray
    """The weighted sum of all losses, once they are summed up; as the following."""
    by_start: np.ndarray
    by_pairs: np.ndarray
    by_end: np.ndarray


@njit(**FAST)
@no_type_check
def make_batch(mask, tags, scores, start, pairs, end):
    """Refuses tags and masks that the kernels, which look at no bounds, would read or write outside with."""
    sentences, time, size = scores.shape
    lengths, order = np.zeros(sentences, np.int64), np.empty(sentences, np.int64)
    place = np.zeros(time + 2, np.int64)  # of the first sentence of a length, counted from the longest
    for b in range(sentences):
        for t in range(time):
            lengths[b] += mask[b, t]
        place[time - lengths[b] + 1] += 1
    for gap in range(time + 1):
        place[gap + 1] += place[gap]
    if place[time] < sentences:
        raise ValueError("mask must have a real token at least in each sentence")
    for b in range(sentences):
        order[place[time - lengths[b]]] = b
        place[time - lengths[b]] += 1
    for b in range(tags.shape[0]):
        for t in range(lengths[b]):
            if not 0 <= tags[b, t] < size:
                raise ValueError("tags must be at least 0, and below the number of tags")
    return Batch(order, lengths, tags, scores, start, pairs, end)


@njit(**FAST)
@no_type_check
def score_of_tags(batch, b):
    """The sum of the scores and transitions that the sentence's tags select; 0 without tags."""
    if not batch.tags.size:
        return 0.0
    tags, scores, last = batch.tags[b], batch.scores[b], batch.lengths[b] - 1
    total = np.float64(batch.start[tags[0]]) + scores[0, tags[0]] + batch.end[tags[last]]
    for t in range(1, last + 1):
        total += np.float64(batch.pairs[tags[t - 1], tags[t]]) + scores[t, tags[t]]
    return total


@njit(**FAST)
@no_type_check
def close_gradient(batch, b, weight, by_scores, by_transitions):
    """Adds what follows from the marginals of the ends, and subtracts the gradient of `score_of_tags`."""
    length, size = batch.lengths[b], batch.start.size
    for j in range(size):
        by_transitions[size, j] += by_scores[0, j]
        by_transitions[size + 1, j] += by_scores[length - 1, j]
    by_scores[length:] = 0
    if batch.tags.size:
        tags = batch.tags[b]
        for t in range(length):
            by_scores[t, tags[t]] -= weight
            if t > 0:
                by_transitions[tags[t - 1], tags[t]] -= weight
        by_transitions[size, tags[0]] -= weight
        by_transitions[size + 1, tags[length - 1]] -= weight


@called
@no_type_check
def sum_up(weight, result):
    loss, size = 0.0, result.by_start.size
    for b in range(result.losses.size):
        loss += weight * result.losses[b]
    result.loss[()] = loss
    result.by_pairs[:] = 0
    result.by_start[:] = 0
    result.by_end[:] = 0
    for chunk in range(result.by_transitions.shape[0]):
        found = result.by_transitions[chunk]
        for i in range(size):
            for j in range(size):
                result.by_pairs[i, j] += found[i, j]
            result.by_start[i] += found[size, i]
            result.by_end[i] += found[size + 1, i]


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
def likelihood_share(first, last, chunks, mask, tags, scores, start, pairs, end, weight, result):
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


@njit(**FAST)
@no_type_check
def forward_in_logs(scores, start, pairs, end, log_alpha, log_sums):
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
def backward_in_logs(pairs, log_alpha, log_sums, log_z, weight, by_scores, by_pairs):
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
def share_in_logs(first, last, chunks, mask, tags, scores, start, pairs, end, weight, result):
    """As `likelihood_share`, of the sentences that were refused."""
    batch = make_batch(mask, tags, scores, start, pairs, end)
    for chunk in range(first, last):
        for number in range(chunk, batch.order.size, chunks):
            b = batch.order[number]
            if not result.refused[b]:
                continue
            real = scores[b, : batch.lengths[b]]
            log_alpha = np.empty((real.shape[0] + 1, start.size))
            log_sums = np.empty_like(log_alpha)
            log_z = forward_in_logs(real, start, pairs, end, log_alpha, log_sums)
            result.losses[b] = log_z - score_of_tags(batch, b)
            if result.by_scores.size:
                by_scores, found = result.by_scores[b], result.by_transitions[chunk]
                backward_in_logs(pairs, log_alpha, log_sums, log_z, weight, by_scores[: real.shape[0]], found)
                close_gradient(batch, b, weight, by_scores, found)


@njit(**IN_ORDER)
@no_type_check
def best_of(scores, transitions):
    """The tag with the largest sum of the two; of equals, the lowest."""
    best, largest = 0, scores[0] + transitions[0]
    for i in range(1, scores.shape[0]):
        value = scores[i] + transitions[i]
        if value > largest:
            best, largest = i, value
    return best


@partial(called, options=IN_ORDER)
@no_type_check
def viterbi_share(first, last, chunks, mask, scores, start, pairs, end, tags):
    """The best tags, 0 at padding.

    There are no back-pointers: the way back looks for the best tag before the one that it came to, a single
    row of the search that they would need.
    """
    size = start.size
    batch = make_batch(mask, tags[:0], scores, start, pairs, end)
    forth, back = np.full((even(size), padded(size)), -np.inf, pairs.dtype), np.empty_like(pairs)
    for i in range(size):
        for j in range(size):
            forth[i, j] = back[j, i] = pairs[i, j]
    reached, best = np.empty_like(forth[0]), np.zeros((scores.shape[1], even(size)), scores.dtype)
    for chunk in range(first, last):
        for number in range(chunk, batch.order.size, chunks):
            b = batch.order[number]
            length = batch.lengths[b]
            for t in range(length):
                if t == 0:
                    for j in range(size):
                        reached[j] = start[j]
                else:
                    reached[:] = -np.inf
                    reach(best[t - 1], forth, reached)
                largest = scores.dtype.type(largest_of(scores[b, t]))
                for j in range(size):
                    best[t, j] = reached[j] + (scores[b, t, j] - largest)
            tag = best_of(best[length - 1, :size], end)
            tags[b, length:] = 0
            tags[b, length - 1] = tag
            for t in range(length - 2, -1, -1):
                tag = best_of(best[t, :size], back[tag])
                tags[b, t] = tag
