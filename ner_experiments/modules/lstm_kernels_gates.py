"""What the gates of an LSTM do to rows of numbers, vectorised: sigmoid, tanh, and sums of products."""

from typing import no_type_check

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ner_experiments.modules.numba_kernels import FAST, IN_ORDER, power

SHORT = 64
"""Below it, what follows the last whole vectors takes a loop most of its time."""


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
def copy(out, x):
    """out = x, of one length and in one piece each."""
    if out.shape[0] < SHORT:
        move(out, x)
    else:
        for j in range(out.shape[0]):
            out[j] = x[j]


@intrinsic
@no_type_check
def move(typing_context, out, x):
    """By C's memcpy."""

    def emit(context, builder, signature, arguments):
        to, of = (
            context.make_array(k)(context, builder, a) for k, a in zip(signature.args, arguments, strict=True)
        )
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        cgutils.raw_memcpy(builder, to.data, of.data, builder.extract_value(to.shape, 0), size)
        return context.get_dummy_value()

    return types.void(out, x), emit
