"""Triton kernels of the CRF's forward, backward and Viterbi recursions; `cuda` launches them.

A program processes one sentence and stops at its end. It keeps the transitions in registers, padded to
`width` x `width`, a power of two, and in the backward pass their expected counts. Padded tags can be reached, which
keeps all numbers finite, but have no successors. Everything is in log space and in the type of the scores, except sums
over a sentence, which are float64. `transitions` holds the pairs, then the row of start and the row of end scores.
"""

from typing import no_type_check

import triton
import triton.language as tl

from ner_experiments.modules.kernels.rules import RESCALED

PREFETCH = tl.constexpr(3)
"""Pipeline stages: memory is slower than a step, so loads are issued two steps ahead."""


@triton.jit
@no_type_check
def load_pairs(pairs, size: tl.constexpr, width: tl.constexpr, source: tl.constexpr):
    """Transitions, -inf from padded tags; `source` is the axis of the tag before."""
    tag = tl.arange(0, width)
    row, column = tag[:, None], tag[None, :]
    moves = tl.load(pairs + row * size + column, mask=(row < size) & (column < size), other=0)
    return tl.where(tl.expand_dims(tag, 1 - source) < size, moves, float("-inf"))


@triton.jit
@no_type_check
def load_centered(scores, real):
    """Scores of a token minus their maximum, 0 at padded tags; and the maximum."""
    values = tl.load(scores, mask=real, other=float("-inf"))
    largest = tl.max(values, 0)
    return tl.where(real, values - largest, 0), largest.to(tl.float64)


@triton.jit
@no_type_check
def sequence_score(scores, tags, length, transitions, size: tl.constexpr):
    """Sum of the scores and transitions that the tags select; NaN for tags out of range."""
    total = tl.zeros([128], tl.float64)
    for first in range(0, length, 128):
        t = first + tl.arange(0, 128)
        inside = t < length
        tag = tl.load(tags + t, mask=inside, other=0)
        before = tl.load(tags + t - 1, mask=inside & (t > 0), other=0)
        known = inside & (tag >= 0) & (tag < size) & (before >= 0) & (before < size)
        origin = tl.where(t > 0, before, size)
        total += tl.load(scores + t * size + tag, mask=known, other=0)
        total += tl.load(transitions + origin * size + tag, mask=known, other=0)
        total += tl.load(transitions + (size + 1) * size + tag, mask=known & (t == length - 1), other=0)
        total += tl.where(inside == known, 0.0, float("nan"))
    return tl.sum(total, 0)


@triton.jit(do_not_specialize=["time"])
@no_type_check
def forward(scores, tags, lengths, transitions, losses, steps, time, size: tl.constexpr, width: tl.constexpr):
    """losses[b] = log Z, minus the score of the tags if there are any; NaN for a sentence without tokens.

    steps[b, t], if not None, receives three rows for `backward`: log p(scores up to t, y_t) up to a constant; for each
    tag at t, the maximum over the tag before of row 0 at t - 1 + pairs; and 1 / sum exp(row 0 + pairs - maximum).
    """
    b = tl.program_id(0).to(tl.int64)
    length = tl.maximum(tl.load(lengths + b), 1)
    tag = tl.arange(0, width)
    real = tag < size
    first = b * time * size
    moves = load_pairs(transitions, size, width, source=0)
    now, log_z = load_centered(scores + first + tag, real)
    alpha = tl.load(transitions + size * size + tag, mask=real, other=0) + now
    if steps is not None:
        tl.store(steps + 3 * first + tag, alpha, mask=real)
    for t in tl.range(1, length, num_stages=PREFETCH):
        now, top = load_centered(scores + first + t * size + tag, real)
        reached = alpha[:, None] + moves
        largest = tl.max(reached, 0)
        total = tl.sum(tl.exp(reached - largest[None, :]), 0)
        shift = tl.max(alpha, 0)  # of the step before, not of this one, which would serialize the reductions
        log_z += top + shift
        alpha = largest - shift + tl.log(total) + now
        if steps is not None:
            here = steps + 3 * (first + t * size) + tag
            tl.store(here, alpha, mask=real)
            tl.store(here + size, largest, mask=real)
            tl.store(here + 2 * size, 1 / total, mask=real)
    closing = alpha + tl.load(transitions + (size + 1) * size + tag, mask=real, other=float("-inf"))
    top = tl.max(closing, 0)
    log_z += top + tl.log(tl.sum(tl.exp(closing - top), 0))
    if tags is not None:
        log_z -= sequence_score(scores + first, tags + b * time, length, transitions, size)
    tl.store(losses + b, tl.where(tl.load(lengths + b) > 0, log_z, float("nan")))


@triton.jit
@no_type_check
def subtract_tags(factor, tags, length, grad_scores, grad_transitions, size: tl.constexpr):
    """Subtract the gradient of `sequence_score`. All additions to a cell are equal, so their order is irrelevant."""
    for first in range(0, length, 128):
        t = first + tl.arange(0, 128)
        tag = tl.load(tags + t, mask=t < length, other=-1)
        before = tl.load(tags + t - 1, mask=(t < length) & (t > 0), other=-1)
        known = (tag >= 0) & (tag < size)
        tl.atomic_add(grad_scores + t * size + tag, -factor, mask=known)
        tl.atomic_add(grad_transitions + size * size + tag, -factor, mask=known & (t == 0))
        tl.atomic_add(grad_transitions + (size + 1) * size + tag, -factor, mask=known & (t == length - 1))
        known &= (before >= 0) & (before < size)
        tl.atomic_add(grad_transitions + tag * size + before, -factor, mask=known)


@triton.jit(do_not_specialize=["time"])
@no_type_check
def backward(
    weight,
    tags,
    lengths,
    transposed,
    steps,
    grad_scores,
    grad_transposed,
    time,
    size: tl.constexpr,
    width: tl.constexpr,
):
    """Gradient of weight * losses[b], from p(y_n) backward along the Markov chain p(y_t | y_{t+1}).

    `transposed` is `transitions` with its pairs transposed, since a thread owns whole columns and sums along them.
    grad_transposed[b] has the same layout. Does not write grad_scores at padding.
    """
    b = tl.program_id(0).to(tl.int64)
    last = tl.maximum(tl.load(lengths + b), 1) - 1
    tag = tl.arange(0, width)
    real = tag < size
    first = b * time * size
    grad_transposed += b * (size + 2) * size
    moves = load_pairs(transposed, size, width, source=1)
    factor = tl.load(weight)
    expected = tl.zeros([width, width], moves.dtype)
    closing = tl.load(transposed + (size + 1) * size + tag, mask=real, other=float("-inf"))
    closing += tl.load(steps + 3 * (first + last * size) + tag, mask=real, other=0)
    m = tl.exp(closing - tl.max(closing, 0))
    m /= tl.sum(m, 0)
    tl.store(grad_transposed + (size + 1) * size + tag, factor * m, mask=real)
    for step in tl.range(0, last, num_stages=PREFETCH):
        place = first + (last - step) * size
        tl.store(grad_scores + place + tag, factor * m, mask=real)
        alpha = tl.load(steps + 3 * (place - size) + tag, mask=real, other=0)
        # inf at padded tags, where 0 * exp(...) must be 0
        largest = tl.load(steps + 3 * place + size + tag, mask=real, other=float("inf"))
        ratio = m * tl.load(steps + 3 * place + 2 * size + tag, mask=real, other=0)
        joint = ratio[:, None] * tl.exp(alpha[None, :] + moves - largest[:, None])
        m = tl.sum(joint, 0)
        expected += joint
    tl.store(grad_scores + first + tag, factor * m, mask=real)
    tl.store(grad_transposed + size * size + tag, factor * m, mask=real)
    cell = tag[:, None] * size + tag[None, :]
    tl.store(grad_transposed + cell, factor * expected, mask=real[:, None] & real[None, :])
    if tags is not None:
        tl.debug_barrier()  # threads add to what others have stored
        subtract_tags(factor, tags + b * time, last + 1, grad_scores + first, grad_transposed, size)


@triton.jit(do_not_specialize=["time"])
@no_type_check
def viterbi(
    scores,
    lengths,
    transitions,
    best,
    tags,
    time,
    size: tl.constexpr,
    width: tl.constexpr,
    rescaled: tl.constexpr = RESCALED,
):
    """Best tags; one tag for a sentence without tokens.

    Stores no back-pointers: the backward pass repeats the argmax for the tags of the path only.
    """
    b = tl.program_id(0).to(tl.int64)
    length = tl.maximum(tl.load(lengths + b), 1)
    column = tl.arange(0, width)
    real = column < size
    place = b * time * size + column
    moves = load_pairs(transitions, size, width, source=0)
    now, _ = load_centered(scores + place, real)
    reached = tl.load(transitions + size * size + column, mask=real, other=0) + now
    for t in tl.range(1, length, num_stages=PREFETCH):
        now, _ = load_centered(scores + place + t * size, real)
        tl.store(best + place + (t - 1) * size, reached, mask=real)
        reached = tl.max(reached[:, None] + moves, 0) + now
        if t % rescaled == rescaled - 1:
            reached -= tl.max(tl.where(real, reached, float("-inf")), 0)
    closing = tl.load(transitions + (size + 1) * size + column, mask=real, other=float("-inf"))
    tag = tl.argmax(reached + closing, 0)
    tl.store(tags + b * time + length - 1, tag)
    tl.debug_barrier()  # threads read what others have stored
    place += (length - 2) * size
    following = tl.load(best + place, mask=column < tl.where(length > 1, size, 0), other=float("-inf"))
    for step in range(1, length):
        reached = following  # prefetched by hand: `tl.range` does not pipeline loads that depend on the tag
        place -= size
        following = tl.load(
            best + place, mask=column < tl.where(step + 1 < length, size, 0), other=float("-inf")
        )
        tag = tl.minimum(tag, size - 1)  # comparisons with NaN are false, and may select a padded tag
        tag = tl.argmax(reached + tl.load(transitions + column * size + tag, mask=real, other=0), 0)
        tl.store(tags + b * time + length - 1 - step, tag)
