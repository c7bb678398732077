"""The time loop of LSTMs, compiled for CPUs: states from what the input gives the gates."""

from typing import no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.lstm_kernels_batch import GROUP, groups_of, job_of, rows_of, token_at
from ner_experiments.modules.lstm_kernels_gates import add_to_rows, copy, scale, squash, tanh
from ner_experiments.modules.numba_kernels import FAST, called
from ner_experiments.modules.tile_kernels import add_packed, lanes_of


@called
@no_type_check
def ahead(first, last, chunks, batch, layer, gates, size, states, trace):
    """Fills `states` [directions tokens width] from `gates` [directions tokens 4 width], and the trace."""
    directions, units = gates.shape[0], gates.shape[3] // size
    jobs = directions * layer.blocks * layer.parts
    most = (units + layer.blocks - 1) // layer.blocks * size
    z = np.zeros((4, GROUP * most + lanes_of(gates)), gates.dtype)
    h, c, tanh_c = z[0].copy(), z[0].copy(), z[0].copy()
    tokens = np.empty(GROUP, np.int64)
    for number in range(first * jobs // chunks, last * jobs // chunks):
        job = job_of(number, units, layer)
        rows = rows_of((job.end - job.begin) * size)
        for group in groups_of(job, batch, layer):
            sentences = batch.order[group * GROUP : (group + 1) * GROUP]
            h[:], c[:] = 0, 0
            active = sentences.shape[0]
            for step in range(batch.lengths[sentences[0]]):
                while batch.lengths[sentences[active - 1]] <= step:
                    active -= 1
                for r in range(active):
                    tokens[r] = token_at(batch, sentences[r], step, batch.backwards[job.direction])
                read(job, tokens[:active], gates, size, z, h, trace)
                if step > 0:
                    carry(job, layer, size, z, h, rows, active, units)
                update(job, layer, active, size, z, h, c, tanh_c)
                keep(job, layer, sentences, tokens[:active], size, z, h, c, states, trace)


@njit(**FAST)
@no_type_check
def read(job, tokens, gates, size, z, h, trace):
    """What the input gives the gates."""
    a, b = job.begin * size, job.end * size
    for r in range(tokens.shape[0]):
        row = slice(r * (b - a), (r + 1) * (b - a))
        for gate in range(4):
            copy(z[gate, row], gates[job.direction, tokens[r], gate, a:b])
        if trace.before.shape[1]:
            copy(trace.before[job.direction, tokens[r], a:b], h[row])


@njit(**FAST)
@no_type_check
def carry(job, layer, size, z, h, rows, active, units):
    """And what W gives them."""
    for unit in range(job.begin, job.end):
        to = (unit - job.begin) * size
        for gate in range(4):
            packed = layer.packed[job.direction * units + unit, gate]
            add_packed(z[gate], rows, to, h, rows, to, packed, 0, size, size, active)


@njit(**FAST)
@no_type_check
def update(job, layer, active, size, z, h, c, tanh_c):
    """The new cells and states."""
    a, b = job.begin * size, job.end * size
    n = active * (b - a)
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
def keep(job, layer, sentences, tokens, size, z, h, c, states, trace):
    """Hands the states on, and what the way back needs; h becomes what W reads of it."""
    d, a, b = job.direction, job.begin * size, job.end * size
    for r in range(tokens.shape[0]):
        row = slice(r * (b - a), (r + 1) * (b - a))
        copy(states[d, tokens[r], a:b], h[row])
        if layer.masks.shape[0]:
            scale(h[row], layer.masks[d, sentences[r], a:b])
        if trace.cells.shape[1]:
            copy(trace.cells[d, tokens[r], a:b], c[row])
            for gate in range(4):
                copy(trace.gates[d, tokens[r], gate, a:b], z[gate, row])
