"""What the gates of an LSTM do to rows of numbers, vectorised: sigmoid, tanh, and sums of products."""

import math
from typing import Any, no_type_check

import numpy as np
from numba import njit, types
from numba.extending import overload

from ner_experiments.modules.crf_kernels_arithmetic import FAST, IN_ORDER

single = np.float32
TERMS = tuple(single(1 / math.factorial(k)) for k in range(8))


def power(x: Any) -> Any:
    """e^x; in float32 for |x| <= 87 to 2e-7 of it, and beyond as if at that bound; NaN stays NaN."""
    raise NotImplementedError("compiled code only")


@overload(power)
@no_type_check
def compile_power(x):
    return single_power if x == types.float32 else math_power


@no_type_check
def math_power(x):
    return np.exp(x)


_, C1, C2, C3, C4, C5, C6, C7 = TERMS
BOUND, LOG2_E, ROUNDING = single(87), single(1.4426950408889634), single(1.5 * 2**23)
LN2, LN2_REST = single(0.693359375), single(-2.12194440e-4)


@no_type_check
def single_power(x):
    """As `crf_kernels_arithmetic.exp`: x = n ln 2 + r, e^r by its Taylor series, and 2^n by its bits."""
    x = -BOUND if x < -BOUND else x
    x = BOUND if x > BOUND else x
    shifted = x * LOG2_E + ROUNDING
    n = shifted - ROUNDING
    r = (x - n * LN2) - n * LN2_REST
    p = C7
    p = p * r + C6
    p = p * r + C5
    p = p * r + C4
    p = p * r + C3
    p = p * r + C2
    p = p * r + C1
    p = p * r + C1
    bits = np.int32((np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23))
    return p * bits.view(np.float32)


@njit(**IN_ORDER)
@no_type_check
def squash(row):
    """row = sigmoid(row)"""
    one = row.dtype.type(1)
    for j in range(row.shape[0]):
        row[j] = one / (one + power(-row[j]))


@njit(**IN_ORDER)
@no_type_check
def tanh(row):
    """row = tanh(row)"""
    one, two = row.dtype.type(1), row.dtype.type(2)
    for j in range(row.shape[0]):
        row[j] = one - two / (one + power(two * row[j]))


@njit(**FAST)
@no_type_check
def add(out, a):
    """out += a"""
    for j in range(out.shape[0]):
        out[j] += a[j]


@njit(**FAST)
@no_type_check
def add_scaled(out, a, b):
    """out += a b"""
    for j in range(out.shape[0]):
        out[j] += a[j] * b[j]


@njit(**FAST)
@no_type_check
def add_to_rows(out, row, b):
    """out += row b, for each row of out and b, which stand one after another."""
    for begin in range(0, out.shape[0], row.shape[0]):
        add_scaled(out[begin : begin + row.shape[0]], row, b[begin : begin + row.shape[0]])


@njit(**FAST)
@no_type_check
def scale(out, a):
    """out *= a"""
    for j in range(out.shape[0]):
        out[j] *= a[j]


@njit(**FAST)
@no_type_check
def copy(out, a):
    for j in range(out.shape[0]):
        out[j] = a[j]
