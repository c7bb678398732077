"""The time loop of LSTMs, compiled for CPUs: states from what the input gives the gates."""

from typing import no_type_check

import numpy as np
from numba import njit

from ner_experiments.modules.crf_kernels_arithmetic import FAST, called
from ner_experiments.modules.lstm_kernels_batch import GROUP, groups_of, job_of, rows_of, token_at
from ner_experiments.modules.lstm_kernels_gates import add_scaled, copy, scale, squash, tanh
from ner_experiments.modules.lstm_kernels_tiles import add_packed, lanes_of


@called
@no_type_check
def ahead(first, last, chunks, batch, layer, gates, size, states, trace):
    """Fills `states` [directions tokens width] from `gates` [directions tokens 4 width], and the trace."""
    directions, units = gates.shape[0], gates.shape[3] // size
    jobs = directions * layer.blocks * layer.parts
    most = (units + layer.blocks - 1) // layer.blocks * size
    z = np.zeros((GROUP, 4 * most + lanes_of(gates)), gates.dtype)
    h, c, tanh_c = (
        np.zeros((GROUP, most), gates.dtype),
        np.zeros((GROUP, most), gates.dtype),
        z[0, :most].copy(),
    )
    for number in range(first * jobs // chunks, last * jobs // chunks):
        job = job_of(number, units, layer)
        for group in groups_of(job, batch, layer):
            sentences = batch.order[group * GROUP : (group + 1) * GROUP]
            h[:], c[:] = 0, 0
            active = sentences.shape[0]
            for step in range(batch.lengths[sentences[0]]):
                while batch.lengths[sentences[active - 1]] <= step:
                    active -= 1
                read(job, batch, sentences[:active], step, gates, size, z, h, trace)
                if step > 0:
                    carry(job, layer, size, z, h, active, gates.shape[3] // size)
                for r in range(active):
                    token = token_at(batch, sentences[r], step, batch.backwards[job.direction])
                    update(job, layer, sentences[r], token, size, z[r], h[r], c[r], tanh_c, states, trace)


@njit(**FAST)
@no_type_check
def read(job, batch, sentences, step, gates, size, z, h, trace):
    """What the input gives the gates."""
    a, b = job.begin * size, job.end * size
    width = b - a
    for r in range(sentences.shape[0]):
        token = token_at(batch, sentences[r], step, batch.backwards[job.direction])
        for gate in range(4):
            copy(z[r, gate * width : (gate + 1) * width], gates[job.direction, token, gate, a:b])
        if trace.before.shape[1]:
            copy(trace.before[job.direction, token, a:b], h[r, :width])


@njit(**FAST)
@no_type_check
def carry(job, layer, size, z, h, active, units):
    """And what W gives them."""
    at, starts = rows_of(z.shape[1]), rows_of(h.shape[1])
    matrices = layer.packed.shape[1]
    columns = 4 // matrices * size
    for unit in range(job.begin, job.end):
        to = (unit - job.begin) * size
        for m in range(matrices):
            packed = layer.packed[job.direction * units + unit, m]
            place = m * (job.end - job.begin) * size + to
            add_packed(z.reshape(-1), at, place, h.reshape(-1), starts, to, packed, 0, columns, size, active)


@njit(**FAST)
@no_type_check
def update(job, layer, sentence, token, size, z, h, c, tanh_c, states, trace):
    """The new cell and state of one row; h becomes what W reads of it."""
    d, a, b = job.direction, job.begin * size, job.end * size
    w = b - a
    i, f, g, o = z[:w], z[w : 2 * w], z[2 * w : 3 * w], z[3 * w : 4 * w]
    h, c, tanh_c = h[:w], c[:w], tanh_c[:w]
    if layer.peepholes.shape[0]:
        add_scaled(i, layer.peepholes[d, 0, a:b], c)
        add_scaled(f, layer.peepholes[d, 1, a:b], c)
    squash(z[: 2 * w])
    tanh(g, g)
    for j in range(w):
        c[j] = f[j] * c[j] + i[j] * g[j]
    if layer.peepholes.shape[0]:
        add_scaled(o, layer.peepholes[d, 2, a:b], c)
    squash(o)
    tanh(c, tanh_c)
    for j in range(w):
        h[j] = o[j] * tanh_c[j]
    copy(states[d, token, a:b], h)
    if layer.masks.shape[0]:
        scale(h, layer.masks[d, sentence, a:b])
    if trace.cells.shape[1]:
        copy(trace.cells[d, token, a:b], c)
        for gate in range(4):
            copy(trace.gates[d, token, gate, a:b], z[gate * w : (gate + 1) * w])
