"""What the CRF's compiled kernels do to the scores of a token.

Arrays are padded to a multiple of 16 tags where the innermost loops go along them: whole vector registers.
"""

from typing import no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.numba_kernels import FAST, exp


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
