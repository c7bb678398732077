"""Products of a few rows of states with the recurrent matrices W of LSTMs' units, gate by gate.

A library's product packs the matrix anew at each call, which for the few rows of a time step takes longer
than the product. Here it is packed once, and read at every step. What follows a unit's columns, to whole
vectors, has zeros added to it. Units stand side by side in a row, and the rows one after another, in each of
four planes, one for a gate, that are `plane` apart.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.numba_kernels import FAST, called
from ner_experiments.modules.tile_kernels import (
    add_four,
    add_narrow,
    add_outer,
    add_wide,
    lanes_of,
    whole_vectors,
)


@njit(**FAST)
@no_type_check
def add_ahead(z, plane, h, starts, packed, first, units, size, rows):
    """z += W h, of so many units from `first` on, packed by `pack_ahead`."""
    lanes, wide = lanes_of(z), whole_vectors(size, z)
    for unit in range(units):
        to, panel = unit * size, (first + unit) * 4 * size * wide
        for j in range(0, wide, lanes):
            add_four(z, starts, to + j, plane, h, starts, to, 1, 0, packed, panel, 4 * lanes, size, 1, rows)
            panel += 4 * lanes * size


@njit(**FAST)
@no_type_check
def add_back(by_h, by_z, plane, starts, packed, first, units, size, rows):
    """by_h += W^T by_z, likewise, packed by `pack_back`."""
    lanes, wide = lanes_of(by_h), whole_vectors(size, by_h)
    pair = 2 * lanes
    for unit in range(units):
        to, panel, j = unit * size, (first + unit) * 4 * size * wide, 0
        while j + pair <= wide:
            add_wide(
                by_h, starts, to + j, lanes, by_z, starts, to, 1, plane, packed, panel, pair, size, 4, rows
            )
            j += pair
            panel += 4 * pair * size
        if j < wide:
            add_narrow(
                by_h, starts, to + j, lanes, by_z, starts, to, 1, plane, packed, panel, lanes, size, 4, rows
            )


@njit(**FAST)
@no_type_check
def add_weights(by_w, by_z, plane, h, first, units, size, width, rows):
    """by_w += by_z h^T, [units, 4 size, size in whole vectors], and whatever after the columns."""
    wide = whole_vectors(size, h)
    lines = np.arange(4 * size) * wide
    gates = np.arange(4 * size) // size * plane + np.arange(4 * size) % size
    for unit in range(units):
        at, to = (first + unit) * 4 * size * wide, unit * size
        add_outer(by_w, lines, at, by_z, gates, to, width, h, to, width, size, rows, 4 * size)


@called
@no_type_check
def pack_ahead(matrices):
    """W of all units, [units, 4, size, size]: vector by vector of W^T's columns, in each row by row."""
    units, _, size, _ = matrices.shape
    lanes, wide = lanes_of(matrices), whole_vectors(size, matrices)
    packed = np.zeros((units, wide // lanes, size, 4, lanes), matrices.dtype)
    for unit in range(units):
        for gate in range(4):
            for begin in range(0, size, lanes):
                for k in range(size):
                    for j in range(begin, min(begin + lanes, size)):
                        packed[unit, begin // lanes, k, gate, j - begin] = matrices[unit, gate, j, k]
    return packed.reshape(-1)


@called
@no_type_check
def pack_back(matrices):
    """As panels of W's columns, one or two vectors wide, in each gate by gate and row by row."""
    units, _, size, _ = matrices.shape
    lanes, wide = lanes_of(matrices), whole_vectors(size, matrices)
    packed = np.zeros((units, 4 * size * wide), matrices.dtype)
    for unit in range(units):
        for j in range(0, wide, 2 * lanes):
            width = min(2 * lanes, wide - j)
            panel = packed[unit, 4 * size * j : 4 * size * (j + width)].reshape(4, size, width)
            many = min(width, size - j)
            panel[:, :, :many] = matrices[unit, :, :, j : j + many]
    return packed.reshape(-1)
