"""The time loop of parallel LSTM units as Triton kernels; `lstm_cuda` runs them.

A program takes one unit of one direction and `BLOCK` sentences, and goes through the tokens of the longest.
It keeps the state and the recurrent weights, which are padded to `width`, a power of two; what is padded
stays 0. `program` is direction * units + unit. Gates and peepholes stand in the order i f g o; g has none.
"""

from typing import no_type_check

import triton
import triton.language as tl

BLOCK = tl.constexpr(16)
"""The fewest rows that tensor cores multiply."""


@triton.jit
@no_type_check
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
@no_type_check
def product(x, weights):
    """As exact as float32 is, in three products of tensor cores."""
    return tl.dot(x, weights, input_precision="tf32x3", out_dtype=x.dtype)


@triton.jit
@no_type_check
def read_four(start, stride, real):
    i = tl.load(start, mask=real, other=0)
    f = tl.load(start + stride, mask=real, other=0)
    g = tl.load(start + 2 * stride, mask=real, other=0)
    o = tl.load(start + 3 * stride, mask=real, other=0)
    return i, f, g, o


@triton.jit
@no_type_check
def write_four(start, stride, real, i, f, g, o):
    tl.store(start, i, mask=real)
    tl.store(start + stride, f, mask=real)
    tl.store(start + 2 * stride, g, mask=real)
    tl.store(start + 3 * stride, o, mask=real)


@triton.jit
@no_type_check
def read_weights(weights, program, size: tl.constexpr, width: tl.constexpr, to: tl.constexpr):
    """`to` is the axis of the gates; the other is that of the state before."""
    axis = tl.arange(0, width)
    gate, state = tl.expand_dims(axis, 1 - to), tl.expand_dims(axis, to)
    start = weights + program * 4 * size * size + gate * size + state
    return read_four(start, size * size, (gate < size) & (state < size))


@triton.jit
@no_type_check
def find_row(program, units, batch, time, b, length, t):
    """Of the t-th token that a direction reads, in what is laid out as directions batch time units."""
    direction, unit = program // units, program % units
    place = tl.where(direction == 0, t, length - 1 - t)
    return (((direction * batch + b) * time + place) * units + unit)[:, None]


@triton.jit(do_not_specialize=["batch", "time"])
@no_type_check
def forward(
    gates,
    weights,
    peepholes,
    mask,
    lengths,
    states,
    acts,
    batch,
    time,
    units,
    size: tl.constexpr,
    width: tl.constexpr,
):
    """acts holds the values of the four gates and of the cell."""
    program = tl.program_id(1).to(tl.int64)
    b, column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, width)[None, :]
    length = tl.load(lengths + b, mask=b < batch, other=0)
    inside = (b < batch)[:, None] & (column < size)
    kept = tl.load(mask + (program * batch + b)[:, None] * size + column, mask=inside, other=0)
    w_i, w_f, w_g, w_o = read_weights(weights, program, size, width, to=1)
    p_i, p_f, _, p_o = read_four(peepholes + program * 4 * size + column, size, column < size)
    h = tl.zeros([BLOCK, width], w_i.dtype)
    c = tl.zeros([BLOCK, width], w_i.dtype)
    for t in range(0, tl.max(length, 0)):
        row = find_row(program, units, batch, time, b, length, t)
        here = inside & (t < length)[:, None]
        i, f, g, o = read_four(gates + row * 4 * size + column, size, here)
        h *= kept
        i = tl.sigmoid(i + product(h, w_i) + p_i * c)
        f = tl.sigmoid(f + product(h, w_f) + p_f * c)
        g = tanh(g + product(h, w_g))
        c = f * c + i * g
        o = tl.sigmoid(o + product(h, w_o) + p_o * c)
        h = o * tanh(c)
        tl.store(states + row * size + column, h, mask=here)
        write_four(acts + row * 5 * size + column, size, here, i, f, g, o)
        tl.store(acts + row * 5 * size + 4 * size + column, c, mask=here)


@triton.jit(do_not_specialize=["batch", "time"])
@no_type_check
def backward(
    by_states,
    weights,
    peepholes,
    mask,
    lengths,
    acts,
    by_gates,
    batch,
    time,
    units,
    size: tl.constexpr,
    width: tl.constexpr,
):
    """by_states -> by_gates, from which the other gradients follow for all tokens at once."""
    program = tl.program_id(1).to(tl.int64)
    b, column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, width)[None, :]
    length = tl.load(lengths + b, mask=b < batch, other=0)
    inside = (b < batch)[:, None] & (column < size)
    kept = tl.load(mask + (program * batch + b)[:, None] * size + column, mask=inside, other=0)
    w_i, w_f, w_g, w_o = read_weights(weights, program, size, width, to=0)
    p_i, p_f, _, p_o = read_four(peepholes + program * 4 * size + column, size, column < size)
    by_h = tl.zeros([BLOCK, width], w_i.dtype)
    by_c = tl.zeros([BLOCK, width], w_i.dtype)
    longest = tl.max(length, 0)
    for step in range(0, longest):
        t = longest - 1 - step
        row = find_row(program, units, batch, time, b, length, t)
        before = find_row(program, units, batch, time, b, length, t - 1)
        here = inside & (t < length)[:, None]
        i, f, g, o = read_four(acts + row * 5 * size + column, size, here)
        c = tl.load(acts + row * 5 * size + 4 * size + column, mask=here, other=0)
        old = tl.load(acts + before * 5 * size + 4 * size + column, mask=here & (t > 0), other=0)
        by_h = by_h * kept + tl.load(by_states + row * size + column, mask=here, other=0)
        by_o = by_h * tanh(c) * o * (1 - o)
        by_c += by_h * o * (1 - tanh(c) * tanh(c)) + by_o * p_o
        by_i, by_f, by_g = by_c * g * i * (1 - i), by_c * old * f * (1 - f), by_c * i * (1 - g * g)
        write_four(by_gates + row * 4 * size + column, size, here, by_i, by_f, by_g, by_o)
        by_c = by_c * f + by_i * p_i + by_f * p_f
        by_h = product(by_i, w_i) + product(by_f, w_f) + product(by_g, w_g) + product(by_o, w_o)
