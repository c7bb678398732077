"""A row times a matrix, in sums of products or in maxima of sums: they stay in registers, two of each.

The matrix has whole vectors in a row, and an even number of rows. Nobody looks at bounds.
"""

from typing import Any, no_type_check

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ner_experiments.modules.numba_kernels import FAST
from ner_experiments.modules.tile_kernels import FUSED, VECTOR, lanes_of, places, spread

CHAINS = 2
"""A processor waits four cycles for a sum to which it is to add, and can begin two in each."""
MOST = 8
"""Vectors at once."""


def make_line(vectors: int, maxima: bool) -> Any:
    """out[to + j] = what it is and all x[k] and y[k stride + to + j], k < depth, combined."""

    @intrinsic
    def line(typing_context, out, to, x, y, stride, depth):  # type: ignore[no-untyped-def]
        number = types.intp
        return types.void(out, number, x, y, number, number), Line(vectors, maxima).emit

    return line


class Line:
    """Writes the loop over k, with everything inside it unrolled."""

    def __init__(self, vectors: int, maxima: bool):
        self.vectors = vectors
        self.combine = self.larger if maxima else self.sum

    @no_type_check
    def emit(self, context, builder, signature, arguments):
        out, x, y = (
            context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (0, 2, 3)
        )
        to, stride, depth = (arguments[i] for i in (1, 4, 5))
        item = signature.args[0].dtype.bitwidth // 8
        vector = ir.VectorType(out.type.pointee, VECTOR // item)
        outs = places(builder, vector, out, to, self.vectors)
        start = [builder.load(place, align=item) for place in outs]
        nothing = ir.Constant(vector, [-np.inf if self.combine == self.larger else 0.0] * vector.count)
        chains = [
            [cgutils.alloca_once_value(builder, value) for value in values]
            for values in (start, *[[nothing] * self.vectors] * (CHAINS - 1))
        ]
        rounds = builder.udiv(depth, depth.type(CHAINS))
        with cgutils.for_range(builder, rounds, intp=depth.type) as loop:
            for number, chain in enumerate(chains):
                k = builder.add(builder.mul(loop.index, depth.type(CHAINS)), depth.type(number))
                factor = spread(builder, vector, builder.load(builder.gep(x, [k])))
                row = places(builder, vector, y, builder.add(to, builder.mul(k, stride)), self.vectors)
                for total, place in zip(chain, row, strict=True):
                    part = builder.load(place, align=item)
                    builder.store(self.combine(builder, builder.load(total), factor, part), total)
        for place, totals in zip(outs, zip(*chains, strict=True), strict=True):
            value, *others = (builder.load(total) for total in totals)
            for other in others:
                value = self.join(builder, value, other)
            builder.store(value, place, align=item)
        return context.get_dummy_value()

    @no_type_check
    def sum(self, builder, total, factor, part):
        return builder.fadd(total, builder.fmul(factor, part, flags=FUSED), flags=FUSED)

    @no_type_check
    def larger(self, builder, total, factor, part):
        return maximum(builder, total, builder.fadd(factor, part))

    @no_type_check
    def join(self, builder, one, other):
        return builder.fadd(one, other) if self.combine == self.sum else maximum(builder, one, other)


@no_type_check
def maximum(builder, one, other):
    """NaN if the other is NaN."""
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


def over_vectors(maxima: bool) -> Any:
    """Lines for any number of vectors."""
    one, two, three, four, five, six, seven, eight = (make_line(v, maxima) for v in range(1, MOST + 1))

    @njit(**FAST)
    @no_type_check
    def combine(x, y, out):
        lanes, (depth, stride) = lanes_of(y), y.shape
        to = 0
        while to + MOST * lanes <= stride:
            eight(out, to, x, y, stride, depth)
            to += MOST * lanes
        rest = (stride - to) // lanes
        if rest == 7:
            seven(out, to, x, y, stride, depth)
        elif rest == 6:
            six(out, to, x, y, stride, depth)
        elif rest == 5:
            five(out, to, x, y, stride, depth)
        elif rest == 4:
            four(out, to, x, y, stride, depth)
        elif rest == 3:
            three(out, to, x, y, stride, depth)
        elif rest == 2:
            two(out, to, x, y, stride, depth)
        elif rest == 1:
            one(out, to, x, y, stride, depth)

    return combine


add_product = over_vectors(maxima=False)
"""out += x @ y"""
reach = over_vectors(maxima=True)
"""out[j] = the largest of out[j] and all x[k] + y[k, j]"""


@njit(**FAST)
@no_type_check
def even(size):
    """Rows of a matrix."""
    return (size + CHAINS - 1) // CHAINS * CHAINS
