"""What the time loops of LSTMs work on: a batch of sentences without padding, cut into jobs.

All tokens of a batch stand one after another, sentence by sentence. A gate's numbers are those of all units
side by side, `width` = units x size of them; gates are in PyTorch's order, i f g o. A job is a block of units
in one direction, over a part of the sentences; of these it takes up to GROUP at once, the longest first, so
that those which are over are the last.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.numba_kernels import FAST

GROUP = 16


class Batch(NamedTuple):
    lengths: np.ndarray
    order: np.ndarray
    """The numbers of the sentences, the longest first."""
    firsts: np.ndarray
    """The place of a sentence's first token."""
    backwards: np.ndarray
    """Whether a direction reads from right to left."""


class Layer(NamedTuple):
    packed: np.ndarray
    """W of each direction and unit, gate by gate."""
    peepholes: np.ndarray
    """[directions 3 width], to i, f and o; or of no direction."""
    masks: np.ndarray
    """What W reads is multiplied by, [directions sentences width]; or of no direction."""
    blocks: int
    """How many the units of a direction are cut into."""
    parts: int
    """How many the groups of sentences are cut into."""


class Trace(NamedTuple):
    """What the way back needs, by direction and token; of no token if there is no way back."""

    gates: np.ndarray
    """i f g o."""
    cells: np.ndarray
    before: np.ndarray
    """What W read: h of the token before, times the mask."""


class Job(NamedTuple):
    direction: int
    begin: int
    """Its first unit."""
    end: int
    part: int


@njit(**FAST)
@no_type_check
def job_of(number, units, layer):
    block = number // layer.parts % layer.blocks
    begin, end = block * units // layer.blocks, (block + 1) * units // layer.blocks
    return Job(number // layer.parts // layer.blocks, begin, end, number % layer.parts)


@njit(**FAST)
@no_type_check
def groups_of(job, batch, layer):
    groups = (batch.order.shape[0] + GROUP - 1) // GROUP
    return range(job.part * groups // layer.parts, (job.part + 1) * groups // layer.parts)


@njit(**FAST)
@no_type_check
def token_at(batch, sentence, step, backwards):
    return batch.firsts[sentence] + (batch.lengths[sentence] - 1 - step if backwards else step)


@njit(**FAST)
@no_type_check
def rows_of(stride):
    """Where the rows of a group begin in a flat array."""
    return np.arange(GROUP) * stride
