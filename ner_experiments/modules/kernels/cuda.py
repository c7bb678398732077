"""Runs Triton kernels on CUDA tensors: those of the CRF, and of the LSTMs' units.

Triton, which PyTorch brings along where it runs on CUDA, is imported, and the kernels are compiled, on first use.
Nothing here waits for the device, which must not be asked what tags and masks hold. What the CPU kernels refuse with
an error gives NaN here: the loss of tags that do not exist, or of a sentence without tokens. Nothing is read or
written out of bounds.
"""

import functools
import importlib
import logging
import subprocess
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

log = logging.getLogger(__name__)


@functools.cache
def have_triton() -> bool:
    """Triton compiles what starts its kernels with the system's C compiler, when the driver is first used."""
    try:
        importlib.import_module("triton").runtime.driver.active.get_current_device()
    except (ImportError, OSError, RuntimeError, subprocess.CalledProcessError) as error:
        log.warning(
            "the CRF and the LSTM units do without CUDA kernels, and are many times slower: %s", error
        )
        return False
    return True


@functools.cache
def shared_memory(device: int) -> int:
    """How many bytes of it a program may have."""
    driver = importlib.import_module("triton").runtime.driver.active
    return int(driver.utils.get_device_properties(device)["max_shared_mem"])


MOST_TAGS = 128
"""The square of it, twice, is what fits in a program's registers."""


@functools.cache
def crf_kernels() -> Any:
    return importlib.import_module("ner_experiments.modules.kernels.crf_triton")


def crf_serves(scores: Tensor) -> bool:
    return scores.is_cuda and scores.shape[2] <= MOST_TAGS and have_triton()


def forward(
    scores: Float[Tensor, "batch time tags"],
    tags: Int[Tensor, "batch time"] | None,
    mask: Bool[Tensor, "batch time"],
    *transitions: Tensor,
    keep: bool,
) -> tuple[Float[Tensor, " batch"], Float[Tensor, "batch time 3 tags"] | None]:
    """Each sentence's log Z, less the score of its tags, in float64; and what `backward` needs, if kept."""
    batch, time, size = scores.shape
    losses = scores.new_empty(batch, dtype=torch.float64)
    steps = scores.new_empty(batch, time, 3, size) if keep else None
    inputs = (scores.contiguous(), contiguous(tags), lengths(mask), stacked(*transitions))
    launch_crf(crf_kernels().forward, scores, *inputs, losses, steps)
    return losses, steps


def backward(
    weight: Float[Tensor, ""],
    tags: Int[Tensor, "batch time"] | None,
    mask: Bool[Tensor, "batch time"],
    steps: Float[Tensor, "batch time 3 tags"],
    *transitions: Tensor,
) -> list[Tensor]:
    """The gradient of the weighted sum of the losses by scores, start, pairs and end."""
    batch, time, _, size = steps.shape
    start, pairs, end = transitions
    by_scores = steps.new_zeros(batch, time, size)
    by_transitions = steps.new_empty(batch, size + 2, size)
    inputs = (weight, contiguous(tags), lengths(mask), stacked(start, pairs.t(), end), steps)
    launch_crf(crf_kernels().backward, by_scores, *inputs, by_scores, by_transitions)
    found = by_transitions.sum(0)
    return [by_scores, found[size], found[:size].t(), found[size + 1]]


def marginals(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], *transitions: Tensor
) -> Float[Tensor, "batch time tags"]:
    """p(y_i = tag), 0 at padding: the gradient of log Z."""
    _, steps = forward(scores, None, mask, *transitions, keep=True)
    assert steps is not None
    return backward(scores.new_ones(()), None, mask, steps, *transitions)[0]


def viterbi(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], *transitions: Tensor
) -> Int[Tensor, "batch time"]:
    tags = torch.empty(mask.shape, dtype=torch.long, device=mask.device)
    inputs = (scores.contiguous(), lengths(mask), stacked(*transitions))
    launch_crf(crf_kernels().viterbi, scores, *inputs, torch.empty_like(inputs[0]), tags)
    return tags.masked_fill_(~mask, 0)


def lengths(mask: Bool[Tensor, "batch time"]) -> Int[Tensor, " batch"]:
    return mask.sum(1, dtype=torch.int32)


def contiguous(tags: Tensor | None) -> Tensor | None:
    return None if tags is None else tags.contiguous()


def stacked(
    start: Float[Tensor, " tags"], pairs: Float[Tensor, "tags tags"], end: Float[Tensor, " tags"]
) -> Float[Tensor, "rows tags"]:
    return torch.cat([pairs, start[None], end[None]])


def launch_crf(kernel: Any, like: Float[Tensor, "batch time tags"], *args: Tensor | None) -> None:
    """A program for each sentence, with a thread for each 32 pairs of tags."""
    batch, time, size = like.shape
    width = max(16, 1 << (size - 1).bit_length())
    with torch.cuda.device(like.get_device()):
        kernel[(batch,)](*args, time, size=size, width=width, num_warps=max(1, width**2 // 1024))


BLOCK = 16


@functools.cache
def lstm_kernels() -> Any:
    return importlib.import_module("ner_experiments.modules.kernels.lstm_triton")


def lstm_serves(gates: Tensor, weights: Tensor) -> bool:
    """Units up to size 64 on a GPU of a data centre, in float32 at least, and up to 32 on any."""
    if not gates.is_cuda or not have_triton():
        return False
    return needed(padded(weights.shape[-1]), weights.dtype) <= shared_memory(gates.get_device())


def needed(width: int, dtype: torch.dtype) -> int:
    """Bytes of shared memory, at most: four matrices, in two parts each, and the state."""
    return width**2 * (36 if dtype == torch.float32 else 53)


def padded(size: int) -> int:
    return max(16, 1 << (size - 1).bit_length())


def steps(
    gates: Float[Tensor, "directions batch time units gates"],
    weights: Float[Tensor, "directions units gates size"],
    peepholes: Float[Tensor, "directions units 3 size"] | None,
    mask: Float[Tensor, "directions units batch size"] | None,
    lengths: Int[Tensor, " batch"],
) -> Float[Tensor, "directions batch time units size"]:
    """The states h of LSTMs from what their input gives the gates; 0 at padding.

    Direction 0 reads from left to right, direction 1 from each sentence's last token to its first. The
    weights read h_{t-1} * mask. Of the peepholes, the input and the forget gate's see c_{t-1}, the output
    gate's sees c_t. The gates' columns, and the weights' rows, are i f g o. Computes in the weights' type.
    """
    directions, units, _, size = weights.shape
    if peepholes is None:
        diagonals = weights.new_zeros(directions, units, 4, size)
    else:
        i, f, o = peepholes.unbind(2)
        diagonals = torch.stack([i, f, torch.zeros_like(i), o], dim=2)
    if mask is None:
        mask = weights.new_ones(directions, units, len(lengths), size)
    inputs = (gates.to(weights.dtype), weights, diagonals, mask, lengths)
    return cast(Tensor, _Steps.apply(*(x.contiguous() for x in inputs)))  # type: ignore[no-untyped-call]


class _Steps(torch.autograd.Function):
    """Its backward pass finds the gates' gradients step by step, and all others as sums over all tokens."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weights: Tensor, *others: Tensor) -> Tensor:
        h = gates.new_zeros(*gates.shape[:4], weights.shape[3])
        acts = gates.new_zeros(*h.shape[:4], 5, h.shape[4])
        launch_lstm(lstm_kernels().forward, gates, weights, *others, h, acts)
        ctx.save_for_backward(weights, *others, h, acts)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_states: Tensor) -> tuple[Tensor | None, ...]:
        weights, peepholes, mask, lengths, h, acts = ctx.saved_tensors
        by_gates = h.new_zeros(*h.shape[:4], 4, h.shape[4])
        inputs = (by_states.contiguous(), weights, peepholes, mask, lengths, acts, by_gates)
        launch_lstm(lstm_kernels().backward, *inputs)
        c = acts[..., 4, :]
        seen = torch.stack([before(c), before(c), torch.zeros_like(c), c], dim=4)
        by_peepholes = (by_gates * seen).sum((1, 2))
        read = before(h) * mask.transpose(1, 2).unsqueeze(2)
        by_weights = torch.einsum("dbtugo,dbtui->dugoi", by_gates, read)
        return by_gates.flatten(4), by_weights.flatten(2, 3), by_peepholes, None, None


def before(
    x: Float[Tensor, "directions batch time units size"],
) -> Float[Tensor, "directions batch time units size"]:
    """What each direction had at the token that it read before; 0 at its first, as x is at padding."""
    found = torch.zeros_like(x)
    found[:1, :, 1:] = x[:1, :, :-1]
    found[1:, :, :-1] = x[1:, :, 1:]
    return found


def launch_lstm(kernel: Any, states: Tensor, weights: Tensor, *args: Tensor) -> None:
    """A program for each unit of each direction and `BLOCK` sentences; `states` tells how many there are."""
    directions, batch, time, units = states.shape[:4]
    size = weights.shape[3]
    width = padded(size)
    grid = (-(-batch // BLOCK), directions * units)
    with torch.cuda.device(states.get_device()):
        kernel[grid](
            states,
            weights,
            *args,
            batch,
            time,
            units,
            size=size,
            width=width,
            num_warps=width // 8,
            num_stages=1,
        )
