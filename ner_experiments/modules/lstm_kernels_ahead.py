"""The time loop of LSTMs, compiled for CPUs: states from what the input gives the gates."""

from typing import no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.lstm_kernels_batch import GROUP, groups_of, job_of, num_active, of_group, rows_of
from ner_experiments.modules.lstm_kernels_gates import add_to_rows, copy, scale, squash, tanh
from ner_experiments.modules.lstm_kernels_units import add_ahead
from ner_experiments.modules.numba_kernels import FAST, called
from ner_experiments.modules.tile_kernels import lanes_of


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
