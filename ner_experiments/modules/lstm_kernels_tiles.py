"""Products of a few rows with a matrix, at the speed of many: sums stay in registers, in vectors of 64 bytes.

A library's product packs the matrix anew at each call, which for the few rows of a time step takes longer
than the product. Here it is packed once, and read at every step. Arrays are flat, and nobody looks at bounds.
"""

from typing import Any, no_type_check

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ner_experiments.modules.crf_kernels_arithmetic import FAST, called

VECTOR = 64
"""Bytes. A processor with narrower registers takes several for one."""
FUSED = ("contract",)


def make_tile(vectors: int) -> Any:
    """out[at[r] + j] += sum over k < depth of x[starts[r] + k step] y[start + k stride + j].

    j goes over so many vectors, r over the tuples `at` and `starts`, of up to four: what registers hold.
    """

    @intrinsic
    def tile(typing_context, out, at, x, starts, step, y, start, stride, depth):  # type: ignore[no-untyped-def]
        integers = (types.intp,) * 3
        return types.void(out, at, x, starts, types.intp, y, *integers), Tile(vectors).emit

    return tile


class Tile:
    """Writes the code of a tile: the loop over k, with everything inside it unrolled."""

    def __init__(self, vectors: int):
        self.vectors = vectors

    @no_type_check
    def emit(self, context, builder, signature, arguments):
        out, x, y = (
            context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (0, 2, 5)
        )
        at, starts = (cgutils.unpack_tuple(builder, arguments[i]) for i in (1, 3))
        step, start, stride, depth = (arguments[i] for i in (4, 6, 7, 8))
        item = signature.args[0].dtype.bitwidth // 8
        vector = ir.VectorType(out.type.pointee, VECTOR // item)
        places = [self.places(builder, vector, out, row) for row in at]
        sums = [
            [cgutils.alloca_once_value(builder, builder.load(p, align=item)) for p in row] for row in places
        ]
        with cgutils.for_range(builder, depth, intp=depth.type) as loop:
            line = builder.add(start, builder.mul(loop.index, stride))
            parts = [builder.load(p, align=item) for p in self.places(builder, vector, y, line)]
            along = builder.mul(loop.index, step)
            for row, begin in zip(sums, starts, strict=True):
                factor = self.spread(
                    builder, vector, builder.load(builder.gep(x, [builder.add(begin, along)]))
                )
                for total, part in zip(row, parts, strict=True):
                    product = builder.fmul(factor, part, flags=FUSED)
                    builder.store(builder.fadd(builder.load(total), product, flags=FUSED), total)
        for row, totals in zip(places, sums, strict=True):
            for place, total in zip(row, totals, strict=True):
                builder.store(builder.load(total), place, align=item)
        return context.get_dummy_value()

    @no_type_check
    def places(self, builder, vector, pointer, offset):
        offsets = [builder.add(offset, offset.type(v * vector.count)) for v in range(self.vectors)]
        return [builder.bitcast(builder.gep(pointer, [o]), vector.as_pointer()) for o in offsets]

    @no_type_check
    def spread(self, builder, vector, value):
        number = ir.IntType(32)
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, number(0))
        zeros = ir.Constant(ir.VectorType(number, vector.count), [0] * vector.count)
        return builder.shuffle_vector(one, one, zeros)


def over_rows(tile: Any) -> Any:
    """The tile for any number of rows, `to` and `begin` after the places in `at` and `starts`."""

    @njit(**FAST)
    @no_type_check
    def add(out, at, to, x, starts, begin, step, y, start, stride, depth, rows):
        r = 0
        while r + 4 <= rows:
            a, b, c, d = at[r] + to, at[r + 1] + to, at[r + 2] + to, at[r + 3] + to
            e, f, g, h = starts[r], starts[r + 1], starts[r + 2], starts[r + 3]
            quad = (e + begin, f + begin, g + begin, h + begin)
            tile(out, (a, b, c, d), x, quad, step, y, start, stride, depth)
            r += 4
        if r + 2 <= rows:
            pair = (starts[r] + begin, starts[r + 1] + begin)
            tile(out, (at[r] + to, at[r + 1] + to), x, pair, step, y, start, stride, depth)
            r += 2
        if r < rows:
            tile(out, (at[r] + to,), x, (starts[r] + begin,), step, y, start, stride, depth)

    return add


add_narrow = over_rows(make_tile(1))
add_wide = over_rows(make_tile(2))


@njit(**FAST)
@no_type_check
def lanes_of(array):
    return VECTOR // array.itemsize


@njit(**FAST)
@no_type_check
def whole_vectors(columns, array):
    lanes = lanes_of(array)
    return (columns + lanes - 1) // lanes * lanes


@njit(**FAST)
@no_type_check
def add_packed(out, at, to, x, starts, begin, packed, start, columns, depth, rows):
    """out[at[r] + to + j] += (x[starts[r] + begin :] @ the matrix that is packed from `start` on)[j].

    Zeros are added to what follows the columns, to whole vectors.
    """
    lanes, wide = lanes_of(packed), whole_vectors(columns, packed)
    j = 0
    while j + 2 * lanes <= wide:
        add_wide(out, at, to + j, x, starts, begin, 1, packed, start + j * depth, 2 * lanes, depth, rows)
        j += 2 * lanes
    if j < wide:
        add_narrow(out, at, to + j, x, starts, begin, 1, packed, start + j * depth, lanes, depth, rows)


@njit(**FAST)
@no_type_check
def add_outer(out, at, to, x, starts, begin, step, y, start, stride, columns, depth, rows):
    """out[at[r] + to + j] += sum over k < depth of x[starts[r] + begin + k step] y[start + k stride + j].

    What follows the columns, to whole vectors, is filled with numbers of no meaning.
    """
    lanes, wide = lanes_of(y), whole_vectors(columns, y)
    j = 0
    while j + 2 * lanes <= wide:
        add_wide(out, at, to + j, x, starts, begin, step, y, start + j, stride, depth, rows)
        j += 2 * lanes
    if j < wide:
        add_narrow(out, at, to + j, x, starts, begin, step, y, start + j, stride, depth, rows)


@called
@no_type_check
def pack(matrices):
    """Matrices [count, rows, columns] as panels, one or two vectors wide, the last filled up with zeros.

    They may be views that were transposed.
    """
    count, rows, columns = matrices.shape
    lanes, wide = lanes_of(matrices), whole_vectors(columns, matrices)
    packed = np.zeros((count, rows * wide), matrices.dtype)
    for c in range(count):
        j = 0
        while j < wide:
            width = min(2 * lanes, wide - j)
            panel = packed[c, j * rows : (j + width) * rows].reshape(rows, width)
            for k in range(rows):
                for i in range(min(width, columns - j)):
                    panel[k, i] = matrices[c, k, j + i]
            j += width
    return packed
