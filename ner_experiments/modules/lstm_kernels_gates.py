"""What the gates of an LSTM do to rows of numbers, vectorised: sigmoid, tanh, and sums of products."""

from typing import no_type_check

from numba import njit

from ner_experiments.modules.numba_kernels import FAST, IN_ORDER, power


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
