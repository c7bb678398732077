"""The time loop of LSTMs, compiled for CPUs: states from the input's part of the gates, and gradients back.

The time loop works on a batch of sentences without padding, cut into jobs. The columns of a gate are those of a block
of units side by side; gates are in PyTorch's order, i f g o. A job is a block in one direction over a part of the
sentences; it takes up to GROUP of them at once, the longest first, so that those which are over are the last. The
tokens of a group are stored in the order in which they are read: those of the first step, of the second, and so on,
for each direction in its own order.

The products of a few rows of states with the recurrent matrices W are made gate by gate. A library packs the matrix
anew at each call, which for the few rows of a time step takes longer than the product; here it is packed once, and
read at every step. Columns are padded with zeros to whole vectors. Units stand side by side in a row, and the rows
one after another, in each of four planes, one per gate, that are `plane` apart.
"""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ner_experiments.modules.kernels.numba_ops import (
    FAST,
    IN_ORDER,
    add_four,
    add_narrow,
    add_outer,
    add_wide,
    called,
    lanes_of,
    power,
    whole_vectors,
)

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


GROUP = 16


class Batch(NamedTuple):
    order: np.ndarray
    """The numbers of the sentences, the longest first."""
    lengths: np.ndarray
    """In this order."""
    firsts: np.ndarray
    """Where a group's tokens begin."""


class Layer(NamedTuple):
    packed: np.ndarray
    """W of each direction and unit, by `pack_ahead` or `pack_back`."""
    peepholes: np.ndarray
    """[directions 3 width], to i, f and o; or of no direction."""
    masks: np.ndarray
    """What W reads is multiplied by, [directions sentences width]; or of no direction."""
    blocks: int
    """How many the units of a direction are cut into, each with as many."""
    parts: int
    """How many the groups of sentences are cut into."""


class Trace(NamedTuple):
    """By block and token, so that a job finds its own together."""

    gates: np.ndarray
    """[blocks tokens 4 width of a block]: at first what the input gives them, then i f g o."""
    cells: np.ndarray
    """[blocks tokens width of a block]; of no token if there is no way back."""
    before: np.ndarray
    """What W read: h of the token before, times the mask; likewise."""


class Job(NamedTuple):
    block: int
    """Of all directions' blocks."""
    direction: int
    first: int
    """Unit of all directions' units."""
    units: int
    width: int
    begin: int
    """Where its states begin among those of its direction."""
    part: int


@njit(**FAST)
@no_type_check
def job_of(number, units, size, layer):
    """Of a number, when each direction has so many units."""
    block, part = number // layer.parts, number % layer.parts
    direction, many = block // layer.blocks, units // layer.blocks
    first = block * many
    return Job(block, direction, first, many, many * size, (first - direction * units) * size, part)


@njit(**FAST)
@no_type_check
def groups_of(job, batch, layer):
    groups = batch.firsts.shape[0]
    return range(job.part * groups // layer.parts, (job.part + 1) * groups // layer.parts)


@njit(**FAST)
@no_type_check
def of_group(array, group):
    return array[group * GROUP : (group + 1) * GROUP]


@njit(**FAST)
@no_type_check
def num_active(lengths, step):
    """How many sentences of a group have such a step."""
    active = lengths.shape[0]
    while active > 0 and lengths[active - 1] <= step:
        active -= 1
    return active


@called
@no_type_check
def place(batch, backwards, time, places):
    """Fills in where the tokens of a direction are in a padded batch."""
    token = 0
    for group in range(batch.firsts.shape[0]):
        sentences, lengths = of_group(batch.order, group), of_group(batch.lengths, group)
        for step in range(lengths[0]):
            for r in range(num_active(lengths, step)):
                position = lengths[r] - 1 - step if backwards else step
                places[token] = sentences[r] * time + position
                token += 1


@njit(**FAST)
@no_type_check
def rows_of(stride):
    """Where the rows of a group begin in a flat array."""
    return np.arange(GROUP) * stride


@njit(**FAST)
@no_type_check
def add_ahead(z, plane, h, starts, packed, first, units, size, rows):
    """z += W h, of so many units from `first` on, packed by `pack_ahead`."""
    lanes, wide = lanes_of(z), whole_vectors(size, z)
    for unit in range(units):
        to, panel = unit * size, (first + unit) * 4 * size * wide
        for j in range(0, wide, lanes):
            add_four(z, starts, to + j, plane, h, starts, to, 1, 0, packed, panel, 4 * lanes, size, 1, rows)
            panel += 4 * lanes * size


@njit(**FAST)
@no_type_check
def add_back(by_h, by_z, plane, starts, packed, first, units, size, rows):
    """by_h += W^T by_z, likewise, packed by `pack_back`."""
    lanes, wide = lanes_of(by_h), whole_vectors(size, by_h)
    pair = 2 * lanes
    for unit in range(units):
        to, panel, j = unit * size, (first + unit) * 4 * size * wide, 0
        while j + pair <= wide:
            add_wide(
                by_h, starts, to + j, lanes, by_z, starts, to, 1, plane, packed, panel, pair, size, 4, rows
            )
            j += pair
            panel += 4 * pair * size
        if j < wide:
            add_narrow(
                by_h, starts, to + j, lanes, by_z, starts, to, 1, plane, packed, panel, lanes, size, 4, rows
            )


@njit(**FAST)
@no_type_check
def add_weights(by_w, by_z, plane, h, first, units, size, width, rows):
    """by_w += by_z h^T, [units, 4 size, size in whole vectors], and whatever after the columns."""
    wide = whole_vectors(size, h)
    lines = np.arange(4 * size) * wide
    gates = np.arange(4 * size) // size * plane + np.arange(4 * size) % size
    for unit in range(units):
        at, to = (first + unit) * 4 * size * wide, unit * size
        add_outer(by_w, lines, at, by_z, gates, to, width, h, to, width, size, rows, 4 * size)


@called
@no_type_check
def pack_ahead(matrices):
    """W of all units, [units, 4, size, size]: vector by vector of W^T's columns, in each row by row."""
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


@called
@no_type_check
def pack_back(matrices):
    """As panels of W's columns, one or two vectors wide, in each gate by gate and row by row."""
    units, _, size, _ = matrices.shape
    lanes, wide = lanes_of(matrices), whole_vectors(size, matrices)
    packed = np.zeros((units, 4 * size * wide), matrices.dtype)
    for unit in range(units):
        for j in range(0, wide, 2 * lanes):
            width = min(2 * lanes, wide - j)
            panel = packed[unit, 4 * size * j : 4 * size * (j + width)].reshape(4, size, width)
            many = min(width, size - j)
            panel[:, :, :many] = matrices[unit, :, :, j : j + many]
    return packed.reshape(-1)


@called
@no_type_check
def ahead(first, last, chunks, batch, layer, size, states, trace):
    """Fills `states` [directions tokens width], and the trace."""
    units, jobs = states.shape[2] // size, trace.gates.shape[0] * layer.parts
    width = trace.gates.shape[3]
    z = np.zeros((4, GROUP * width + lanes_of(states)), states.dtype)
    h, c, tanh_c = z[0].copy(), z[0].copy(), z[0].copy()
    plane, flat, rows = z.shape[1], z.reshape(-1), rows_of(width)
    for number in range(first * jobs // chunks, last * jobs // chunks):
        job = job_of(number, units, size, layer)
        for group in groups_of(job, batch, layer):
            sentences, lengths = of_group(batch.order, group), of_group(batch.lengths, group)
            h[:], c[:] = 0, 0
            token = batch.firsts[group]
            for step in range(lengths[0]):
                active = num_active(lengths, step)
                read(job, token, active, z, h, trace)
                if step > 0:
                    add_ahead(flat, plane, h, rows, layer.packed, job.first, job.units, size, active)
                update(job, layer, active, z, h, c, tanh_c)
                keep(job, layer, sentences[:active], token, z, h, c, states, trace)
                token += active


@njit(**FAST)
@no_type_check
def read(job, token, active, z, h, trace):
    """What the input gives the gates, of so many tokens from this one on."""
    for r in range(active):
        row = slice(r * job.width, (r + 1) * job.width)
        for gate in range(4):
            copy(z[gate, row], trace.gates[job.block, token + r, gate])
        if trace.before.shape[1]:
            copy(trace.before[job.block, token + r], h[row])


@njit(**FAST)
@no_type_check
def update(job, layer, active, z, h, c, tanh_c):
    """The new cells and states."""
    a, b = job.begin, job.begin + job.width
    n = active * job.width
    i, f, g, o = z[0, :n], z[1, :n], z[2, :n], z[3, :n]
    h, c, tanh_c = h[:n], c[:n], tanh_c[:n]
    if layer.peepholes.shape[0]:
        add_to_rows(i, layer.peepholes[job.direction, 0, a:b], c)
        add_to_rows(f, layer.peepholes[job.direction, 1, a:b], c)
    squash(i)
    squash(f)
    tanh(g)
    for j in range(n):
        c[j] = f[j] * c[j] + i[j] * g[j]
    if layer.peepholes.shape[0]:
        add_to_rows(o, layer.peepholes[job.direction, 2, a:b], c)
    squash(o)
    copy(tanh_c, c)
    tanh(tanh_c)
    for j in range(n):
        h[j] = o[j] * tanh_c[j]


@njit(**FAST)
@no_type_check
def keep(job, layer, sentences, token, z, h, c, states, trace):
    """Hands the states on, and what the way back needs; h becomes what W reads of it."""
    d, a, b = job.direction, job.begin, job.begin + job.width
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
    """[parts directions 3 width], zeros at first, to be summed over the parts; or of no part."""
    weights: np.ndarray
    """W's, [directions x units, 4 size, size in whole vectors], zeros at first; or of none."""


class Rows(NamedTuple):
    """What goes from step to step, and within one: the rows of a group's sentences one after another."""

    by_z: np.ndarray
    """[4 rows]"""
    z: np.ndarray
    """i f g o, likewise."""
    by_h: np.ndarray
    by_c: np.ndarray
    c: np.ndarray
    c_before: np.ndarray
    tanh_c: np.ndarray
    before: np.ndarray
    """What W read."""
    starts: np.ndarray
    """Where they begin."""


@njit(**FAST)
@no_type_check
def make_rows(width, like):
    gates = np.zeros((4, GROUP * width + lanes_of(like)), like.dtype)  # whole vectors are read and written
    one = gates[0]
    numbers = rows_of(width)
    return Rows(
        gates, gates.copy(), one.copy(), one.copy(), one.copy(), one.copy(), one.copy(), one.copy(), numbers
    )


@called
@no_type_check
def back(first, last, chunks, batch, layer, trace, by_states, size, gradient):
    """Fills the gradient's gates, and adds up the rest; `layer.packed` is that of the way back."""
    units, jobs = by_states.shape[2] // size, trace.gates.shape[0] * layer.parts
    rows = make_rows(trace.gates.shape[3], by_states)
    for number in range(first * jobs // chunks, last * jobs // chunks):
        job = job_of(number, units, size, layer)
        for group in groups_of(job, batch, layer):
            sentences, lengths = of_group(batch.order, group), of_group(batch.lengths, group)
            rows.by_h[:], rows.by_c[:] = 0, 0
            token = batch.firsts[group] + lengths.sum()
            for step in range(lengths[0] - 1, -1, -1):
                active = num_active(lengths, step)
                token -= active
                before = token - num_active(lengths, step - 1) if step > 0 else -1
                recall(job, token, before, active, trace, by_states, rows)
                derive(job, layer, active, gradient, rows)
                hand_on(job, token, active, gradient, rows)
                if step > 0:
                    carry_back(job, layer, sentences[:active], size, rows, gradient)


@njit(**FAST)
@no_type_check
def recall(job, token, before, active, trace, by_states, rows):
    """What there was on the way ahead, of so many tokens from this one on, and the step before them."""
    for r in range(active):
        row = slice(r * job.width, (r + 1) * job.width)
        for gate in range(4):
            copy(rows.z[gate, row], trace.gates[job.block, token + r, gate])
        copy(rows.c[row], trace.cells[job.block, token + r])
        if before >= 0:
            copy(rows.c_before[row], trace.cells[job.block, before + r])
        else:
            rows.c_before[row] = 0
        copy(rows.before[row], trace.before[job.block, token + r])
        add(rows.by_h[row], by_states[job.direction, token + r, job.begin : job.begin + job.width])


@njit(**FAST)
@no_type_check
def derive(job, layer, active, gradient, rows):
    """The gradient by the gates, and by the cells before."""
    d, a, b = job.direction, job.begin, job.begin + job.width
    n = active * job.width
    i, f, g, o = rows.z[0, :n], rows.z[1, :n], rows.z[2, :n], rows.z[3, :n]
    by_i, by_f, by_g, by_o = rows.by_z[0, :n], rows.by_z[1, :n], rows.by_z[2, :n], rows.by_z[3, :n]
    by_h, by_c, c, c_before, tanh_c = rows.by_h, rows.by_c[:n], rows.c[:n], rows.c_before[:n], rows.tanh_c[:n]
    one = c.dtype.type(1)
    copy(tanh_c, c)
    tanh(tanh_c)
    for j in range(n):
        by_o[j] = by_h[j] * tanh_c[j] * o[j] * (one - o[j])
    for j in range(n):
        by_c[j] += by_h[j] * o[j] * (one - tanh_c[j] * tanh_c[j])
    if layer.peepholes.shape[0]:
        add_to_rows(by_c, layer.peepholes[d, 2, a:b], by_o)
    for j in range(n):
        by_i[j] = by_c[j] * g[j] * i[j] * (one - i[j])
    for j in range(n):
        by_f[j] = by_c[j] * c_before[j] * f[j] * (one - f[j])
    for j in range(n):
        by_g[j] = by_c[j] * i[j] * (one - g[j] * g[j])
    scale(by_c, f)
    if layer.peepholes.shape[0]:
        peepholes, by_peepholes = layer.peepholes[d, :, a:b], gradient.peepholes[job.part, d, :, a:b]
        add_to_rows(by_c, peepholes[0], by_i)
        add_to_rows(by_c, peepholes[1], by_f)
        for begin in range(0, n, job.width):
            row = slice(begin, begin + job.width)
            add_scaled(by_peepholes[0], by_i[row], c_before[row])
            add_scaled(by_peepholes[1], by_f[row], c_before[row])
            add_scaled(by_peepholes[2], by_o[row], c[row])
    by_h[:] = 0


@njit(**FAST)
@no_type_check
def hand_on(job, token, active, gradient, rows):
    for r in range(active):
        for gate in range(4):
            by_gate = rows.by_z[gate, r * job.width : (r + 1) * job.width]
            copy(gradient.gates[job.block, token + r, gate], by_gate)


@njit(**FAST)
@no_type_check
def carry_back(job, layer, sentences, size, rows, gradient):
    """The gradient by what W read, and by W."""
    active, width = sentences.shape[0], job.width
    by_z, plane = rows.by_z.reshape(-1), rows.by_z.shape[1]
    add_back(rows.by_h, by_z, plane, rows.starts, layer.packed, job.first, job.units, size, active)
    if gradient.weights.shape[0]:
        by_w, many = gradient.weights.reshape(-1), job.units
        add_weights(by_w, by_z, plane, rows.before, job.first, many, size, width, active)
    if layer.masks.shape[0]:
        for r in range(active):
            mask = layer.masks[job.direction, sentences[r], job.begin : job.begin + width]
            scale(rows.by_h[r * width : (r + 1) * width], mask)
