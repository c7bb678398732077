"""Viterbi's algorithm, compiled for the CPU; `compiled` runs it."""

from functools import partial
from typing import no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.crf_kernels_arithmetic import IN_ORDER, called, largest_of, padded
from ner_experiments.modules.crf_kernels_batch import make_batch


@njit(**IN_ORDER)
@no_type_check
def reach(before, pairs, out):
    """out[j] = the largest before[i] + pairs[i, j]. Eight rows at once, as in `add_product`."""
    out[:] = -np.inf
    whole = before.shape[0] // 8 * 8
    for i in range(0, whole, 8):
        a, b, c, d = before[i], before[i + 1], before[i + 2], before[i + 3]
        e, f, g, h = before[i + 4], before[i + 5], before[i + 6], before[i + 7]
        row = pairs[i : i + 8]
        for j in range(out.shape[0]):
            first = max(max(a + row[0, j], b + row[1, j]), max(c + row[2, j], d + row[3, j]))
            second = max(max(e + row[4, j], f + row[5, j]), max(g + row[6, j], h + row[7, j]))
            out[j] = max(out[j], max(first, second))
    for i in range(whole, before.shape[0]):
        for j in range(out.shape[0]):
            out[j] = max(out[j], before[i] + pairs[i, j])


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
def share(first, last, chunks, mask, scores, start, pairs, end, tags):
    """The best tags, 0 at padding.

    There are no back-pointers: the way back looks for the best tag before the one that it came to, a single
    row of the search that they would need.
    """
    size = start.size
    batch = make_batch(mask, tags[:0], scores, start, pairs, end)
    forth, back = np.full((size, padded(size)), -np.inf, pairs.dtype), np.empty_like(pairs)
    for i in range(size):
        for j in range(size):
            forth[i, j] = back[j, i] = pairs[i, j]
    reached, best = np.empty_like(forth[0]), np.empty_like(scores[0])
    for chunk in range(first, last):
        for number in range(chunk, batch.order.size, chunks):
            b = batch.order[number]
            length = batch.lengths[b]
            for t in range(length):
                if t == 0:
                    for j in range(size):
                        reached[j] = start[j]
                else:
                    reach(best[t - 1], forth, reached)
                largest = scores.dtype.type(largest_of(scores[b, t]))
                for j in range(size):
                    best[t, j] = reached[j] + (scores[b, t, j] - largest)
            tag = best_of(best[length - 1], end)
            tags[b, length:] = 0
            tags[b, length - 1] = tag
            for t in range(length - 2, -1, -1):
                tag = best_of(best[t], back[tag])
                tags[b, t] = tag
