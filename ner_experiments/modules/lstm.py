"""Parallel LSTM units in one or both directions, with or without peepholes: `lstm_states`.

There are five ways to compute the states, which agree up to rounding; `fastest` chooses.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ner_experiments.modules.kernels import cpu, cuda
from ner_experiments.modules.kernels.cpu import Tokens
from ner_experiments.utils.machine import has_avx512

# said by cuDNN of units, whose weights are one tensor: it copies them
warnings.filterwarnings("ignore", "RNN module weights are not part of single contiguous chunk of memory")


class Weights(NamedTuple):
    """U (input), W (recurrent), b: i, f, o = sigmoid(W h_{t-1} + U x_t + b), g = tanh(W h_{t-1} + U x_t + b).

    Rows are the gates in PyTorch's order, i f g o.
    """

    input: Float[Tensor, "directions units gates in"]
    recurrent: Float[Tensor, "directions units gates size"]
    biases: Float[Tensor, "directions units gates"]
    peepholes: Float[Tensor, "directions units 3 size"] | None = None
    """Diagonal weights from c_{t-1} to i and f, and from c_t to o."""


def lstm_states(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    *,
    backwards: tuple[bool, ...],
    masks: Float[Tensor, "directions units batch size"] | None = None,
) -> Float[Tensor, "directions batch time units size"]:
    """States h, with h_0 = c_0 = 0 and h_{t-1} multiplied by the mask wherever W reads it.

    `x` holds one input per direction, or one that all directions share. A backward direction starts at each sentence's
    last token; its states are stored at the positions of their tokens. States at padding are finite and undefined.
    """
    return fastest(x, lengths, weights, backwards, masks)(x, lengths, weights, backwards, masks)


def fastest(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    backwards: tuple[bool, ...],
    masks: Float[Tensor, "directions units batch size"] | None,
) -> Callable[..., Float[Tensor, "directions batch time units size"]]:
    """The fastest of the functions below that computes this; on a GPU without waiting for it."""
    # under autocast, the stock loop would round the states at every step
    stock = masks is None and weights.peepholes is None and not torch.is_autocast_enabled(x.device.type)
    if stock and onednn_is_faster(x, lengths, weights, backwards):
        return stock_states
    if cpu.supports_lstm(x):
        return numba_states
    if cuda.supports_lstm(weights.recurrent, False):
        return triton_states
    if stock and x.is_cuda:
        return stock_states
    if cuda.supports_lstm(weights.recurrent, True):
        return partial(triton_states, by_step=True)
    return loop_states


class Bounds(NamedTuple):
    """Thresholds above which oneDNN is faster than the numba kernels with AVX-512. With AVX2 it hardly ever is."""

    token_share: float
    """Share of real tokens in the batch: oneDNN computes padding too."""
    size: int
    """Size of a unit: oneDNN runs units one after another, the kernels run them together."""
    size_without_padding: int
    """The same where oneDNN needs no reversed copy of the sentences (`reads_both`)."""


TRAINING, DECODING = Bounds(0.9, 256, 128), Bounds(0.8, 64, 64)


def onednn_is_faster(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    backwards: tuple[bool, ...],
) -> bool:
    """Whether oneDNN's LSTM computes units without masks and peepholes faster than the numba kernels."""
    size = weights.recurrent.shape[-1]
    if size < bounds().size_without_padding or not cpu.supports_lstm(x) or not padding_is_cheap(x, lengths):
        return False
    return size >= bounds().size or reads_both(x, lengths, backwards)


def padding_is_cheap(x: Float[Tensor, "*inputs batch time in"], lengths: Int[Tensor, " batch"]) -> bool:
    """Whether oneDNN, which computes padding too, is faster than the numba kernels for a single unit.

    With AVX-512 it is if the share of real tokens exceeds the threshold `token_share`.
    """
    return has_avx512() and bool(lengths.sum() > bounds().token_share * x.shape[-3] * x.shape[-2])


def reads_both(
    x: Float[Tensor, "inputs batch time in"], lengths: Int[Tensor, " batch"], backwards: tuple[bool, ...]
) -> bool:
    """Whether oneDNN can read an input in both directions itself: one input for both, without padding.

    On a GPU this is not known without waiting for it.
    """
    return x.is_cpu and len(x) == 1 and backwards == (False, True) and bool((lengths == x.shape[2]).all())


def bounds() -> Bounds:
    """Thresholds for training if gradients are enabled, else for decoding."""
    return TRAINING if torch.is_grad_enabled() else DECODING


def stock_states(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    backwards: tuple[bool, ...],
    masks: None = None,
) -> Float[Tensor, "directions batch time units size"]:
    """States computed by the function behind `nn.LSTM`, thus by oneDNN or cuDNN: unit by unit, two biases per gate."""
    directions, units, rows, size = weights.recurrent.shape
    both = reads_both(x, lengths, backwards)
    if not both:
        x = reverse_directions(x.expand(directions, -1, -1, -1)[..., None, :], lengths, backwards)[..., 0, :]
    no_bias, start = weights.biases.new_zeros(rows), x.new_zeros(1 + both, len(lengths), size)
    # unbind: the gradient of weights[d, k] would have the size of weights, for each unit
    unit_weights = [
        (*parts, no_bias)
        for parts in zip(*(part.flatten(0, 1).unbind() for part in weights[:3]), strict=True)
    ]

    def read(x: Tensor, *parts: Tensor) -> Tensor:
        return torch.lstm(x, (start, start), parts, True, 1, 0.0, torch.is_grad_enabled(), both, True)[0]

    states = []
    for unit in range(units):
        parts = unit_weights[unit::units]
        if both:
            states.append(read(x[0], *parts[0], *parts[1]))
        else:
            for each, own, back in zip(x, parts, backwards, strict=True):
                states.append(reverse(read(each, *own), lengths) if back else read(each, *own))
    together = torch.stack(states, dim=2)
    return together.view(*together.shape[:2], units, directions, size).movedim(3, 0)


def numba_states(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    backwards: tuple[bool, ...],
    masks: Float[Tensor, "directions units batch size"] | None,
) -> Float[Tensor, "directions batch time units size"]:
    """States computed by the numba kernels, from the tokens without padding."""
    _, units, _, size = weights.recurrent.shape
    tokens = Tokens(lengths, x.shape[2], backwards)
    blocks = cpu.num_blocks(units, size)
    input_weights, biases = (in_blocks(part, blocks) for part in (weights.input, weights.biases))
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
    states = cpu.lstm_states(
        x,
        input_weights.to(dtype),
        biases.to(dtype),
        weights.recurrent,
        tokens,
        peepholes=None if weights.peepholes is None else weights.peepholes.transpose(1, 2).flatten(2),
        masks=None if masks is None else masks.transpose(1, 2).flatten(2),
    )
    return states.view(*states.shape[:3], units, size)


def in_blocks(
    weights: Float[Tensor, "directions units gates *in"], blocks: int
) -> Float[Tensor, "blocks gates_of_block *in"]:
    """Rows of weights or biases by block of units: within a block gate by gate (i f g o), each for all units."""
    directions, units, rows, *size = weights.shape
    gates = weights.view(directions, blocks, units // blocks, 4, rows // 4, *size).transpose(2, 3)
    return gates.reshape(directions * blocks, -1, *size)


def triton_states(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    backwards: tuple[bool, ...],
    masks: Float[Tensor, "directions units batch size"] | None,
    *,
    by_step: bool = False,
) -> Float[Tensor, "directions batch time units size"]:
    """States computed by the Triton kernels, which read a second direction backward themselves."""
    parts = (weights.recurrent, weights.peepholes, masks, lengths)
    reversed_before = (False, False) if len(weights.recurrent) == 2 else backwards
    return padded_states(
        x, lengths, weights, reversed_before, lambda gates: cuda.lstm_states(gates, *parts, by_step=by_step)
    )


def loop_states(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    backwards: tuple[bool, ...],
    masks: Float[Tensor, "directions units batch size"] | None,
) -> Float[Tensor, "directions batch time units size"]:
    """States computed by a loop in PyTorch."""
    return padded_states(x, lengths, weights, backwards, lambda gates: recurrence(gates, weights, masks))


def padded_states(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    backwards: tuple[bool, ...],
    recur: Callable[[Tensor], Tensor],
) -> Float[Tensor, "directions batch time units size"]:
    """States that `recur` computes, from left to right, from the gates of padded sentences."""
    gates = reverse_directions(input_gates(x, weights), lengths, backwards)
    with torch.autocast(x.device.type, enabled=False):  # it would round the states at every step
        return reverse_directions(recur(gates), lengths, backwards)


def input_gates(
    x: Float[Tensor, "inputs batch time in"], weights: Weights
) -> Float[Tensor, "directions batch time units gates"]:
    """Input part of the gates, U x_t + b, in the precision of the states."""
    directions, units, rows, _ = weights.input.shape
    x = x.expand(directions, -1, -1, -1)
    gates = torch.baddbmm(weights.biases.flatten(1)[:, None], x.flatten(1, 2), weights.input.flatten(1, 2).mT)
    return gates.view(*x.shape[:3], units, rows).to(weights.recurrent.dtype)


def recurrence(
    gates: Float[Tensor, "directions batch time units gates"],
    weights: Weights,
    masks: Float[Tensor, "directions units batch size"] | None,
) -> Float[Tensor, "directions batch time units size"]:
    """States of all units from left to right, padding included: one batched product per time step."""
    directions, batch, _, units, _ = gates.shape
    matrices = weights.recurrent.flatten(0, 1).mT
    peepholes = None if weights.peepholes is None else weights.peepholes.flatten(0, 1)[:, :, None].unbind(1)
    mask = None if masks is None else masks.flatten(0, 1)
    h = c = gates.new_zeros(directions * units, batch, matrices.shape[1])
    states = []
    # unbind: the gradient of gates[:, :, t] would have the size of gates, at each step
    for now in gates.unbind(2):
        read = h if mask is None else h * mask
        i, f, g, o = torch.baddbmm(now.transpose(1, 2).flatten(0, 1), read, matrices).chunk(4, dim=-1)
        if peepholes:
            i, f = i + peepholes[0] * c, f + peepholes[1] * c
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        if peepholes:
            o = o + peepholes[2] * c
        h = o.sigmoid() * c.tanh()
        states.append(h.view(directions, units, batch, -1).transpose(1, 2))
    return torch.stack(states, dim=2)


def reverse_directions(
    x: Float[Tensor, "directions batch time units size"],
    lengths: Int[Tensor, " batch"],
    backwards: tuple[bool, ...],
) -> Float[Tensor, "directions batch time units size"]:
    """x with the sentences of backward directions reversed."""
    if not any(backwards):
        return x
    sentences = (
        reverse(each.flatten(2), lengths).view_as(each) if back else each
        for each, back in zip(x, backwards, strict=True)
    )
    return torch.stack(list(sentences))


def reverse(
    x: Float[Tensor, "batch time size"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch time size"]:
    """Each sentence reversed, with padding left in place; its own inverse."""
    batch, time, size = x.shape
    position = torch.arange(time, device=x.device)
    mirrored = lengths[:, None] - 1 - position
    position = torch.where(mirrored < 0, position, mirrored)
    row = position + time * torch.arange(batch, device=x.device)[:, None]
    # index_select copies rows; torch.gather copies single numbers, five times slower on a CPU
    return x.reshape(batch * time, size).index_select(0, row.flatten()).view_as(x)
