"""What the time loops of LSTMs work on: a batch of sentences without padding, cut into jobs.

A gate's numbers are those of a block of units side by side; gates are in PyTorch's order, i f g o. A job is
a block in one direction, over a part of the sentences; of these it takes up to GROUP at once, the longest
first, so that those which are over are the last. A group's tokens stand one after another as they are read,
those of the first step, those of the second, and so on: each direction has them in its own order.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.numba_kernels import FAST, called

GROUP = 16


class Batch(NamedTuple):
    order: np.ndarray
    """The numbers of the sentences, the longest first."""
    lengths: np.ndarray
    """In this order."""
    firsts: np.ndarray
    """Where a group's tokens begin."""


class Layer(NamedTuple):
    packed: np.ndarray
    """W of each direction and unit, by `pack_ahead` or `pack_back`."""
    peepholes: np.ndarray
    """[directions 3 width], to i, f and o; or of no direction."""
    masks: np.ndarray
    """What W reads is multiplied by, [directions sentences width]; or of no direction."""
    blocks: int
    """How many the units of a direction are cut into, each with as many."""
    parts: int
    """How many the groups of sentences are cut into."""


class Trace(NamedTuple):
    """By block and token, so that a job finds its own together."""

    gates: np.ndarray
    """[blocks tokens 4 width of a block]: at first what the input gives them, then i f g o."""
    cells: np.ndarray
    """[blocks tokens width of a block]; of no token if there is no way back."""
    before: np.ndarray
    """What W read: h of the token before, times the mask; likewise."""


class Job(NamedTuple):
    block: int
    """Of all directions' blocks."""
    direction: int
    first: int
    """Unit of all directions' units."""
    units: int
    width: int
    begin: int
    """Where its states begin among those of its direction."""
    part: int


@njit(**FAST)
@no_type_check
def job_of(number, units, size, layer):
    """Of a number, when each direction has so many units."""
    block, part = number // layer.parts, number % layer.parts
    direction, many = block // layer.blocks, units // layer.blocks
    first = block * many
    return Job(block, direction, first, many, many * size, (first - direction * units) * size, part)


@njit(**FAST)
@no_type_check
def groups_of(job, batch, layer):
    groups = batch.firsts.shape[0]
    return range(job.part * groups // layer.parts, (job.part + 1) * groups // layer.parts)


@njit(**FAST)
@no_type_check
def of_group(array, group):
    return array[group * GROUP : (group + 1) * GROUP]


@njit(**FAST)
@no_type_check
def num_active(lengths, step):
    """How many sentences of a group have such a step."""
    active = lengths.shape[0]
    while active > 0 and lengths[active - 1] <= step:
        active -= 1
    return active


@called
@no_type_check
def place(batch, backwards, time, places):
    """Fills in where the tokens of a direction are in a padded batch."""
    token = 0
    for group in range(batch.firsts.shape[0]):
        sentences, lengths = of_group(batch.order, group), of_group(batch.lengths, group)
        for step in range(lengths[0]):
            for r in range(num_active(lengths, step)):
                position = lengths[r] - 1 - step if backwards else step
                places[token] = sentences[r] * time + position
                token += 1


@njit(**FAST)
@no_type_check
def rows_of(stride):
    """Where the rows of a group begin in a flat array."""
    return np.arange(GROUP) * stride
