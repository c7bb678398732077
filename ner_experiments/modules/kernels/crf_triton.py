"""The CRF's forward-backward and Viterbi algorithms as Triton kernels; `crf_cuda` runs them.

A program takes one sentence and stops at its end. It holds the transitions in registers, `width` x `width`
with a power of two, and on the way back what is expected of them. Padded tags can be reached, which keeps all
numbers finite, but lead nowhere. All is in log space and in the type of the scores, but for what adds up over
a sentence, which is in float64. Of `transitions`, row `size` opens a sentence and the one below closes it.
"""

from typing import no_type_check

import triton
import triton.language as tl

AHEAD = tl.constexpr(3)
"""Memory is slower than a step: what this one needs was asked for two steps before."""


@triton.jit
@no_type_check
def read_pairs(pairs, size: tl.constexpr, width: tl.constexpr, lead: tl.constexpr):
    """Those that lead from a padded tag are -inf; `lead` is the axis of the tag that they lead from."""
    tag = tl.arange(0, width)
    row, column = tag[:, None], tag[None, :]
    moves = tl.load(pairs + row * size + column, mask=(row < size) & (column < size), other=0)
    return tl.where(tl.expand_dims(tag, 1 - lead) < size, moves, float("-inf"))


@triton.jit
@no_type_check
def read_centred(scores, real):
    """A token's scores less the largest of them, 0 where they are padded; and the largest."""
    found = tl.load(scores, mask=real, other=float("-inf"))
    largest = tl.max(found, 0)
    return tl.where(real, found - largest, 0), largest.to(tl.float64)


@triton.jit
@no_type_check
def score_of_tags(scores, tags, length, transitions, size: tl.constexpr):
    """The sum of the scores and transitions that the tags select; NaN if one of them is no tag."""
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
    """losses[b] = log Z, less the score of the tags, if there are any; NaN of a sentence without tokens.

    steps[b, t], if wanted, is three rows: log p(scores up to t, y_t), up to a constant; then by the tag that
    was come to the largest of the first row before + pairs; and 1 / the sum of exp(those less the largest).
    """
    b = tl.program_id(0).to(tl.int64)
    length = tl.maximum(tl.load(lengths + b), 1)
    tag = tl.arange(0, width)
    real = tag < size
    first = b * time * size
    moves = read_pairs(transitions, size, width, lead=0)
    now, log_z = read_centred(scores + first + tag, real)
    alpha = tl.load(transitions + size * size + tag, mask=real, other=0) + now
    if steps is not None:
        tl.store(steps + 3 * first + tag, alpha, mask=real)
    for t in tl.range(1, length, num_stages=AHEAD):
        now, top = read_centred(scores + first + t * size + tag, real)
        reached = alpha[:, None] + moves
        largest = tl.max(reached, 0)
        total = tl.sum(tl.exp(reached - largest[None, :]), 0)
        shift = tl.max(alpha, 0)  # of the step before, which need not be waited for
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
        log_z -= score_of_tags(scores + first, tags + b * time, length, transitions, size)
    tl.store(losses + b, tl.where(tl.load(lengths + b) > 0, log_z, float("nan")))


@triton.jit
@no_type_check
def subtract_tags(factor, tags, length, by_scores, by_transitions, size: tl.constexpr):
    """The gradient of `score_of_tags`. What may meet in one place is equal: its order changes no bit."""
    for first in range(0, length, 128):
        t = first + tl.arange(0, 128)
        tag = tl.load(tags + t, mask=t < length, other=-1)
        before = tl.load(tags + t - 1, mask=(t < length) & (t > 0), other=-1)
        known = (tag >= 0) & (tag < size)
        tl.atomic_add(by_scores + t * size + tag, -factor, mask=known)
        tl.atomic_add(by_transitions + size * size + tag, -factor, mask=known & (t == 0))
        tl.atomic_add(by_transitions + (size + 1) * size + tag, -factor, mask=known & (t == length - 1))
        known &= (before >= 0) & (before < size)
        tl.atomic_add(by_transitions + tag * size + before, -factor, mask=known)


@triton.jit(do_not_specialize=["time"])
@no_type_check
def backward(
    weight, tags, lengths, back, steps, by_scores, by_back, time, size: tl.constexpr, width: tl.constexpr
):
    """The gradient of weight * losses[b], from p(y_n) back along the Markov chain p(y_t | y_{t+1}).

    `back` is the transitions with its pairs transposed: sums are taken along columns, which a thread has to
    itself. by_back[b] is like it. Leaves by_scores at padding.
    """
    b = tl.program_id(0).to(tl.int64)
    last = tl.maximum(tl.load(lengths + b), 1) - 1
    tag = tl.arange(0, width)
    real = tag < size
    first = b * time * size
    by_back += b * (size + 2) * size
    moves = read_pairs(back, size, width, lead=1)
    factor = tl.load(weight)
    expected = tl.zeros([width, width], moves.dtype)
    closing = tl.load(back + (size + 1) * size + tag, mask=real, other=float("-inf"))
    closing += tl.load(steps + 3 * (first + last * size) + tag, mask=real, other=0)
    m = tl.exp(closing - tl.max(closing, 0))
    m /= tl.sum(m, 0)
    tl.store(by_back + (size + 1) * size + tag, factor * m, mask=real)
    for step in tl.range(0, last, num_stages=AHEAD):
        place = first + (last - step) * size
        tl.store(by_scores + place + tag, factor * m, mask=real)
        alpha = tl.load(steps + 3 * (place - size) + tag, mask=real, other=0)
        # inf: where padded, 0 * exp(...) is to be 0
        largest = tl.load(steps + 3 * place + size + tag, mask=real, other=float("inf"))
        ratio = m * tl.load(steps + 3 * place + 2 * size + tag, mask=real, other=0)
        joint = ratio[:, None] * tl.exp(alpha[None, :] + moves - largest[:, None])
        m = tl.sum(joint, 0)
        expected += joint
    tl.store(by_scores + first + tag, factor * m, mask=real)
    tl.store(by_back + size * size + tag, factor * m, mask=real)
    cell = tag[:, None] * size + tag[None, :]
    tl.store(by_back + cell, factor * expected, mask=real[:, None] & real[None, :])
    if tags is not None:
        tl.debug_barrier()  # one thread adds to what another has stored
        subtract_tags(factor, tags + b * time, last + 1, by_scores + first, by_back, size)


@triton.jit(do_not_specialize=["time"])
@no_type_check
def viterbi(scores, lengths, transitions, best, tags, time, size: tl.constexpr, width: tl.constexpr):
    """The best tags, of a sentence without tokens one too.

    There are no back-pointers: the way back looks for the best tag before the one that it came to, a column
    of the search that they would need.
    """
    b = tl.program_id(0).to(tl.int64)
    length = tl.maximum(tl.load(lengths + b), 1)
    column = tl.arange(0, width)
    real = column < size
    place = b * time * size + column
    moves = read_pairs(transitions, size, width, lead=0)
    now, _ = read_centred(scores + place, real)
    reached = tl.load(transitions + size * size + column, mask=real, other=0) + now
    for t in tl.range(1, length, num_stages=AHEAD):
        now, _ = read_centred(scores + place + t * size, real)
        tl.store(best + place + (t - 1) * size, reached, mask=real)
        reached = tl.max(reached[:, None] + moves, 0) + now
    closing = tl.load(transitions + (size + 1) * size + column, mask=real, other=float("-inf"))
    tag = tl.argmax(reached + closing, 0)
    tl.store(tags + b * time + length - 1, tag)
    tl.debug_barrier()  # what one thread has stored, another reads
    place += (length - 2) * size
    following = tl.load(best + place, mask=real & (length > 1), other=float("-inf"))
    for step in range(1, length):
        reached = following  # `tl.range` would not read ahead where a load has to wait for the tag
        place -= size
        following = tl.load(best + place, mask=real & (step + 1 < length), other=float("-inf"))
        tag = tl.minimum(tag, size - 1)  # NaN is compared to in vain, and may lead to a padded tag
        tag = tl.argmax(reached + tl.load(transitions + column * size + tag, mask=real, other=0), 0)
        tl.store(tags + b * time + length - 1 - step, tag)
