"""The time loop of LSTMs back, compiled for CPUs: gradients from those of the states."""

from typing import NamedTuple, no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.crf_kernels_arithmetic import FAST, called
from ner_experiments.modules.lstm_kernels_batch import GROUP, groups_of, job_of, rows_of, token_at
from ner_experiments.modules.lstm_kernels_gates import add, add_scaled, copy, scale, tanh
from ner_experiments.modules.lstm_kernels_tiles import add_outer, add_packed, lanes_of, whole_vectors


class Gradient(NamedTuple):
    gates: np.ndarray
    """[directions tokens 4 width]"""
    peepholes: np.ndarray
    """[parts directions 3 width], zeros at first, to be summed over the parts; or of no part."""
    weights: np.ndarray
    """W's, [directions x units, 4 size, size in whole vectors], zeros at first; or of none."""


class Rows(NamedTuple):
    """What goes from step to step, and within one, for each sentence of a group."""

    by_z: np.ndarray
    by_h: np.ndarray
    by_c: np.ndarray
    before: np.ndarray
    tanh_c: np.ndarray
    nothing: np.ndarray


@called
@no_type_check
def back(first, last, chunks, batch, layer, trace, by_states, size, gradient):
    """Fills the gradient's gates, and adds up the rest; `layer.packed` is here W, not its transpose."""
    directions, units = by_states.shape[0], by_states.shape[2] // size
    jobs = directions * layer.blocks * layer.parts
    most = (units + layer.blocks - 1) // layer.blocks * size
    over = most + lanes_of(by_states)  # whole vectors are written
    wide, narrow = np.zeros((GROUP, 4 * most), by_states.dtype), np.zeros((2, GROUP, over), by_states.dtype)
    single = np.zeros((2, most), by_states.dtype)
    rows = Rows(wide, narrow[0], wide[:, :most].copy(), narrow[1], single[0], single[1])
    for number in range(first * jobs // chunks, last * jobs // chunks):
        job = job_of(number, units, layer)
        for group in groups_of(job, batch, layer):
            sentences = batch.order[group * GROUP : (group + 1) * GROUP]
            rows.by_h[:], rows.by_c[:] = 0, 0
            active = 0
            for step in range(batch.lengths[sentences[0]] - 1, -1, -1):
                while active < sentences.shape[0] and batch.lengths[sentences[active]] > step:
                    active += 1
                for r in range(active):
                    backwards = batch.backwards[job.direction]
                    token = token_at(batch, sentences[r], step, backwards)
                    derive(job, layer, token, step, backwards, size, trace, by_states, gradient, rows, r)
                if step > 0:
                    carry_back(job, layer, sentences[:active], size, rows, gradient, units)


@njit(**FAST)
@no_type_check
def derive(job, layer, token, step, backwards, size, trace, by_states, gradient, rows, r):
    """The gradient of one row by its gates, and by the cell before it."""
    d, a, b = job.direction, job.begin * size, job.end * size
    w = b - a
    by_z, by_h, by_c, tanh_c = rows.by_z[r], rows.by_h[r, :w], rows.by_c[r, :w], rows.tanh_c[:w]
    by_i, by_f, by_g, by_o = by_z[:w], by_z[w : 2 * w], by_z[2 * w : 3 * w], by_z[3 * w : 4 * w]
    i, f = trace.gates[d, token, 0, a:b], trace.gates[d, token, 1, a:b]
    g, o = trace.gates[d, token, 2, a:b], trace.gates[d, token, 3, a:b]
    neighbour = token + 1 if backwards else token - 1
    c = trace.cells[d, token, a:b]
    c_before = trace.cells[d, neighbour, a:b] if step > 0 else rows.nothing[:w]
    one = c.dtype.type(1)
    tanh(c, tanh_c)
    add(by_h, by_states[d, token, a:b])
    for j in range(w):
        by_o[j] = by_h[j] * tanh_c[j] * o[j] * (one - o[j])
    for j in range(w):
        by_c[j] += by_h[j] * o[j] * (one - tanh_c[j] * tanh_c[j])
    if layer.peepholes.shape[0]:
        add_scaled(by_c, layer.peepholes[d, 2, a:b], by_o)
    for j in range(w):
        by_i[j] = by_c[j] * g[j] * i[j] * (one - i[j])
    for j in range(w):
        by_f[j] = by_c[j] * c_before[j] * f[j] * (one - f[j])
    for j in range(w):
        by_g[j] = by_c[j] * i[j] * (one - g[j] * g[j])
    scale(by_c, f)
    if layer.peepholes.shape[0]:
        peepholes, by_peepholes = layer.peepholes[d, :, a:b], gradient.peepholes[job.part, d, :, a:b]
        derive_peepholes(peepholes, by_peepholes, by_i, by_f, by_o, c, c_before, by_c)
    for gate in range(4):
        copy(gradient.gates[d, token, gate, a:b], by_z[gate * w : (gate + 1) * w])
    if gradient.weights.shape[0]:
        copy(rows.before[r, :w], trace.before[d, token, a:b])
    by_h[:] = 0


@njit(**FAST)
@no_type_check
def derive_peepholes(peepholes, by_peepholes, by_i, by_f, by_o, c, c_before, by_c):
    add_scaled(by_c, peepholes[0], by_i)
    add_scaled(by_c, peepholes[1], by_f)
    add_scaled(by_peepholes[0], by_i, c_before)
    add_scaled(by_peepholes[1], by_f, c_before)
    add_scaled(by_peepholes[2], by_o, c)


@njit(**FAST)
@no_type_check
def carry_back(job, layer, sentences, size, rows, gradient, units):
    """The gradient by what W read, and by W."""
    d, active = job.direction, sentences.shape[0]
    width, matrices = (job.end - job.begin) * size, layer.packed.shape[1]
    depth = 4 // matrices * size
    stride, over = rows.by_z.shape[1], rows.by_h.shape[1]
    at, starts = rows_of(over), rows_of(stride)
    lines, gates = np.arange(depth) * whole_vectors(size, rows.by_h), np.arange(depth)
    by_z, by_h, before = rows.by_z.reshape(-1), rows.by_h.reshape(-1), rows.before.reshape(-1)
    for unit in range(job.begin, job.end):
        to = (unit - job.begin) * size
        for m in range(matrices):
            begin = m * width + to
            packed = layer.packed[d * units + unit, m]
            add_packed(by_h, at, to, by_z, starts, begin, packed, 0, size, depth, active)
            if gradient.weights.shape[0]:
                by_w = gradient.weights[d * units + unit, m * depth : (m + 1) * depth].reshape(-1)
                add_outer(by_w, lines, 0, by_z, gates, begin, stride, before, to, over, size, active, depth)
    for r in range(active):
        rows.by_h[r, width:] = 0
        if layer.masks.shape[0]:
            scale(rows.by_h[r, :width], layer.masks[d, sentences[r], job.begin * size : job.end * size])
