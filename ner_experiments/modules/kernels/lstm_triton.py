"""Triton kernels of the recurrence of parallel LSTM units; `cuda` launches them.

A program of `forward` or `backward` processes one unit of one direction and `BLOCK` sentences, for as many steps as the
longest has tokens. It keeps the state and the recurrent weights on chip, padded with zeros to `width`, a power of two.
A program of `forward_step` or `backward_step` processes `width` of a unit's states in one time step, and reads their
products with the recurrent weights. `program` is direction * units + unit. Gates and peepholes are in the order
i f g o; g has no peephole.
"""

from typing import no_type_check

import triton
import triton.language as tl

BLOCK = tl.constexpr(16)
"""Sentences per program: the smallest number of rows for tensor cores."""


@triton.jit
@no_type_check
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
@no_type_check
def product(x, weights):
    """Matrix product in float32 precision, as three TF32 products on tensor cores."""
    return tl.dot(x, weights, input_precision="tf32x3", out_dtype=x.dtype)


@triton.jit
@no_type_check
def load_four(start, stride, real):
    i = tl.load(start, mask=real, other=0)
    f = tl.load(start + stride, mask=real, other=0)
    g = tl.load(start + 2 * stride, mask=real, other=0)
    o = tl.load(start + 3 * stride, mask=real, other=0)
    return i, f, g, o


@triton.jit
@no_type_check
def store_four(start, stride, real, i, f, g, o):
    tl.store(start, i, mask=real)
    tl.store(start + stride, f, mask=real)
    tl.store(start + 2 * stride, g, mask=real)
    tl.store(start + 3 * stride, o, mask=real)


@triton.jit
@no_type_check
def load_weights(weights, program, size: tl.constexpr, width: tl.constexpr, to: tl.constexpr):
    """Recurrent weights of the four gates; `to` is the axis of the gate, the other that of the previous state."""
    axis = tl.arange(0, width)
    gate, state = tl.expand_dims(axis, 1 - to), tl.expand_dims(axis, to)
    start = weights + program * 4 * size * size + gate * size + state
    return load_four(start, size * size, (gate < size) & (state < size))


@triton.jit
@no_type_check
def read_constants(peepholes, mask, lengths, column, batch, size):
    """Read what is the same at each step: sentence numbers, lengths, which states exist, dropout and peepholes."""
    program = tl.program_id(1).to(tl.int64)
    b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    length = tl.load(lengths + b, mask=b < batch, other=0)
    inside = (b < batch)[:, None] & (column < size)
    dropout = tl.load(mask + (program * batch + b)[:, None] * size + column, mask=inside, other=0)
    p_i, p_f, _, p_o = load_four(peepholes + program * 4 * size + column, size, column < size)
    return program, b, length, inside, dropout, p_i, p_f, p_o


@triton.jit
@no_type_check
def row_of(program, units, batch, time, b, length, t):
    """Row of the t-th token that a direction reads, in arrays laid out as directions, batch, time, units."""
    direction, unit = program // units, program % units
    place = tl.where(direction == 0, t, length - 1 - t)
    return (((direction * batch + b) * time + place) * units + unit)[:, None]


@triton.jit
@no_type_check
def read_token(gates, states, acts, row, column, size, here, c, p_i, p_f, p_o, w_i, w_f, w_g, w_o):
    """Read a token: store h, and the values of the gates and of the cell; return h and c. w_*: products W h_{t-1}."""
    i, f, g, o = load_four(gates + row * 4 * size + column, size, here)
    i = tl.sigmoid(i + w_i + p_i * c)
    f = tl.sigmoid(f + w_f + p_f * c)
    g = tanh(g + w_g)
    c = f * c + i * g
    o = tl.sigmoid(o + w_o + p_o * c)
    h = o * tanh(c)
    tl.store(states + row * size + column, h, mask=here)
    store_four(acts + row * 5 * size + column, size, here, i, f, g, o)
    tl.store(acts + row * 5 * size + 4 * size + column, c, mask=here)
    return h, c


@triton.jit
@no_type_check
def cell_before(acts, before, column, size, here, t):
    """c_{t-1}, which is 0 at a sentence's first token."""
    has_before = here & (column < tl.where(t > 0, size, 0))
    return tl.load(acts + before * 5 * size + 4 * size + column, mask=has_before, other=0)


@triton.jit
@no_type_check
def token_gradient(
    grad_states, acts, grad_gates, row, before, column, size, here, t, grad_h, grad_c, p_i, p_f, p_o
):
    """Store the gradient of a token's gates; return it, and that of c_{t-1}. grad_h: what later tokens pass back."""
    i, f, g, o = load_four(acts + row * 5 * size + column, size, here)
    c = tl.load(acts + row * 5 * size + 4 * size + column, mask=here, other=0)
    c_before = cell_before(acts, before, column, size, here, t)
    grad_h += tl.load(grad_states + row * size + column, mask=here, other=0)
    grad_o = grad_h * tanh(c) * o * (1 - o)
    grad_c += grad_h * o * (1 - tanh(c) * tanh(c)) + grad_o * p_o
    grad_i, grad_f, grad_g = (
        grad_c * g * i * (1 - i),
        grad_c * c_before * f * (1 - f),
        grad_c * i * (1 - g * g),
    )
    store_four(grad_gates + row * 4 * size + column, size, here, grad_i, grad_f, grad_g, grad_o)
    return grad_i, grad_f, grad_g, grad_o, grad_c * f + grad_i * p_i + grad_f * p_f


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
    """Compute states from gates; acts receives the values of the four gates and of the cell."""
    column = tl.arange(0, width)[None, :]
    program, b, length, inside, dropout, p_i, p_f, p_o = read_constants(
        peepholes, mask, lengths, column, batch, size
    )
    w_i, w_f, w_g, w_o = load_weights(weights, program, size, width, to=1)
    h = tl.zeros([BLOCK, width], w_i.dtype)
    c = tl.zeros([BLOCK, width], w_i.dtype)
    for t in range(0, tl.max(length, 0)):
        row = row_of(program, units, batch, time, b, length, t)
        here = inside & (t < length)[:, None]
        h *= dropout
        h, c = read_token(
            *(gates, states, acts, row, column, size, here, c, p_i, p_f, p_o),
            *(product(h, w_i), product(h, w_f), product(h, w_g), product(h, w_o)),
        )


@triton.jit(do_not_specialize=["batch", "time"])
@no_type_check
def backward(
    grad_states,
    weights,
    peepholes,
    mask,
    lengths,
    acts,
    grad_gates,
    batch,
    time,
    units,
    size: tl.constexpr,
    width: tl.constexpr,
):
    """Compute grad_gates from grad_states; PyTorch derives all other gradients from it."""
    column = tl.arange(0, width)[None, :]
    program, b, length, inside, dropout, p_i, p_f, p_o = read_constants(
        peepholes, mask, lengths, column, batch, size
    )
    w_i, w_f, w_g, w_o = load_weights(weights, program, size, width, to=0)
    grad_h = tl.zeros([BLOCK, width], w_i.dtype)
    grad_c = tl.zeros([BLOCK, width], w_i.dtype)
    longest = tl.max(length, 0)
    for step in range(0, longest):
        t = longest - 1 - step
        row = row_of(program, units, batch, time, b, length, t)
        before = row_of(program, units, batch, time, b, length, t - 1)
        here = inside & (t < length)[:, None]
        grad_i, grad_f, grad_g, grad_o, grad_c = token_gradient(
            *(grad_states, acts, grad_gates, row, before, column, size, here, t),
            *(grad_h * dropout, grad_c, p_i, p_f, p_o),
        )
        grad_h = product(grad_i, w_i) + product(grad_f, w_f) + product(grad_g, w_g) + product(grad_o, w_o)


@triton.jit(do_not_specialize=["t", "batch", "time"])
@no_type_check
def forward_step(
    products,
    read,
    gates,
    peepholes,
    mask,
    lengths,
    states,
    acts,
    t,
    batch,
    time,
    units,
    size,
    width: tl.constexpr,
):
    """Time step t of `forward`: `products` are W h_{t-1}; `read` receives h_t as step t + 1 multiplies it."""
    column = (tl.program_id(2) * width + tl.arange(0, width))[None, :]
    program, b, length, inside, dropout, p_i, p_f, p_o = read_constants(
        peepholes, mask, lengths, column, batch, size
    )
    row = row_of(program, units, batch, time, b, length, t)
    before = row_of(program, units, batch, time, b, length, t - 1)
    here = inside & (t < length)[:, None]
    sentence = (program * batch + b)[:, None]
    w_i, w_f, w_g, w_o = load_four(products + sentence * 4 * size + column, size, here)
    c = cell_before(acts, before, column, size, here, t)
    h, _ = read_token(gates, states, acts, row, column, size, here, c, p_i, p_f, p_o, w_i, w_f, w_g, w_o)
    tl.store(read + sentence * size + column, h * dropout, mask=inside)


@triton.jit(do_not_specialize=["t", "batch", "time"])
@no_type_check
def backward_step(
    passed,
    cells,
    now,
    grad_states,
    peepholes,
    mask,
    lengths,
    acts,
    grad_gates,
    t,
    batch,
    time,
    units,
    size,
    width: tl.constexpr,
):
    """Time step t of `backward`: `passed` is what step t + 1 passes back to h_t; `now` receives the gates' gradient.

    `cells` holds the gradient of c_t, and receives that of c_{t-1}.
    """
    column = (tl.program_id(2) * width + tl.arange(0, width))[None, :]
    program, b, length, inside, dropout, p_i, p_f, p_o = read_constants(
        peepholes, mask, lengths, column, batch, size
    )
    row = row_of(program, units, batch, time, b, length, t)
    before = row_of(program, units, batch, time, b, length, t - 1)
    here = inside & (t < length)[:, None]
    sentence = (program * batch + b)[:, None]
    grad_h = tl.load(passed + sentence * size + column, mask=inside, other=0) * dropout
    grad_c = tl.load(cells + sentence * size + column, mask=inside, other=0)
    grad_i, grad_f, grad_g, grad_o, grad_c = token_gradient(
        grad_states, acts, grad_gates, row, before, column, size, here, t, grad_h, grad_c, p_i, p_f, p_o
    )
    tl.store(cells + sentence * size + column, grad_c, mask=inside)
    store_four(now + sentence * 4 * size + column, size, inside, grad_i, grad_f, grad_g, grad_o)
