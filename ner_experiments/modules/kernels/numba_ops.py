"""What the compiled kernels share: numba's options, exponentials, and products of a few rows with a matrix.

The products keep their sums in vector registers of 64 bytes, and run at the speed of products of many rows. Arrays are
flat, and bounds are not checked.
"""

import hashlib
import math
from pathlib import Path
from typing import Any, NamedTuple, no_type_check

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, overload

FAST = {
    "error_model": "numpy",  # 1 / 0 is inf; looking for it would keep loops from being vectorised
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},  # all but nnan and ninf: NaN is to come through
}
IN_ORDER = {**FAST, "fastmath": {"contract"}}


def called(function: Any, options: dict[str, Any] = FAST) -> Any:
    """Compiles what Python calls, with all that it calls, and keeps it in numba's cache.

    numba looks at a function's own file for changes, and names its cache's files after the function: hence
    the digest of all files in the name. Where no folder may be written to, there is no cache.
    """
    files = sorted(Path(__file__).parent.glob("*numba*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    function.__qualname__ += f"_{digest[:16]}"
    try:
        return njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        return njit(nogil=True, **options)(function)


single = np.float32
_, C1, C2, C3, C4, C5, C6, C7 = (single(1 / math.factorial(k)) for k in range(8))
BOUND, LOG2_E, ROUNDING = single(87), single(1.4426950408889634), single(1.5 * 2**23)
LN2, LN2_REST = single(0.693359375), single(-2.12194440e-4)


def power(x: Any) -> Any:
    """e^x, for callers IN_ORDER; in float32 for |x| <= 87 to 2e-7, beyond as at that bound; NaN stays NaN."""
    raise NotImplementedError("compiled code only")


@overload(power)
@no_type_check
def compile_power(x):
    return single_power if x == types.float32 else math_power


@no_type_check
def math_power(x):
    return np.exp(x)


@no_type_check
def single_power(x):
    """x = n ln 2 + r, e^r by its Taylor series, and 2^n by its bits; adding 1.5 * 2^23 rounds to n."""
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
    """e^x for x <= 0, and 0 below -87; unlike math.exp, it is vectorised, and never subnormal."""
    return falling(x)


def falling(x: Any) -> Any:
    raise NotImplementedError("compiled code only")


@overload(falling)
@no_type_check
def compile_falling(x):
    return single_exp if x == types.float32 else double_exp


@no_type_check
def single_exp(x):
    return single(0) if x < -BOUND else power(x)


@no_type_check
def double_exp(x):
    """As `single_power`, to 1e-16."""
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


VECTOR = 64
"""Bytes. A processor with narrower registers takes several for one."""
FUSED = ("contract",)
ITEMS = {ir.FloatType(): 4, ir.DoubleType(): 8}
"""Bytes of a number."""


def make_product(vectors: int, most: int) -> Any:
    """A sum of products, whose sums stay in registers, those of so many vectors and at most so many rows.

    out[at[r] + to + v across + j] += sum over m < planes and k < depth of
    x[starts[r] + begin + m plane + k step] y[start + (m depth + k) stride + v lanes + j],
    where r goes over rows, v over vectors, and j over the lanes of one.
    """

    @intrinsic
    @no_type_check
    def product(
        context, out, at, to, across, x, starts, begin, step, plane, y, start, stride, depth, planes, rows
    ):
        number = types.intp
        parts = (out, at, number, number, x, starts, *[number] * 3, y, *[number] * 5)
        return types.void(*parts), Product(vectors, most).emit

    return product


class Product:
    """Writes its code: a loop over k, with all rows and vectors unrolled, for each number of rows."""

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
    """The arguments of a product, as values of LLVM."""

    out: Any
    at: Any
    to: Any
    across: Any
    x: Any
    starts: Any
    begin: Any
    step: Any
    plane: Any
    y: Any
    start: Any
    stride: Any
    depth: Any
    planes: Any

    @no_type_check
    def emit(self, builder, rows, vectors, first):
        item = ITEMS[self.out.type.pointee]
        vector = ir.VectorType(self.out.type.pointee, VECTOR // item)
        outs = [
            [
                place(builder, vector, self.out, builder.add(row, builder.mul(self.across, row.type(v))))
                for v in range(vectors)
            ]
            for row in offsets(builder, self.at, self.to, first, rows)
        ]
        sums = [
            [cgutils.alloca_once_value(builder, builder.load(p, align=item)) for p in row] for row in outs
        ]
        starts = offsets(builder, self.starts, self.begin, first, rows)
        with cgutils.for_range(builder, self.planes, intp=self.depth.type) as planes:
            plane, before = (builder.mul(planes.index, each) for each in (self.plane, self.depth))
            with cgutils.for_range(builder, self.depth, intp=self.depth.type) as loop:
                line = builder.add(self.start, builder.mul(builder.add(before, loop.index), self.stride))
                parts = [builder.load(p, align=item) for p in places(builder, vector, self.y, line, vectors)]
                along = builder.add(plane, builder.mul(loop.index, self.step))
                for row, offset in zip(sums, starts, strict=True):
                    factor = builder.load(builder.gep(self.x, [builder.add(offset, along)]))
                    factors = spread(builder, vector, factor)
                    for total, part in zip(row, parts, strict=True):
                        product = builder.fmul(factors, part, flags=FUSED)
                        builder.store(builder.fadd(builder.load(total), product, flags=FUSED), total)
        for row, totals in zip(outs, sums, strict=True):
            for at, total in zip(row, totals, strict=True):
                builder.store(builder.load(total), at, align=item)


@no_type_check
def offsets(builder, of_rows, further, first, rows):
    numbers = [builder.add(first, first.type(r)) for r in range(rows)]
    return [builder.add(builder.load(builder.gep(of_rows, [number])), further) for number in numbers]


@no_type_check
def place(builder, vector, pointer, offset):
    return builder.bitcast(builder.gep(pointer, [offset]), vector.as_pointer())


@no_type_check
def places(builder, vector, pointer, offset, vectors):
    """Of vectors one after another."""
    numbers = [builder.add(offset, offset.type(v * vector.count)) for v in range(vectors)]
    return [place(builder, vector, pointer, number) for number in numbers]


@no_type_check
def spread(builder, vector, value):
    """A vector of one value."""
    number = ir.IntType(32)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, number(0))
    zeros = ir.Constant(ir.VectorType(number, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, one, zeros)


add_narrow, add_wide, add_four = (make_product(*shape) for shape in ((1, 8), (2, 8), (4, 6)))


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
def add_outer(out, at, to, x, starts, begin, step, y, start, stride, columns, depth, rows):
    """out[at[r] + to + j] += sum over k < depth of x[starts[r] + begin + k step] y[start + k stride + j].

    What follows the columns, to whole vectors, is filled with numbers of no meaning.
    """
    lanes, wide = lanes_of(y), whole_vectors(columns, y)
    j = 0
    while j + 2 * lanes <= wide:
        add_wide(out, at, to + j, lanes, x, starts, begin, step, 0, y, start + j, stride, depth, 1, rows)
        j += 2 * lanes
    if j < wide:
        add_narrow(out, at, to + j, lanes, x, starts, begin, step, 0, y, start + j, stride, depth, 1, rows)
