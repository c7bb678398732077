"""The LSTM with peepholes of Huang, Xu & Yu (2015), a `recurrent.Cell` like `nn.LSTM`."""

from __future__ import annotations

from typing import Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_sizes
from ner_experiments.modules.lstm import Weights, lstm_states


class PeepholeLSTM(nn.Module):
    """Layers of `PeepholeLayer`, with the constructor of `nn.LSTM(..., batch_first=True)`."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, *, batch_first: Literal[True] = True
    ):
        super().__init__()
        check_sizes(num_layers=num_layers, hidden_size=hidden_size)
        self.layers = nn.ModuleList(
            PeepholeLayer(input_size=size, hidden_size=hidden_size)
            for size in [input_size] + (num_layers - 1) * [hidden_size]
        )

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"], *, backwards: bool = False
    ) -> Float[Tensor, "batch time out"]:
        """States of the last layer."""
        for layer in self.layers:
            x = layer(x, lengths, backwards=backwards)
        return x

    def with_backward(
        self, backward: PeepholeLSTM, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "directions batch time out"]:
        """States of this one and of another one that reads backward, computed at once: half as many launches."""
        states = x[None]
        for pair in zip(self.layers, backward.layers, strict=True):
            parts = (cast("PeepholeLayer", layer).weights() for layer in pair)
            weights = Weights(*map(torch.cat, zip(*parts, strict=True)))
            states = lstm_states(states, lengths, weights, backwards=(False, True)).squeeze(3)
        return states


class PeepholeLayer(nn.Module):
    """An LSTM with peepholes: i and f read c_{t-1}, o reads c_t, through diagonal weights (eq. 3).

    `peepholes` holds the diagonals of W_ci, W_cf and W_co. Gates are in PyTorch's order: input, forget, cell, output.
    Weights are initialized as in `nn.LSTM`, uniformly within 1 / sqrt(hidden_size); the paper gives no initialization.
    """

    def __init__(self, *, input_size: int, hidden_size: int):
        super().__init__()
        self.input_weight = nn.Parameter(torch.empty(4 * hidden_size, input_size))
        self.state_weight = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        self.peepholes = nn.Parameter(torch.empty(3, hidden_size))
        self.bias = nn.Parameter(torch.empty(4 * hidden_size))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(hidden_size**-0.5), hidden_size**-0.5)

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"], *, backwards: bool = False
    ) -> Float[Tensor, "batch time out"]:
        return lstm_states(x[None], lengths, self.weights(), backwards=(backwards,)).squeeze(3).squeeze(0)

    def weights(self) -> Weights:
        """The weights as one unit in one direction."""
        parts = (self.input_weight, self.state_weight, self.bias, self.peepholes)
        return Weights(*(part[None, None] for part in parts))
