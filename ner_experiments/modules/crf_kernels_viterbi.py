"""Viterbi's algorithm, compiled for the CPU; `compiled` runs it."""

from functools import partial
from typing import no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.crf_kernels_arithmetic import largest_of, padded
from ner_experiments.modules.crf_kernels_batch import make_batch
from ner_experiments.modules.crf_kernels_rows import even, reach
from ner_experiments.modules.numba_kernels import IN_ORDER, called


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
