"""Shared by the numba kernels: exponentials, and products of a few rows with a matrix.

The products are written in LLVM IR, because numba cannot keep sums of several rows in vector registers: each step over
k then loads a vector of the matrix once for all rows. A vector fills a register of AVX-512 or, on other processors, of
AVX2. Arrays are flat and bounds are not checked.
"""

import math
from typing import Any, NamedTuple, no_type_check

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from ner_experiments.modules.kernels.compilation import FAST, INLINED
from ner_experiments.utils.machine import has_avx512

IN_ORDER = {**FAST, "fastmath": {"contract"}}


float32 = np.float32
_, C1, C2, C3, C4, C5, C6, C7 = (float32(1 / math.factorial(k)) for k in range(8))
BOUND, LOG2_E, ROUNDING = float32(87), float32(1.4426950408889634), float32(1.5 * 2**23)
LN2, LN2_REST = float32(0.693359375), float32(-2.12194440e-4)


def clamped_exp(x: Any) -> Any:
    """e^x for callers compiled IN_ORDER; NaN stays NaN.

    In float32 accurate to 2e-7 for |x| <= 87 and constant beyond.
    """
    raise NotImplementedError("compiled code only")


@overload(clamped_exp)
@no_type_check
def overload_clamped_exp(x):
    return clamped_exp_float32 if x == types.float32 else clamped_exp_float64


@no_type_check
def clamped_exp_float64(x):
    return np.exp(x)


@no_type_check
def clamped_exp_float32(x):
    """2^n e^r for x = n ln 2 + r: 2^n by its bits, e^r by a Taylor series. Adding 1.5 * 2^23 rounds x / ln 2 to n."""
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
def exp(x):
    """e^x for x <= 0, and 0 below -87. Unlike math.exp it is vectorized, and never subnormal."""
    return nonpositive_exp(x)


def nonpositive_exp(x: Any) -> Any:
    raise NotImplementedError("compiled code only")


@overload(nonpositive_exp)
@no_type_check
def overload_nonpositive_exp(x):
    return exp_float32 if x == types.float32 else exp_float64


@no_type_check
def exp_float32(x):
    return float32(0) if x < -BOUND else clamped_exp(x)


@no_type_check
def exp_float64(x):
    """As in `clamped_exp_float32`, accurate to 1e-16."""
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10
    p = 1 / 479001600.0
    p = p * r + 1 / 39916800.0
    p = p * r + 1 / 3628800.0
    p = p * r + 1 / 362880.0
    p = p * r + 1 / 40320.0
    p = p * r + 1 / 5040.0
    p = p * r + 1 / 720.0
    p = p * r + 1 / 120.0
    p = p * r + 1 / 24.0
    p = p * r + 1 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power_of_2 = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return 0.0 if x < -87.0 else p * power_of_2


VECTOR = 64 if has_avx512() else 32
"""Bytes of a vector."""
TILES = ((1, 8), (2, 8), (4, 6)) if has_avx512() else ((1, 8), (2, 6), (4, 2))
"""Vectors and rows of the products: their sums, and what is added to them, have to stay in the registers."""
FUSED = ("contract",)
ITEM_SIZES = {ir.FloatType(): 4, ir.DoubleType(): 8}
"""Bytes per number."""


def make_product(vectors: int, most: int) -> Any:
    """Product of up to `most` rows at a time with `vectors` vectors of columns, accumulated in registers.

    out[out_rows[r] + out_column + v out_stride + j] += sum over m < planes and k < depth of
    x[x_rows[r] + x_column + m x_plane + k x_step] y[y_start + (m depth + k) y_stride + v lanes + j]
    for all rows r, vectors v, and lanes j of a vector.
    """

    @intrinsic
    @no_type_check
    def product(
        context,
        out,
        out_rows,
        out_column,
        out_stride,
        x,
        x_rows,
        x_column,
        x_step,
        x_plane,
        y,
        y_start,
        y_stride,
        depth,
        planes,
        rows,
    ):
        number = types.intp
        parts = (out, out_rows, number, number, x, x_rows, *[number] * 3, y, *[number] * 5)
        return types.void(*parts), Product(vectors, most).emit

    return product


class Product:
    """Emit the code of `make_product`: full tiles of `most` rows, then one tile for the remaining rows."""

    def __init__(self, vectors: int, most: int):
        self.vectors, self.most = vectors, most

    @no_type_check
    def emit(self, context, builder, signature, arguments):
        arrays = [
            context.make_array(kind)(context, builder, argument).data
            if isinstance(kind, types.Array)
            else argument
            for kind, argument in zip(signature.args, arguments, strict=True)
        ]
        tile, rows = Tile(*arrays[:-1]), arguments[-1]
        most = rows.type(self.most)
        whole = builder.sdiv(rows, most)
        with cgutils.for_range(builder, whole, intp=rows.type) as loop:
            tile.emit(builder, self.most, self.vectors, builder.mul(loop.index, most))
        done = builder.mul(whole, most)
        end = builder.append_basic_block("done")
        switch = builder.switch(builder.sub(rows, done), end)
        for rest in range(1, self.most):
            block = builder.append_basic_block(f"rows.{rest}")
            switch.add_case(rows.type(rest), block)
            builder.position_at_end(block)
            tile.emit(builder, rest, self.vectors, done)
            builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()


class Tile(NamedTuple):
    """Arguments of a product as LLVM values; `emit` writes a loop over k with all rows and vectors unrolled."""

    out: Any
    out_rows: Any
    out_column: Any
    out_stride: Any
    x: Any
    x_rows: Any
    x_column: Any
    x_step: Any
    x_plane: Any
    y: Any
    y_start: Any
    y_stride: Any
    depth: Any
    planes: Any

    @no_type_check
    def emit(self, builder, rows, vectors, first):
        item = ITEM_SIZES[self.out.type.pointee]
        vector = ir.VectorType(self.out.type.pointee, VECTOR // item)
        outs = [
            [
                vector_at(
                    builder, vector, self.out, builder.add(row, builder.mul(self.out_stride, row.type(v)))
                )
                for v in range(vectors)
            ]
            for row in offsets(builder, self.out_rows, self.out_column, first, rows)
        ]
        sums = [
            [cgutils.alloca_once_value(builder, builder.load(p, align=item)) for p in row] for row in outs
        ]
        starts = offsets(builder, self.x_rows, self.x_column, first, rows)
        with cgutils.for_range(builder, self.planes, intp=self.depth.type) as planes:
            plane, before = (builder.mul(planes.index, each) for each in (self.x_plane, self.depth))
            with cgutils.for_range(builder, self.depth, intp=self.depth.type) as loop:
                line = builder.add(self.y_start, builder.mul(builder.add(before, loop.index), self.y_stride))
                parts = [
                    builder.load(p, align=item) for p in vectors_at(builder, vector, self.y, line, vectors)
                ]
                along = builder.add(plane, builder.mul(loop.index, self.x_step))
                for row, offset in zip(sums, starts, strict=True):
                    factor = builder.load(builder.gep(self.x, [builder.add(offset, along)]))
                    factors = broadcast(builder, vector, factor)
                    for total, part in zip(row, parts, strict=True):
                        product = builder.fmul(factors, part, flags=FUSED)
                        builder.store(builder.fadd(builder.load(total), product, flags=FUSED), total)
        for row, totals in zip(outs, sums, strict=True):
            for at, total in zip(row, totals, strict=True):
                builder.store(builder.load(total), at, align=item)


@no_type_check
def offsets(builder, row_offsets, offset, first, rows):
    numbers = [builder.add(first, first.type(r)) for r in range(rows)]
    return [builder.add(builder.load(builder.gep(row_offsets, [number])), offset) for number in numbers]


@no_type_check
def vector_at(builder, vector, pointer, offset):
    return builder.bitcast(builder.gep(pointer, [offset]), vector.as_pointer())


@no_type_check
def vectors_at(builder, vector, pointer, offset, vectors):
    """Pointers to consecutive vectors."""
    numbers = [builder.add(offset, offset.type(v * vector.count)) for v in range(vectors)]
    return [vector_at(builder, vector, pointer, number) for number in numbers]


@no_type_check
def broadcast(builder, vector, value):
    """A vector with all lanes equal to the value."""
    number = ir.IntType(32)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, number(0))
    zeros = ir.Constant(ir.VectorType(number, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, one, zeros)


add_narrow, add_wide, add_four = (make_product(*shape) for shape in TILES)


@njit(**FAST)
@no_type_check
def lanes_of(array):
    """Number of array elements per vector."""
    return VECTOR // array.itemsize


@njit(**FAST)
@no_type_check
def whole_vectors(columns, array):
    """Number of columns, rounded up to full vectors."""
    lanes = lanes_of(array)
    return (columns + lanes - 1) // lanes * lanes


@njit(**INLINED)
@no_type_check
def add_outer(
    out, out_rows, out_column, x, x_rows, x_column, x_step, y, y_start, y_stride, columns, depth, rows
):
    """out += x^T y, for `rows` rows and `columns` columns of out; arguments as in `make_product`.

    Columns beyond these, up to full vectors, receive undefined values.
    """
    lanes, wide = lanes_of(y), whole_vectors(columns, y)
    j = 0
    while j + 2 * lanes <= wide:
        add_wide(
            out,
            out_rows,
            out_column + j,
            lanes,
            x,
            x_rows,
            x_column,
            x_step,
            0,
            y,
            y_start + j,
            y_stride,
            depth,
            1,
            rows,
        )
        j += 2 * lanes
    if j < wide:
        add_narrow(
            out,
            out_rows,
            out_column + j,
            lanes,
            x,
            x_rows,
            x_column,
            x_step,
            0,
            y,
            y_start + j,
            y_stride,
            depth,
            1,
            rows,
        )
