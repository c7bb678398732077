"""K recurrent units that read one input and know nothing of each other, run together."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates, check_sizes
from ner_experiments.modules.lstm import Weights, read

Init = Callable[[Float[Tensor, "size in"]], object]
"""Fills one matrix in place."""


def lstm_uniform_(matrix: Float[Tensor, "size in"]) -> None:
    """As PyTorch starts its LSTM: uniform within 1 / sqrt(size), whatever the matrix reads."""
    bound = len(matrix) ** -0.5
    nn.init.uniform_(matrix, -bound, bound)


class BiLSTMUnits(nn.Module):
    """[h_fwd ; h_bwd] of K BiLSTMs of `unit_size` n per direction, with no weights from one to another.

    Zukov-Gregoric et al. (2018), sections 2.1 and 3. In each unit and direction, with x of size m,
    i, f, o = sigmoid(W h_{t-1} + U x_t + b) and g = tanh(W h_{t-1} + U x_t + b), each with its own W, U, b;
    c_t = f c_{t-1} + i g, h_t = o tanh(c_t). The weights' rows are the gates in PyTorch's order, i f g o.
    A gate has one bias; PyTorch's LSTM has two, of which only the sum counts.

    `init` fills the n x n and n x m matrix of each gate; fan in is what it reads (n or m), fan out is n.
    Readings: the paper speaks of a layer's parameters, not of which matrices; biases, of which it does not
    speak, start at 0, that of the forget gate too.

    `dropout` is variational (Gal & Ghahramani 2016): W reads h_{t-1} times a mask that is drawn once for each
    sentence, unit and direction, and is the same at all time steps and for all four gates. Reading of
    "between the hidden states"; neither x, nor c, nor the output is masked.

    Under autocast the states stay in the weights' precision.
    """

    def __init__(
        self,
        *,
        input_size: int,
        num_units: int,
        unit_size: int,
        dropout: float,
        init: Init = nn.init.xavier_uniform_,
    ):
        super().__init__()
        check_sizes(input_size=input_size, num_units=num_units, unit_size=unit_size)
        check_rates(dropout=dropout)
        self.input_weights = nn.Parameter(torch.empty(2, num_units, 4 * unit_size, input_size))
        self.recurrent_weights = nn.Parameter(torch.empty(2, num_units, 4 * unit_size, unit_size))
        self.biases = nn.Parameter(torch.zeros(2, num_units, 4 * unit_size))
        self.dropout = nn.Dropout(dropout)
        with torch.no_grad():
            for weights in (self.input_weights, self.recurrent_weights):
                for matrix in weights.view(-1, unit_size, weights.shape[-1]):
                    init(matrix)

    def recurrent_candidates(self) -> Float[Tensor, "directions units size"]:
        """vec(W_c) of each unit: the weights from h_{t-1} to the candidate g of the cell update."""
        _, _, candidate, _ = self.recurrent_weights.chunk(4, dim=2)
        return candidate.flatten(2)

    def weights(self) -> Weights:
        return Weights(self.input_weights, self.recurrent_weights, self.biases)

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time units out"]:
        return self.states(x[None], lengths).movedim(0, 3).flatten(3)

    def states(
        self, x: Float[Tensor, "inputs batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "directions batch time units size"]:
        """Ahead and back, from one x for both directions or one for each."""
        weights = self.weights()
        directions, units, _, size = weights.recurrent.shape
        masks = None
        if self.training and self.dropout.p > 0:
            masks = self.dropout(weights.recurrent.new_ones(directions * units, len(lengths), size))
            masks = masks.view(directions, units, len(lengths), size)
        return read(x, lengths, weights, backwards=(False, True), masks=masks)
