"""Recurrent layers over padded sentences: one direction, both directions, and stacks of either.

A layer maps `(x, lengths)` to `"batch time out"` and has `output_size`. Padding follows the sentence, so the forward
direction reads it only after the last token. For the backward direction, sentences are reversed and padding stays in
place. Outputs at padding are finite and undefined. Weights are initialized as in PyTorch, uniformly within
1 / sqrt(hidden_size).
"""

from collections.abc import Iterator
from functools import singledispatch

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules import lstm
from ner_experiments.modules.checks import check_rates, check_sizes
from ner_experiments.modules.dropout import Dropout
from ner_experiments.modules.kernels import cpu
from ner_experiments.modules.lstm import reverse
from ner_experiments.modules.peephole import PeepholeLSTM

Cell = type[nn.LSTM] | type[nn.GRU] | type[PeepholeLSTM]


def run_on_padded(
    cell: nn.Module,
    x: Float[Tensor, "batch time in"],
    lengths: Int[Tensor, " batch"],
    *,
    backwards: bool,
) -> Float[Tensor, "batch time out"]:
    """States of a cell, which also runs on the padding.

    With `backwards`, the cell reads each sentence from its last token to its first.
    """
    states, _ = cell(reverse(x, lengths) if backwards else x)
    return reverse(states, lengths) if backwards else states


run = singledispatch(run_on_padded)
"""As `run_on_padded`, by the fastest way for the cell."""


@run.register
def _(cell: PeepholeLSTM, x: Tensor, lengths: Tensor, *, backwards: bool) -> Float[Tensor, "batch time out"]:
    return cell(x, lengths, backwards=backwards)


@run.register
def _(cell: nn.LSTM, x: Tensor, lengths: Tensor, *, backwards: bool) -> Float[Tensor, "batch time out"]:
    """States computed by oneDNN's or cuDNN's fused loop, or on a CPU by the numba kernels where they are faster."""
    if not cpu.supports_lstm(x) or lstm.padding_is_cheap(x, lengths):
        return run_on_padded(cell, x, lengths, backwards=backwards)
    for weights in weights_of(cell):
        x = lstm.lstm_states(x[None], lengths, weights, backwards=(backwards,)).squeeze(3).squeeze(0)
    return x


@singledispatch
def run_together(
    forward: nn.Module, backward: nn.Module, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "directions batch time out"] | None:
    """States of two cells, of which the second reads backward, computed at once; None where that is no faster."""
    return None


@run_together.register
def _(
    forward: PeepholeLSTM, backward: PeepholeLSTM, x: Tensor, lengths: Tensor
) -> Float[Tensor, "directions batch time out"] | None:
    return None if x.is_cpu else forward.with_backward(backward, x, lengths)


def weights_of(cell: nn.LSTM) -> Iterator[lstm.Weights]:
    """Weights of each layer, as one unit in one direction."""
    for input_weight, state_weight, input_bias, state_bias in cell.all_weights:
        parts = (input_weight, state_weight, input_bias + state_bias)
        yield lstm.Weights(*(part[None, None] for part in parts))


class UniRNN(nn.Module):
    """Recurrent layers from left to right, or from right to left if called with `backwards`."""

    def __init__(self, *, input_size: int, hidden_size: int, num_layers: int = 1, cell: Cell = nn.LSTM):
        super().__init__()
        check_sizes(input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        self.output_size = hidden_size
        self.cell = cell(input_size, hidden_size, num_layers, batch_first=True)

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"], *, backwards: bool = False
    ) -> Float[Tensor, "batch time out"]:
        return run(self.cell, x, lengths, backwards=backwards)


class BiRNN(nn.Module):
    """[h_fwd ; h_bwd] of a recurrent layer in each direction, `hidden_size` per direction.

    Equal, up to rounding, to PyTorch's bidirectional layer over packed sequences, for which a CPU cannot use oneDNN's
    fused kernel.
    """

    def __init__(self, *, input_size: int, hidden_size: int, cell: Cell = nn.LSTM):
        super().__init__()
        self.output_size = 2 * hidden_size
        self.left_to_right = UniRNN(input_size=input_size, hidden_size=hidden_size, cell=cell)
        self.right_to_left = UniRNN(input_size=input_size, hidden_size=hidden_size, cell=cell)

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        together = run_together(self.left_to_right.cell, self.right_to_left.cell, x, lengths)
        if together is not None:
            return torch.cat([*together], dim=-1)
        forward = self.left_to_right(x, lengths)
        return torch.cat([forward, self.right_to_left(x, lengths, backwards=True)], dim=-1)


class Block(nn.Module):
    """`rnn(before(x))`: a recurrent layer after a token-wise module."""

    def __init__(self, *, before: nn.Module, rnn: UniRNN | BiRNN):
        super().__init__()
        self.output_size = rnn.output_size
        self.before = before
        self.rnn = rnn

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        return self.rnn(self.before(x), lengths)


def stack(
    rnn: type[UniRNN] | type[BiRNN], *, input_size: int, num_layers: int, hidden_size: int, dropout: float
) -> nn.ModuleList:
    """Recurrent layers on top of each other, with dropout on the input of each."""
    check_sizes(num_layers=num_layers, hidden_size=hidden_size)
    check_rates(dropout=dropout)
    blocks = nn.ModuleList()
    for _ in range(num_layers):
        layer = rnn(input_size=input_size, hidden_size=hidden_size)
        blocks.append(Block(before=Dropout(dropout), rnn=layer))
        input_size = layer.output_size
    return blocks
