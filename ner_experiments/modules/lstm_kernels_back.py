"""The time loop of LSTMs back, compiled for CPUs: gradients from those of the states."""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.lstm_kernels_batch import GROUP, groups_of, job_of, num_active, of_group, rows_of
from ner_experiments.modules.lstm_kernels_gates import add, add_scaled, add_to_rows, copy, scale, tanh
from ner_experiments.modules.lstm_kernels_units import add_back, add_weights
from ner_experiments.modules.numba_kernels import FAST, called
from ner_experiments.modules.tile_kernels import lanes_of


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
