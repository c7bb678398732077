"""Launches the Triton kernels on CUDA tensors: CRF likelihood and Viterbi, and the recurrence of LSTM units.

Triton, a dependency of PyTorch's CUDA builds, is imported, and the kernels are compiled, on first use. Nothing here
synchronizes with the device, so values of tags and masks cannot be checked. Where the CPU kernels raise an error, the
loss is NaN here: for tags out of range, sentences without tokens, and tokens after padding. Nothing is read or written
out of bounds.
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

from ner_experiments.modules.kernels.trial import works

log = logging.getLogger(__name__)


MOST_TAGS = 128
"""Two matrices of this size fit in a program's registers."""


BLOCK = 16
"""Sentences per program: `lstm_triton.BLOCK`, here too because that module needs Triton."""
STEP_WIDTH = 32
"""States of a unit per program where a launch is one time step: few, so that there are enough programs."""


def supports_crf(scores: Tensor) -> bool:
    if not (scores.is_cuda and scores.shape[2] <= MOST_TAGS and have_triton()):
        return False
    return works("CRF", try_crf, scores.dtype, scores.shape[2], scores.device)


def forward(
    scores: Float[Tensor, "batch time tags"],
    tags: Int[Tensor, "batch time"] | None,
    mask: Bool[Tensor, "batch time"],
    *transitions: Tensor,
    save: bool,
) -> tuple[Float[Tensor, " batch"], Float[Tensor, "batch time 3 tags"] | None]:
    """log Z minus the score of the tags, per sentence and in float64; and the steps for `backward`, if `save`."""
    batch, time, size = scores.shape
    losses = scores.new_empty(batch, dtype=torch.float64)
    steps = scores.new_empty(batch, time, 3, size) if save else None
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
    """Gradients of weight * sum of the losses with respect to scores, start, pairs and end."""
    batch, time, _, size = steps.shape
    start, pairs, end = transitions
    grad_scores = steps.new_zeros(batch, time, size)
    grad_transitions = steps.new_empty(batch, size + 2, size)
    inputs = (weight, contiguous(tags), lengths(mask), stacked(start, pairs.t(), end), steps)
    launch_crf(crf_kernels().backward, grad_scores, *inputs, grad_scores, grad_transitions)
    total = grad_transitions.sum(0)
    return [grad_scores, total[size], total[:size].t(), total[size + 1]]


def marginals(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], *transitions: Tensor
) -> Float[Tensor, "batch time tags"]:
    """p(y_i = tag), 0 at padding: the gradient of log Z."""
    _, steps = forward(scores, None, mask, *transitions, save=True)
    assert steps is not None
    return backward(scores.new_ones(()), None, mask, steps, *transitions)[0]


def viterbi(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], *transitions: Tensor
) -> Int[Tensor, "batch time"]:
    """Best tags, 0 at padding."""
    tags = torch.empty(mask.shape, dtype=torch.long, device=mask.device)
    inputs = (scores.contiguous(), lengths(mask), stacked(*transitions))
    launch_crf(crf_kernels().viterbi, scores, *inputs, torch.empty_like(inputs[0]), tags)
    return tags.masked_fill_(~mask, 0)


def lengths(mask: Bool[Tensor, "batch time"]) -> Int[Tensor, " batch"]:
    """Number of tokens per sentence; 0, for which the loss is NaN, where real tokens follow padding."""
    return mask.sum(1, dtype=torch.int32) * (mask[:, 1:] <= mask[:, :-1]).all(1)


def contiguous(tags: Tensor | None) -> Tensor | None:
    return None if tags is None else tags.contiguous()


def stacked(
    start: Float[Tensor, " tags"], pairs: Float[Tensor, "tags tags"], end: Float[Tensor, " tags"]
) -> Float[Tensor, "rows tags"]:
    """All transitions in one matrix, in the layout that the kernels read: pairs, start, end."""
    return torch.cat([pairs, start[None], end[None]])


def launch_crf(kernel: Any, like: Float[Tensor, "batch time tags"], *args: Tensor | None) -> None:
    """Launch one program per sentence, with one thread per 32 pairs of tags."""
    batch, time, size = like.shape
    width = max(16, 1 << (size - 1).bit_length())
    with torch.cuda.device(like.get_device()):
        kernel[(batch,)](*args, time, size=size, width=width, num_warps=max(1, width**2 // 1024))


def supports_lstm(weights: Tensor, by_step: bool) -> bool:
    """Whether kernels can compute the recurrence of units with these weights, by step or in one launch.

    In one launch a unit must fit in shared memory: size 64 in float32 on data-center GPUs, size 32 on any GPU.
    """
    if not weights.is_cuda or not have_triton():
        return False
    size, dtype = weights.shape[-1], weights.dtype
    fits = by_step or shared_memory_needed(padded(size), dtype) <= shared_memory(weights.get_device())
    return fits and works("LSTM units", try_lstm, dtype, size, weights.device, by_step)


def shared_memory_needed(width: int, dtype: torch.dtype) -> int:
    """Upper bound in bytes: four matrices in two parts each, and the state."""
    return width**2 * (36 if dtype == torch.float32 else 53)


def padded(size: int) -> int:
    return max(16, 1 << (size - 1).bit_length())


def lstm_states(
    gates: Float[Tensor, "directions batch time units gates"],
    weights: Float[Tensor, "directions units gates size"],
    peepholes: Float[Tensor, "directions units 3 size"] | None,
    mask: Float[Tensor, "directions units batch size"] | None,
    lengths: Int[Tensor, " batch"],
    *,
    by_step: bool,
) -> Float[Tensor, "directions batch time units size"]:
    """States h of LSTMs from the input part of their gates; 0 at padding.

    Direction 0 reads from left to right, direction 1 from each sentence's last token to its first. The weights read
    h_{t-1} * mask. Peepholes of i and f read c_{t-1}, that of o reads c_t. The columns of the gates and the rows of
    the weights are i f g o. Computes in the type of the weights.

    by_step: a product and a kernel for each time step, for units of any size, in place of one kernel for all steps.
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
    return cast(Tensor, _Recurrence.apply(by_step, *(x.contiguous() for x in inputs)))  # type: ignore[no-untyped-call]


class _Recurrence(torch.autograd.Function):
    """`lstm_states` and its gradient.

    The backward kernels compute the gradients of the gates step by step. All others are sums over tokens, in PyTorch.
    """

    @staticmethod
    def forward(ctx: Any, by_step: bool, gates: Tensor, weights: Tensor, *others: Tensor) -> Tensor:
        h = gates.new_zeros(*gates.shape[:4], weights.shape[3])
        acts = gates.new_zeros(*h.shape[:4], 5, h.shape[4])
        if by_step:
            forward_by_step(weights, gates, *others, h, acts)
        else:
            launch_whole(lstm_kernels().forward, gates, weights, *others, h, acts)
        ctx.by_step = by_step
        ctx.save_for_backward(weights, *others, h, acts)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_states: Tensor) -> tuple[Tensor | None, ...]:
        weights, peepholes, mask, lengths, h, acts = ctx.saved_tensors
        grad_gates = h.new_zeros(*h.shape[:4], 4, h.shape[4])
        others = (peepholes, mask, lengths, acts, grad_gates)
        if ctx.by_step:
            backward_by_step(weights, grad_states.contiguous(), *others)
        else:
            launch_whole(lstm_kernels().backward, grad_states.contiguous(), weights, *others)
        c = acts[..., 4, :]
        peephole_inputs = torch.stack([previous(c), previous(c), torch.zeros_like(c), c], dim=4)
        grad_peepholes = (grad_gates * peephole_inputs).sum((1, 2))
        recurrent_input = previous(h) * mask.transpose(1, 2).unsqueeze(2)
        grad_weights = torch.einsum("dbtugo,dbtui->dugoi", grad_gates, recurrent_input)
        return None, grad_gates.flatten(4), grad_weights.flatten(2, 3), grad_peepholes, None, None


def previous(
    x: Float[Tensor, "directions batch time units size"],
) -> Float[Tensor, "directions batch time units size"]:
    """x at the token that each direction read before; 0 at its first token, because x is 0 at padding."""
    shifted = torch.zeros_like(x)
    shifted[:1, :, 1:] = x[:1, :, :-1]
    shifted[1:, :, :-1] = x[1:, :, 1:]
    return shifted


def forward_by_step(weights: Tensor, *tensors: Tensor) -> None:
    """`lstm_triton.forward` by a product of all units and a kernel per time step."""
    kernel, batch, time = lstm_kernels().forward_step, *tensors[0].shape[1:3]
    units, rows, size = weights.flatten(0, 1).shape
    products, read = weights.new_zeros(units, batch, rows), weights.new_zeros(units, batch, size)
    for t in range(time):
        if t > 0:  # h_0 = 0
            torch.bmm(read, weights.flatten(0, 1).mT, out=products)
        launch_step(kernel, t, weights, products, read, *tensors)


def backward_by_step(weights: Tensor, *tensors: Tensor) -> None:
    """`lstm_triton.backward` by a product of all units and a kernel per time step."""
    kernel, batch, time = lstm_kernels().backward_step, *tensors[0].shape[1:3]
    units, rows, size = weights.flatten(0, 1).shape
    passed, cells = (weights.new_zeros(units, batch, size) for _ in range(2))
    now = weights.new_zeros(units, batch, rows)
    for t in reversed(range(time)):
        launch_step(kernel, t, weights, passed, cells, now, *tensors)
        if t > 0:
            torch.bmm(now, weights.flatten(0, 1), out=passed)


def launch_whole(kernel: Any, states: Tensor, weights: Tensor, *args: Tensor) -> None:
    """Launch one program per direction, unit and `BLOCK` sentences of `states`, for all time steps."""
    directions, batch, time, units = states.shape[:4]
    size = weights.shape[3]
    width = padded(size)
    grid = (-(-batch // BLOCK), directions * units)
    sizes = {"size": size, "width": width, "num_warps": width // 8, "num_stages": 1}
    launch_lstm(kernel, grid, states, weights, *args, batch, time, units, **sizes)


def launch_step(kernel: Any, t: int, weights: Tensor, *args: Tensor) -> None:
    """Launch one program per direction, unit, `BLOCK` sentences and `STEP_WIDTH` states of a unit, for time step t."""
    directions, units, _, size = weights.shape
    batch, time = args[-1].shape[1:3]
    grid = (-(-batch // BLOCK), directions * units, -(-size // STEP_WIDTH))
    launch_lstm(kernel, grid, *args, t, batch, time, units, size, width=STEP_WIDTH)


def launch_lstm(kernel: Any, grid: tuple[int, ...], *args: Any, **sizes: int) -> None:
    with torch.cuda.device(args[0].get_device()):
        kernel[grid](*args, **sizes)


def try_crf(dtype: torch.dtype, size: int, device: torch.device) -> None:
    """Launch the kernels of the CRF, which compiles them, on one token."""
    with device:
        scores, tags = torch.zeros(1, 1, size, dtype=dtype), torch.zeros(1, 1, dtype=torch.long)
        mask, pairs = torch.ones(1, 1, dtype=torch.bool), torch.zeros(size, size, dtype=dtype)
        transitions = (pairs[0], pairs, pairs[0])
        _, steps = forward(scores, tags, mask, *transitions, save=True)
        assert steps is not None
        backward(scores.new_ones(()), tags, mask, steps, *transitions)
        viterbi(scores, mask, *transitions)


def try_lstm(dtype: torch.dtype, size: int, device: torch.device, by_step: bool) -> None:
    """Launch the kernels of LSTM units, which compiles them, on one token."""
    with device:
        shapes = [(1, 1, 1, 1, 4 * size), (1, 1, 4 * size, size)]
        gates, weights = (torch.zeros(*shape, dtype=dtype, requires_grad=True) for shape in shapes)
        states = lstm_states(gates, weights, None, None, torch.ones(1, dtype=torch.long), by_step=by_step)
        torch.autograd.grad(states.sum(), [gates, weights])


@functools.cache
def have_triton() -> bool:
    """Whether kernels can be launched: Triton compiles its launcher with the system's C compiler on first use."""
    try:
        importlib.import_module("triton").runtime.driver.active.get_current_device()
    except (ImportError, OSError, RuntimeError, subprocess.CalledProcessError) as error:
        log.warning(
            "the CRF and the LSTM units run without CUDA kernels, and are many times slower: %s", error
        )
        return False
    return True


@functools.cache
def shared_memory(device: int) -> int:
    """Bytes of shared memory available to a program."""
    driver = importlib.import_module("triton").runtime.driver.active
    return int(driver.utils.get_device_properties(device)["max_shared_mem"])


@functools.cache
def crf_kernels() -> Any:
    from ner_experiments.modules.kernels import crf_triton

    return crf_triton


@functools.cache
def lstm_kernels() -> Any:
    from ner_experiments.modules.kernels import lstm_triton

    return lstm_triton
