"""K independent recurrent units over one input, computed together."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates, check_sizes
from ner_experiments.modules.lstm import Weights, lstm_states

Init = Callable[[Float[Tensor, "size in"]], object]
"""Initializes one matrix in place."""


def lstm_uniform_(matrix: Float[Tensor, "size in"]) -> None:
    """PyTorch's initialization of LSTMs: uniform within 1 / sqrt(size), for input and recurrent weights alike."""
    bound = len(matrix) ** -0.5
    nn.init.uniform_(matrix, -bound, bound)


class BiLSTMUnits(nn.Module):
    """[h_fwd ; h_bwd] of K BiLSTMs with `unit_size` n per direction and no weights between them.

    Zukov-Gregoric et al. (2018), sections 2.1 and 3. In each unit and direction, with x of size m,
    i, f, o = sigmoid(W h_{t-1} + U x_t + b) and g = tanh(W h_{t-1} + U x_t + b), each with its own W, U, b;
    c_t = f c_{t-1} + i g, h_t = o tanh(c_t). The rows of the weights are the gates in PyTorch's order, i f g o.
    A gate has one bias; PyTorch's LSTM has two, of which only the sum matters.

    `init` initializes the n x n and the n x m matrix of each gate separately; fan-in is n or m, fan-out is n.
    Readings: the paper speaks of a layer's parameters without naming the matrices, and does not mention biases. Here
    all biases start at 0, including that of the forget gate.

    `dropout` is variational (Gal & Ghahramani 2016): where W reads h_{t-1}, it is multiplied by a mask that is drawn
    once per sentence, unit and direction and shared by all time steps and gates. This is our reading of "between the
    hidden states"; x, c and the output are not masked.

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
        """vec(W_c) of each unit: the weights from h_{t-1} to the candidate g."""
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
        """States of the forward and the backward direction. `x` holds one input for both, or one for each."""
        weights = self.weights()
        directions, units, _, size = weights.recurrent.shape
        masks = None
        if self.training and self.dropout.p > 0:
            masks = self.dropout(weights.recurrent.new_ones(directions * units, len(lengths), size))
            masks = masks.view(directions, units, len(lengths), size)
        return lstm_states(x, lengths, weights, backwards=(False, True), masks=masks)
