"""The time loop of LSTMs back, compiled for CPUs: gradients from those of the states."""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.lstm_kernels_batch import GROUP, groups_of, job_of, rows_of, token_at
from ner_experiments.modules.lstm_kernels_gates import add, add_scaled, add_to_rows, copy, scale, tanh
from ner_experiments.modules.numba_kernels import FAST, called
from ner_experiments.modules.tile_kernels import add_outer, add_packed, lanes_of, whole_vectors


class Gradient(NamedTuple):
    gates: np.ndarray
    """[directions tokens 4 width]"""
    peepholes: np.ndarray
    """[parts directions 3 width], zeros at first, to be summed over the parts; or of no part."""
    weights: np.ndarray
    """W's, [directions x units, 4 size, size in whole vectors], zeros at first; or of none."""


class Rows(NamedTuple):
    """What goes from step to step, and within one: the rows of a group's sentences one after another."""

    by_z: np.ndarray
    """[4, rows]"""
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
def make_rows(most, like):
    gates = np.zeros((4, GROUP * most + lanes_of(like)), like.dtype)  # whole vectors are read and written
    one = gates[0]
    numbers = np.zeros(GROUP, np.int64)
    return Rows(
        gates, gates.copy(), one.copy(), one.copy(), one.copy(), one.copy(), one.copy(), one.copy(), numbers
    )


@called
@no_type_check
def back(first, last, chunks, batch, layer, trace, by_states, size, gradient):
    """Fills the gradient's gates, and adds up the rest; `layer.packed` is here W, not its transpose."""
    directions, units = by_states.shape[0], by_states.shape[2] // size
    jobs = directions * layer.blocks * layer.parts
    rows = make_rows((units + layer.blocks - 1) // layer.blocks * size, by_states)
    tokens = np.empty(GROUP, np.int64)
    for number in range(first * jobs // chunks, last * jobs // chunks):
        job = job_of(number, units, layer)
        rows.starts[:] = rows_of((job.end - job.begin) * size)
        for group in groups_of(job, batch, layer):
            sentences = batch.order[group * GROUP : (group + 1) * GROUP]
            rows.by_h[:], rows.by_c[:] = 0, 0
            active = 0
            for step in range(batch.lengths[sentences[0]] - 1, -1, -1):
                while active < sentences.shape[0] and batch.lengths[sentences[active]] > step:
                    active += 1
                for r in range(active):
                    tokens[r] = token_at(batch, sentences[r], step, batch.backwards[job.direction])
                recall(job, batch, tokens[:active], step, size, trace, by_states, rows)
                derive(job, layer, active, size, gradient, rows)
                hand_on(job, tokens[:active], size, gradient, rows)
                if step > 0:
                    carry_back(job, layer, sentences[:active], size, rows, gradient, units)


@njit(**FAST)
@no_type_check
def recall(job, batch, tokens, step, size, trace, by_states, rows):
    """What there was on the way ahead."""
    d, a, b = job.direction, job.begin * size, job.end * size
    neighbour = 1 if batch.backwards[d] else -1
    for r in range(tokens.shape[0]):
        row = slice(r * (b - a), (r + 1) * (b - a))
        for gate in range(4):
            copy(rows.z[gate, row], trace.gates[d, tokens[r], gate, a:b])
        copy(rows.c[row], trace.cells[d, tokens[r], a:b])
        if step > 0:
            copy(rows.c_before[row], trace.cells[d, tokens[r] + neighbour, a:b])
        else:
            rows.c_before[row] = 0
        copy(rows.before[row], trace.before[d, tokens[r], a:b])
        add(rows.by_h[row], by_states[d, tokens[r], a:b])


@njit(**FAST)
@no_type_check
def derive(job, layer, active, size, gradient, rows):
    """The gradient by the gates, and by the cells before."""
    d, a, b = job.direction, job.begin * size, job.end * size
    n = active * (b - a)
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
        for begin in range(0, n, b - a):
            row = slice(begin, begin + b - a)
            add_scaled(by_peepholes[0], by_i[row], c_before[row])
            add_scaled(by_peepholes[1], by_f[row], c_before[row])
            add_scaled(by_peepholes[2], by_o[row], c[row])
    by_h[:] = 0


@njit(**FAST)
@no_type_check
def hand_on(job, tokens, size, gradient, rows):
    a, b = job.begin * size, job.end * size
    for r in range(tokens.shape[0]):
        for gate in range(4):
            by_gate = rows.by_z[gate, r * (b - a) : (r + 1) * (b - a)]
            copy(gradient.gates[job.direction, tokens[r], gate, a:b], by_gate)


@njit(**FAST)
@no_type_check
def carry_back(job, layer, sentences, size, rows, gradient, units):
    """The gradient by what W read, and by W."""
    d, active, width = job.direction, sentences.shape[0], (job.end - job.begin) * size
    lines, gates = np.arange(size) * whole_vectors(size, rows.by_h), np.arange(size)
    for unit in range(job.begin, job.end):
        to, k = (unit - job.begin) * size, d * units + unit
        for m in range(4):
            by_z = rows.by_z[m]
            add_packed(
                rows.by_h, rows.starts, to, by_z, rows.starts, to, layer.packed[k, m], 0, size, size, active
            )
            if gradient.weights.shape[0]:
                by_w = gradient.weights[k, m * size : (m + 1) * size].reshape(-1)
                add_outer(by_w, lines, 0, by_z, gates, to, width, rows.before, to, width, size, active, size)
    if layer.masks.shape[0]:
        for r in range(active):
            mask = layer.masks[d, sentences[r], job.begin * size : job.end * size]
            scale(rows.by_h[r * width : (r + 1) * width], mask)
