"""Recurrent layers over padded sentences: one direction, both directions, and stacks of either.

A layer maps `(x, lengths)` to `"batch time out"` and has `output_size`. Padding stands after the sentence, so
a layer that reads from left to right meets it only when the sentence is over; for the other direction the
sentence is reversed and its padding left where it is. What the layers give at padded positions is finite and
means nothing. Weights start as PyTorch's cells start them, uniform within 1 / sqrt(hidden_size).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates, check_sizes
from ner_experiments.modules.peephole import PeepholeLSTM

Cell = type[nn.LSTM] | type[nn.GRU] | type[PeepholeLSTM]


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


class UniRNN(nn.Module):
    """One recurrent layer from left to right; for the other way `reverse` what it reads and what it gives."""

    def __init__(self, *, input_size: int, hidden_size: int, cell: Cell = nn.LSTM):
        super().__init__()
        check_sizes(input_size=input_size, hidden_size=hidden_size)
        self.output_size = hidden_size
        self.cell = cell(input_size, hidden_size, batch_first=True)

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        states, _ = self.cell(x)
        return states


class BiRNN(nn.Module):
    """[h_fwd ; h_bwd] of a recurrent layer in each direction, `hidden_size` per direction.

    Equal, to rounding, to a stock bidirectional layer over packed sequences, which on a CPU would leave
    oneDNN's fused kernel.
    """

    def __init__(self, *, input_size: int, hidden_size: int, cell: Cell = nn.LSTM):
        super().__init__()
        self.output_size = 2 * hidden_size
        self.left_to_right = UniRNN(input_size=input_size, hidden_size=hidden_size, cell=cell)
        self.right_to_left = UniRNN(input_size=input_size, hidden_size=hidden_size, cell=cell)

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        ahead = self.left_to_right(x, lengths)
        back = self.right_to_left(reverse(x, lengths), lengths)
        return torch.cat([ahead, reverse(back, lengths)], dim=-1)


class Block(nn.Module):
    """`rnn(before(x))`: a recurrent layer and what its input passes through first, token by token."""

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
    """Layers of which each fits on the one below, with dropout on the input of each."""
    check_sizes(num_layers=num_layers, hidden_size=hidden_size)
    check_rates(dropout=dropout)
    blocks = nn.ModuleList()
    for _ in range(num_layers):
        layer = rnn(input_size=input_size, hidden_size=hidden_size)
        blocks.append(Block(before=nn.Dropout(dropout), rnn=layer))
        input_size = layer.output_size
    return blocks
