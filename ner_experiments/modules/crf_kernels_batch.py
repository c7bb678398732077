"""What the compiled kernels take and leave: a batch of sentences, and its gradient.

A share is the chunks from the first to the last; of the sentences, longest first, a chunk has every
`chunks`-th.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.numba_kernels import FAST, called


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
