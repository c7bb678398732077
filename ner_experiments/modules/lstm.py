"""LSTMs that run side by side: K units in one or both directions, with or without peepholes.

On a CPU they are compiled kernels over sentences without padding (`lstm_steps`), or oneDNN's fused loop where
that is faster; on a GPU small units are Triton kernels (`lstm_cuda`); otherwise all take a time step in one
batched product. All compute the same, to rounding.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ner_experiments.modules.kernels import cpu, cuda
from ner_experiments.modules.kernels.cpu import Tokens


class Bounds(NamedTuple):
    """From where on oneDNN's kernels are faster than ours, as measured with AVX-512."""

    share: float
    """Of real tokens in a batch: theirs work on padding too."""
    size: int
    """Of a unit: they take one unit at a time, ours take all."""


TRAINING, DECODING = Bounds(0.9, 256), Bounds(0.8, 64)


class Weights(NamedTuple):
    """i, f, o = sigmoid(W h_{t-1} + U x_t + b), g = tanh(W h_{t-1} + U x_t + b); in the order i f g o."""

    input: Float[Tensor, "directions units gates in"]
    recurrent: Float[Tensor, "directions units gates size"]
    biases: Float[Tensor, "directions units gates"]
    peepholes: Float[Tensor, "directions units 3 size"] | None = None
    """From c_{t-1} to i and f, and from c_t to o."""


def reverse(
    x: Float[Tensor, "batch time size"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch time size"]:
    """Each sentence back to front, its padding where it was; its own inverse."""
    batch, time, size = x.shape
    position = torch.arange(time, device=x.device)
    mirrored = lengths[:, None] - 1 - position
    position = torch.where(mirrored < 0, position, mirrored)
    row = position + time * torch.arange(batch, device=x.device)[:, None]
    # whole rows: torch.gather reads one number at a time, five times slower on a CPU
    return x.reshape(batch * time, size).index_select(0, row.flatten()).view_as(x)


def read(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    *,
    backwards: tuple[bool, ...],
    masks: Float[Tensor, "directions units batch size"] | None = None,
) -> Float[Tensor, "directions batch time units size"]:
    """The states h from h_0 = c_0 = 0; W reads h_{t-1} times the mask.

    There is one x for each direction, or one for all of them. A direction that reads backwards begins with a
    sentence's last token; its states stand where the tokens are that they belong to. At padding they are
    finite and mean nothing.
    """
    if masks is None and stock_is_faster(x, lengths, weights):
        return stock_read(x, lengths, weights, backwards)
    if cpu.lstm_serves(x):
        return compiled_read(x, lengths, weights, backwards, masks)
    return padded_read(x, lengths, weights, backwards, masks)


def stock_is_faster(
    x: Float[Tensor, "inputs batch time in"], lengths: Int[Tensor, " batch"], weights: Weights
) -> bool:
    """Whether oneDNN's LSTM can compute this, in the weights' precision, and sooner than the kernels here."""
    if weights.peepholes is not None or weights.recurrent.shape[-1] < bounds().size:
        return False
    return cpu.lstm_serves(x) and not torch.is_autocast_enabled("cpu") and mostly_tokens(x, lengths)


def mostly_tokens(x: Float[Tensor, "*inputs batch time in"], lengths: Int[Tensor, " batch"]) -> bool:
    return bool(lengths.sum() > bounds().share * x.shape[-3] * x.shape[-2])


def bounds() -> Bounds:
    return TRAINING if torch.is_grad_enabled() else DECODING


def stock_read(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    backwards: tuple[bool, ...],
) -> Float[Tensor, "directions batch time units size"]:
    """By the function behind `nn.LSTM`, which has two biases for a gate."""
    directions, units, rows, size = weights.recurrent.shape
    x = turned(x.expand(directions, -1, -1, -1)[..., None, :], lengths, backwards)[..., 0, :]
    no_bias, start = weights.biases.new_zeros(rows), x.new_zeros(1, len(lengths), size)
    # unbind: the gradient of weights[d, k] would be as large as weights, for each unit
    of_units = [*zip(*(part.flatten(0, 1).unbind() for part in weights[:3]), strict=True)]
    states = []
    for unit in range(units):
        for direction, back in enumerate(backwards):
            parts = (*of_units[direction * units + unit], no_bias)
            train = torch.is_grad_enabled()
            h, _, _ = torch.lstm(x[direction], (start, start), parts, True, 1, 0.0, train, False, True)
            states.append(reverse(h, lengths) if back else h)
    together = torch.stack(states, dim=2)
    return together.view(*together.shape[:2], units, directions, size).movedim(3, 0)


def compiled_read(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    backwards: tuple[bool, ...],
    masks: Float[Tensor, "directions units batch size"] | None,
) -> Float[Tensor, "directions batch time units size"]:
    _, units, _, size = weights.recurrent.shape
    tokens = Tokens(lengths, x.shape[2], backwards)
    blocks = cpu.num_blocks(units, size)
    into, biases = (in_blocks(part, blocks) for part in (weights.input, weights.biases[..., None]))
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
    states = cpu.steps(
        tokens.of(x).to(dtype),
        into.to(dtype),
        biases[..., 0].to(dtype),
        weights.recurrent,
        tokens,
        peepholes=None if weights.peepholes is None else weights.peepholes.transpose(1, 2).flatten(2),
        masks=None if masks is None else masks.transpose(1, 2).flatten(2),
    )
    padded = tokens.padded(states)
    return padded.view(*padded.shape[:3], units, -1)


def in_blocks(
    weights: Float[Tensor, "directions units gates in"], blocks: int
) -> Float[Tensor, "blocks gates_of_block in"]:
    """Gate by gate, all units of a block in each."""
    directions, units, rows, size = weights.shape
    gates = weights.view(directions, blocks, units // blocks, 4, rows // 4, size).transpose(2, 3)
    return gates.reshape(directions * blocks, -1, size)


def padded_read(
    x: Float[Tensor, "inputs batch time in"],
    lengths: Int[Tensor, " batch"],
    weights: Weights,
    backwards: tuple[bool, ...],
    masks: Float[Tensor, "directions units batch size"] | None,
) -> Float[Tensor, "directions batch time units size"]:
    gates = gates_of(x, weights)
    if not cuda.lstm_serves(gates, weights.recurrent):
        turn, carry = backwards, plain_carry
    else:  # whose second direction is always the other way
        turn, carry = backwards if len(gates) == 1 else (False, False), cuda_carry
    with torch.autocast(x.device.type, enabled=False):  # it would round the states at every step
        states = carry(turned(gates, lengths, turn), weights, masks, lengths)
    return turned(states, lengths, turn)


def gates_of(
    x: Float[Tensor, "inputs batch time in"], weights: Weights
) -> Float[Tensor, "directions batch time units gates"]:
    """What x gives the gates, U x_t + b, in the precision of the states."""
    directions, units, rows, _ = weights.input.shape
    x = x.expand(directions, -1, -1, -1)
    gates = torch.baddbmm(weights.biases.flatten(1)[:, None], x.flatten(1, 2), weights.input.flatten(1, 2).mT)
    return gates.view(*x.shape[:3], units, rows).to(weights.recurrent.dtype)


def turned(
    x: Float[Tensor, "directions batch time units size"],
    lengths: Int[Tensor, " batch"],
    backwards: tuple[bool, ...],
) -> Float[Tensor, "directions batch time units size"]:
    if not any(backwards):
        return x
    sentences = (
        reverse(each.flatten(2), lengths).view_as(each) if back else each
        for each, back in zip(x, backwards, strict=True)
    )
    return torch.stack(list(sentences))


def cuda_carry(
    gates: Float[Tensor, "directions batch time units gates"],
    weights: Weights,
    masks: Float[Tensor, "directions units batch size"] | None,
    lengths: Int[Tensor, " batch"],
) -> Float[Tensor, "directions batch time units size"]:
    return cuda.steps(gates, weights.recurrent, weights.peepholes, masks, lengths)


def plain_carry(
    gates: Float[Tensor, "directions batch time units gates"],
    weights: Weights,
    masks: Float[Tensor, "directions units batch size"] | None,
    lengths: Int[Tensor, " batch"],
) -> Float[Tensor, "directions batch time units size"]:
    """All from left to right, padding and all."""
    directions, batch, _, units, _ = gates.shape
    matrices = weights.recurrent.flatten(0, 1).mT
    peepholes = gates.new_zeros(3, 1, 1, 1)
    if weights.peepholes is not None:
        peepholes = weights.peepholes.flatten(0, 1).transpose(0, 1)[:, :, None]
    h = c = gates.new_zeros(directions * units, batch, matrices.shape[1])
    mask = torch.ones_like(h) if masks is None else masks.flatten(0, 1)
    states = []
    # unbind: the gradient of gates[:, :, t] would be as large as gates, at each step
    for now in gates.unbind(2):
        sums = torch.baddbmm(now.transpose(1, 2).flatten(0, 1), h * mask, matrices)
        i, f, g, o = sums.chunk(4, dim=-1)
        i, f = (i + peepholes[0] * c).sigmoid(), (f + peepholes[1] * c).sigmoid()
        c = f * c + i * g.tanh()
        h = (o + peepholes[2] * c).sigmoid() * c.tanh()
        states.append(h.view(directions, units, batch, -1).transpose(1, 2))
    return torch.stack(states, dim=2)
