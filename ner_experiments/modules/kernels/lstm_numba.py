"""numba kernels of the LSTM recurrence over sentences without padding; `cpu` calls them.

`forward` computes states from the input part of the gates; `backward` computes gradients of gates from those of states.

Work is divided into jobs: a block of units in one direction over a part of the sentences. A job processes up to GROUP
sentences at once, sorted by decreasing length, so that finished sentences are at the end. Tokens of a group are stored
in the order in which they are read, step by step, for each direction in its own order. The columns of a gate are the
units of a block side by side; gates are in PyTorch's order, i f g o.

Products of a few rows of states with the recurrent matrices W are computed gate by gate. BLAS libraries repack the
matrix at every call, which takes longer than the product at so few rows; here it is packed once per batch. Columns are
padded with zeros to full vectors. A row holds the units side by side; rows follow each other in each of four planes,
one per gate, at a distance of `plane`.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.kernels.compilation import FAST, INLINED, compiled
from ner_experiments.modules.kernels.numba_ops import (
    IN_ORDER,
    add_four,
    add_narrow,
    add_outer,
    add_wide,
    clamped_exp,
    lanes_of,
    whole_vectors,
)

GROUP = 16


class Batch(NamedTuple):
    order: np.ndarray
    """Indices of the sentences by decreasing length."""
    lengths: np.ndarray
    """Lengths in this order."""
    starts: np.ndarray
    """First token of each group."""


class Layer(NamedTuple):
    packed: np.ndarray
    """W of each direction and unit, by `pack_forward` or `pack_backward`."""
    peepholes: np.ndarray
    """[directions 3 width] to i, f and o; empty without peepholes."""
    masks: np.ndarray
    """Factors of h_{t-1} where W reads it, [directions sentences width]; empty without dropout."""
    blocks: int
    """Number of equal blocks that the units of a direction are split into."""
    parts: int
    """Number of parts that the groups of sentences are split into."""


class Trace(NamedTuple):
    """Activations for the backward pass, by block and token, so that the data of a job are contiguous."""

    gates: np.ndarray
    """[blocks tokens 4 width of a block]: on input their input part, on output i f g o."""
    cells: np.ndarray
    """[blocks tokens width of a block]; empty without a backward pass."""
    recurrent_inputs: np.ndarray
    """h_{t-1} times the mask, [blocks tokens width of a block]; empty without a backward pass."""


@compiled
@no_type_check
def forward(first, last, chunks, batch, layer, size, states, trace):
    """Compute `states` [directions tokens width] and the trace, for the jobs of chunks first..last-1."""
    units, jobs = states.shape[2] // size, trace.gates.shape[0] * layer.parts
    width = trace.gates.shape[3]
    z = np.zeros((4, GROUP * width + lanes_of(states)), states.dtype)
    h, c, tanh_c = z[0].copy(), z[0].copy(), z[0].copy()
    plane, flat, rows = z.shape[1], z.reshape(-1), row_offsets(width)
    for number in range(first * jobs // chunks, last * jobs // chunks):
        job = make_job(number, units, size, layer)
        for group in groups_of(job, batch, layer):
            sentences, lengths = slice_group(batch.order, group), slice_group(batch.lengths, group)
            h[:], c[:] = 0, 0
            token = batch.starts[group]
            for step in range(lengths[0]):
                active = num_active(lengths, step)
                load_gates(job, token, active, z, h, trace)
                if step > 0:
                    add_recurrent(flat, plane, h, rows, layer.packed, job.first, job.units, size, active)
                update_states(job, layer, active, z, h, c, tanh_c)
                store_step(job, layer, sentences[:active], token, z, h, c, states, trace)
                token += active


@njit(**INLINED)
@no_type_check
def load_gates(job, token, active, z, h, trace):
    """Load the input part of the gates of `active` tokens into z, and store what W reads of the states."""
    for r in range(active):
        row = slice(r * job.width, (r + 1) * job.width)
        for gate in range(4):
            copy(z[gate, row], trace.gates[job.block, token + r, gate])
        if trace.recurrent_inputs.shape[1]:
            copy(trace.recurrent_inputs[job.block, token + r], h[row])


@njit(**FAST)
@no_type_check
def update_states(job, layer, active, z, h, c, tanh_c):
    """Update c and h from the gate sums in z, which become gate values."""
    a, b = job.offset, job.offset + job.width
    n = active * job.width
    i, f, g, o = z[0, :n], z[1, :n], z[2, :n], z[3, :n]
    h, c, tanh_c = h[:n], c[:n], tanh_c[:n]
    if layer.peepholes.shape[0]:
        add_to_rows(i, layer.peepholes[job.direction, 0, a:b], c)
        add_to_rows(f, layer.peepholes[job.direction, 1, a:b], c)
    sigmoid(i)
    sigmoid(f)
    tanh(g)
    for j in range(n):
        c[j] = f[j] * c[j] + i[j] * g[j]
    if layer.peepholes.shape[0]:
        add_to_rows(o, layer.peepholes[job.direction, 2, a:b], c)
    sigmoid(o)
    copy(tanh_c, c)
    tanh(tanh_c)
    for j in range(n):
        h[j] = o[j] * tanh_c[j]


@njit(**INLINED)
@no_type_check
def store_step(job, layer, sentences, token, z, h, c, states, trace):
    """Store states and trace; h becomes what W reads at the next step."""
    d, a, b = job.direction, job.offset, job.offset + job.width
    for r in range(sentences.shape[0]):
        row = slice(r * job.width, (r + 1) * job.width)
        copy(states[d, token + r, a:b], h[row])
        if layer.masks.shape[0]:
            scale(h[row], layer.masks[d, sentences[r], a:b])
        if trace.cells.shape[1]:
            copy(trace.cells[job.block, token + r], c[row])
            for gate in range(4):
                copy(trace.gates[job.block, token + r, gate], z[gate, row])


class Gradient(NamedTuple):
    gates: np.ndarray
    """[blocks tokens 4 width of a block]"""
    peepholes: np.ndarray
    """[parts directions 3 width], accumulated per part; empty without peepholes."""
    weights: np.ndarray
    """Gradient with respect to W, [directions x units, 4 size, size in full vectors], accumulated.

    Empty if PyTorch computes it.
    """


class Rows(NamedTuple):
    """Buffers of a step: concatenated rows of the sentences of a group. grad_h and grad_c persist from step to step."""

    grad_z: np.ndarray
    """[4 rows]"""
    z: np.ndarray
    """[4 rows]: i f g o."""
    grad_h: np.ndarray
    grad_c: np.ndarray
    c: np.ndarray
    c_before: np.ndarray
    tanh_c: np.ndarray
    recurrent_inputs: np.ndarray
    offsets: np.ndarray
    """Offsets of the rows."""


@compiled
@no_type_check
def backward(first, last, chunks, batch, layer, trace, grad_states, size, gradient):
    """Compute gate gradients and accumulate the others, for the jobs of chunks first..last-1."""
    units, jobs = grad_states.shape[2] // size, trace.gates.shape[0] * layer.parts
    rows = make_rows(trace.gates.shape[3], grad_states)
    for number in range(first * jobs // chunks, last * jobs // chunks):
        job = make_job(number, units, size, layer)
        for group in groups_of(job, batch, layer):
            sentences, lengths = slice_group(batch.order, group), slice_group(batch.lengths, group)
            rows.grad_h[:], rows.grad_c[:] = 0, 0
            token = batch.starts[group] + lengths.sum()
            for step in range(lengths[0] - 1, -1, -1):
                active = num_active(lengths, step)
                token -= active
                before = token - num_active(lengths, step - 1) if step > 0 else -1
                load_step(job, token, before, active, trace, grad_states, rows)
                gate_gradients(job, layer, active, gradient, rows)
                store_gate_gradients(job, token, active, gradient, rows)
                if step > 0:
                    recurrent_gradients(job, layer, sentences[:active], size, rows, gradient)


@njit(**INLINED)
@no_type_check
def load_step(job, token, before, active, trace, grad_states, rows):
    """Load the trace of `active` tokens and of the step before, and add the gradient of their states to grad_h."""
    for r in range(active):
        row = slice(r * job.width, (r + 1) * job.width)
        for gate in range(4):
            copy(rows.z[gate, row], trace.gates[job.block, token + r, gate])
        copy(rows.c[row], trace.cells[job.block, token + r])
        if before >= 0:
            copy(rows.c_before[row], trace.cells[job.block, before + r])
        else:
            rows.c_before[row] = 0
        copy(rows.recurrent_inputs[row], trace.recurrent_inputs[job.block, token + r])
        add(rows.grad_h[row], grad_states[job.direction, token + r, job.offset : job.offset + job.width])


@njit(**FAST)
@no_type_check
def gate_gradients(job, layer, active, gradient, rows):
    """Compute the gradients with respect to the gate sums and c_{t-1}; reset grad_h."""
    d, a, b = job.direction, job.offset, job.offset + job.width
    n = active * job.width
    i, f, g, o = rows.z[0, :n], rows.z[1, :n], rows.z[2, :n], rows.z[3, :n]
    grad_i, grad_f, grad_g, grad_o = (
        rows.grad_z[0, :n],
        rows.grad_z[1, :n],
        rows.grad_z[2, :n],
        rows.grad_z[3, :n],
    )
    grad_h, grad_c, c, c_before, tanh_c = (
        rows.grad_h,
        rows.grad_c[:n],
        rows.c[:n],
        rows.c_before[:n],
        rows.tanh_c[:n],
    )
    one = c.dtype.type(1)
    copy(tanh_c, c)
    tanh(tanh_c)
    for j in range(n):
        grad_o[j] = grad_h[j] * tanh_c[j] * o[j] * (one - o[j])
    for j in range(n):
        grad_c[j] += grad_h[j] * o[j] * (one - tanh_c[j] * tanh_c[j])
    if layer.peepholes.shape[0]:
        add_to_rows(grad_c, layer.peepholes[d, 2, a:b], grad_o)
    for j in range(n):
        grad_i[j] = grad_c[j] * g[j] * i[j] * (one - i[j])
    for j in range(n):
        grad_f[j] = grad_c[j] * c_before[j] * f[j] * (one - f[j])
    for j in range(n):
        grad_g[j] = grad_c[j] * i[j] * (one - g[j] * g[j])
    scale(grad_c, f)
    if layer.peepholes.shape[0]:
        peepholes, grad_peepholes = layer.peepholes[d, :, a:b], gradient.peepholes[job.part, d, :, a:b]
        add_to_rows(grad_c, peepholes[0], grad_i)
        add_to_rows(grad_c, peepholes[1], grad_f)
        for begin in range(0, n, job.width):
            row = slice(begin, begin + job.width)
            add_scaled(grad_peepholes[0], grad_i[row], c_before[row])
            add_scaled(grad_peepholes[1], grad_f[row], c_before[row])
            add_scaled(grad_peepholes[2], grad_o[row], c[row])
    grad_h[:] = 0


@njit(**INLINED)
@no_type_check
def store_gate_gradients(job, token, active, gradient, rows):
    """Store the gate gradients of `active` tokens."""
    for r in range(active):
        for gate in range(4):
            grad_gate = rows.grad_z[gate, r * job.width : (r + 1) * job.width]
            copy(gradient.gates[job.block, token + r, gate], grad_gate)


@njit(**INLINED)
@no_type_check
def recurrent_gradients(job, layer, sentences, size, rows, gradient):
    """Add the gradient with respect to h_{t-1} to grad_h, and accumulate that with respect to W."""
    active, width = sentences.shape[0], job.width
    grad_z, plane = rows.grad_z.reshape(-1), rows.grad_z.shape[1]
    add_recurrent_transposed(
        rows.grad_h, grad_z, plane, rows.offsets, layer.packed, job.first, job.units, size, active
    )
    if gradient.weights.shape[0]:
        grad_w, many = gradient.weights.reshape(-1), job.units
        add_weights(grad_w, grad_z, plane, rows.recurrent_inputs, job.first, many, size, width, active)
    if layer.masks.shape[0]:
        for r in range(active):
            mask = layer.masks[job.direction, sentences[r], job.offset : job.offset + width]
            scale(rows.grad_h[r * width : (r + 1) * width], mask)


@njit(**FAST)
@no_type_check
def make_rows(width, like):
    gates = np.zeros((4, GROUP * width + lanes_of(like)), like.dtype)  # full vectors are read and written
    one = gates[0]
    numbers = row_offsets(width)
    return Rows(
        gates, gates.copy(), one.copy(), one.copy(), one.copy(), one.copy(), one.copy(), one.copy(), numbers
    )


class Job(NamedTuple):
    block: int
    """Index among the blocks of all directions."""
    direction: int
    first: int
    """Index of its first unit among the units of all directions."""
    units: int
    width: int
    offset: int
    """First of its states among those of its direction."""
    part: int


@njit(**FAST)
@no_type_check
def make_job(number, units, size, layer):
    """Job number `number`, with `units` units per direction."""
    block, part = number // layer.parts, number % layer.parts
    direction, many = block // layer.blocks, units // layer.blocks
    first = block * many
    return Job(block, direction, first, many, many * size, (first - direction * units) * size, part)


@njit(**FAST)
@no_type_check
def groups_of(job, batch, layer):
    groups = batch.starts.shape[0]
    return range(job.part * groups // layer.parts, (job.part + 1) * groups // layer.parts)


@njit(**FAST)
@no_type_check
def slice_group(array, group):
    return array[group * GROUP : (group + 1) * GROUP]


@njit(**FAST)
@no_type_check
def num_active(lengths, step):
    """Number of sentences of a group that have this step."""
    active = lengths.shape[0]
    while active > 0 and lengths[active - 1] <= step:
        active -= 1
    return active


@compiled
@no_type_check
def fill_positions(batch, backwards, time, positions):
    """Fill in the position in the padded batch of each token of a direction, in reading order."""
    token = 0
    for group in range(batch.starts.shape[0]):
        sentences, lengths = slice_group(batch.order, group), slice_group(batch.lengths, group)
        for step in range(lengths[0]):
            for r in range(num_active(lengths, step)):
                position = lengths[r] - 1 - step if backwards else step
                positions[token] = sentences[r] * time + position
                token += 1


@compiled
@no_type_check
def pack_forward(matrices):
    """Pack W [units, 4, size, size] by vectors of columns of W^T, each vector row by row and gate by gate."""
    units, _, size, _ = matrices.shape
    lanes, wide = lanes_of(matrices), whole_vectors(size, matrices)
    packed = np.zeros((units, wide // lanes, size, 4, lanes), matrices.dtype)
    for unit in range(units):
        for gate in range(4):
            for begin in range(0, size, lanes):
                for k in range(size):
                    for j in range(begin, min(begin + lanes, size)):
                        packed[unit, begin // lanes, k, gate, j - begin] = matrices[unit, gate, j, k]
    return packed.reshape(-1)


@compiled
@no_type_check
def pack_backward(matrices):
    """Pack W in panels of columns, one or two vectors wide, each panel gate by gate and row by row."""
    units, _, size, _ = matrices.shape
    lanes, wide = lanes_of(matrices), whole_vectors(size, matrices)
    packed = np.zeros((units, 4 * size * wide), matrices.dtype)
    for unit in range(units):
        for j in range(0, wide, 2 * lanes):
            width = min(2 * lanes, wide - j)
            panel = packed[unit, 4 * size * j : 4 * size * (j + width)].reshape(4, size, width)
            for gate in range(4):
                for k in range(size):
                    for column in range(min(width, size - j)):
                        panel[gate, k, column] = matrices[unit, gate, k, j + column]
    return packed.reshape(-1)


@njit(**INLINED)
@no_type_check
def add_recurrent(z, plane, h, starts, packed, first, units, size, rows):
    """z += W h for `units` units from `first` on, with W packed by `pack_forward`."""
    lanes, wide = lanes_of(z), whole_vectors(size, z)
    for unit in range(units):
        to, panel = unit * size, (first + unit) * 4 * size * wide
        for j in range(0, wide, lanes):
            add_four(z, starts, to + j, plane, h, starts, to, 1, 0, packed, panel, 4 * lanes, size, 1, rows)
            panel += 4 * lanes * size


@njit(**INLINED)
@no_type_check
def add_recurrent_transposed(grad_h, grad_z, plane, starts, packed, first, units, size, rows):
    """grad_h += W^T grad_z for `units` units from `first` on, with W packed by `pack_backward`."""
    lanes, wide = lanes_of(grad_h), whole_vectors(size, grad_h)
    pair = 2 * lanes
    for unit in range(units):
        to, panel, j = unit * size, (first + unit) * 4 * size * wide, 0
        while j + pair <= wide:
            add_wide(
                grad_h,
                starts,
                to + j,
                lanes,
                grad_z,
                starts,
                to,
                1,
                plane,
                packed,
                panel,
                pair,
                size,
                4,
                rows,
            )
            j += pair
            panel += 4 * pair * size
        if j < wide:
            add_narrow(
                grad_h,
                starts,
                to + j,
                lanes,
                grad_z,
                starts,
                to,
                1,
                plane,
                packed,
                panel,
                lanes,
                size,
                4,
                rows,
            )


@njit(**INLINED)
@no_type_check
def add_weights(grad_w, grad_z, plane, h, first, units, size, width, rows):
    """grad_w += grad_z h^T, [units, 4 size, size in full vectors]; columns beyond `size` are undefined."""
    wide = whole_vectors(size, h)
    lines = np.arange(4 * size) * wide
    gates = np.arange(4 * size) // size * plane + np.arange(4 * size) % size
    for unit in range(units):
        at, to = (first + unit) * 4 * size * wide, unit * size
        add_outer(grad_w, lines, at, grad_z, gates, to, width, h, to, width, size, rows, 4 * size)


@njit(**FAST)
@no_type_check
def row_offsets(stride):
    """Offsets of the rows of a group in a flat array."""
    return np.arange(GROUP) * stride


@njit(**IN_ORDER)
@no_type_check
def sigmoid(row):
    """row = sigmoid(row)"""
    one = row.dtype.type(1)
    for j in range(row.shape[0]):
        row[j] = one / (one + clamped_exp(-row[j]))


@njit(**IN_ORDER)
@no_type_check
def tanh(row):
    """row = tanh(row)"""
    one, two = row.dtype.type(1), row.dtype.type(2)
    for j in range(row.shape[0]):
        row[j] = one - two / (one + clamped_exp(two * row[j]))


@njit(**FAST)
@no_type_check
def add(out, a):
    """out += a"""
    for j in range(out.shape[0]):
        out[j] += a[j]


@njit(**FAST)
@no_type_check
def add_scaled(out, a, b):
    """out += a * b"""
    for j in range(out.shape[0]):
        out[j] += a[j] * b[j]


@njit(**FAST)
@no_type_check
def add_to_rows(out, row, b):
    """out += row * b for each row of out and b, which are concatenated rows."""
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
    """out = x, both contiguous and of one length."""
    for j in range(out.shape[0]):
        out[j] = x[j]
