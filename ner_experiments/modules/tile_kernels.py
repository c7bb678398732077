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

from ner_experiments.modules.numba_kernels import FAST, called

VECTOR = 64
"""Bytes. A processor with narrower registers takes several for one."""
FUSED = ("contract",)


def make_tile(rows: int, vectors: int) -> Any:
    """out[at[r] + to + j] += sum over k < depth of x[starts[r] + begin + k step] y[start + k stride + j].

    j goes over so many vectors, r over so many rows from `first` on. Up to eight rows of two vectors stay in
    the registers of AVX-512, and fewer than four leave a processor waiting for its own sums.
    """

    @intrinsic
    def tile(typing_context, out, at, to, x, starts, begin, step, y, start, stride, depth, first):  # type: ignore[no-untyped-def]
        number = types.intp
        parts = (out, at, number, x, starts, number, number, y, number, number, number, number)
        return types.void(*parts), Tile(rows, vectors).emit

    return tile


class Tile:
    """Writes the code of a tile: the loop over k, with everything inside it unrolled."""

    def __init__(self, rows: int, vectors: int):
        self.rows, self.vectors = rows, vectors

    @no_type_check
    def emit(self, context, builder, signature, arguments):
        out, at, x, starts, y = (
            context.make_array(signature.args[i])(context, builder, arguments[i]).data
            for i in (0, 1, 3, 4, 7)
        )
        to, begin, step, start, stride, depth, first = (arguments[i] for i in (2, 5, 6, 8, 9, 10, 11))
        at, starts = (self.offsets(builder, *each, first) for each in ((at, to), (starts, begin)))
        item = signature.args[0].dtype.bitwidth // 8
        vector = ir.VectorType(out.type.pointee, VECTOR // item)
        outs = [places(builder, vector, out, row, self.vectors) for row in at]
        sums = [
            [cgutils.alloca_once_value(builder, builder.load(p, align=item)) for p in row] for row in outs
        ]
        with cgutils.for_range(builder, depth, intp=depth.type) as loop:
            line = builder.add(start, builder.mul(loop.index, stride))
            parts = [builder.load(p, align=item) for p in places(builder, vector, y, line, self.vectors)]
            along = builder.mul(loop.index, step)
            for row, offset in zip(sums, starts, strict=True):
                factor = spread(builder, vector, builder.load(builder.gep(x, [builder.add(offset, along)])))
                for total, part in zip(row, parts, strict=True):
                    product = builder.fmul(factor, part, flags=FUSED)
                    builder.store(builder.fadd(builder.load(total), product, flags=FUSED), total)
        for row, totals in zip(outs, sums, strict=True):
            for place, total in zip(row, totals, strict=True):
                builder.store(builder.load(total), place, align=item)
        return context.get_dummy_value()

    @no_type_check
    def offsets(self, builder, of_rows, further, first):
        rows = [builder.add(first, first.type(r)) for r in range(self.rows)]
        return [builder.add(builder.load(builder.gep(of_rows, [row])), further) for row in rows]


@no_type_check
def places(builder, vector, pointer, offset, vectors):
    """Of vectors one after another."""
    offsets = [builder.add(offset, offset.type(v * vector.count)) for v in range(vectors)]
    return [builder.bitcast(builder.gep(pointer, [o]), vector.as_pointer()) for o in offsets]


@no_type_check
def spread(builder, vector, value):
    """A vector of one value."""
    number = ir.IntType(32)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, number(0))
    zeros = ir.Constant(ir.VectorType(number, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, one, zeros)


def over_rows(vectors: int) -> Any:
    """Tiles for any number of rows."""
    one, two, three, four, five, six, seven, eight = (make_tile(rows, vectors) for rows in range(1, 9))

    @njit(**FAST)
    @no_type_check
    def add(out, at, to, x, starts, begin, step, y, start, stride, depth, rows):
        r = 0
        while r + 8 <= rows:
            eight(out, at, to, x, starts, begin, step, y, start, stride, depth, r)
            r += 8
        rest = rows - r
        if rest == 7:
            seven(out, at, to, x, starts, begin, step, y, start, stride, depth, r)
        elif rest == 6:
            six(out, at, to, x, starts, begin, step, y, start, stride, depth, r)
        elif rest == 5:
            five(out, at, to, x, starts, begin, step, y, start, stride, depth, r)
        elif rest == 4:
            four(out, at, to, x, starts, begin, step, y, start, stride, depth, r)
        elif rest == 3:
            three(out, at, to, x, starts, begin, step, y, start, stride, depth, r)
        elif rest == 2:
            two(out, at, to, x, starts, begin, step, y, start, stride, depth, r)
        elif rest == 1:
            one(out, at, to, x, starts, begin, step, y, start, stride, depth, r)

    return add


add_narrow = over_rows(1)
add_wide = over_rows(2)


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
