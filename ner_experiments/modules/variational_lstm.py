"""The LSTM layer of Li, Fu & Ma (2020): both directions, with variational dropout."""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.dropout import VariationalDropout
from ner_experiments.modules.units import BiLSTMUnits


class VariationalLSTMs(nn.Module):
    """Two LSTMs over two inputs: `x[0]` from left to right, `x[1]` from right to left.

    Dropout (Gal & Ghahramani 2016) is on the input and on the recurrent h, not on c or the output, as in the released
    code. Masks are drawn per sentence; the released code draws one per batch. All weights of an LSTM are
    Glorot-uniform as one matrix, and the bias of the forget gate starts at 1, as in the released code.
    """

    def __init__(self, *, input_size: int, hidden_size: int, dropout: float):
        super().__init__()
        self.output_size = hidden_size
        self.dropout = VariationalDropout(dropout)
        bound = (6 / (input_size + hidden_size + 4 * hidden_size)) ** 0.5
        self.units = BiLSTMUnits(
            input_size=input_size,
            num_units=1,
            unit_size=hidden_size,
            dropout=dropout,
            init=partial(nn.init.uniform_, a=-bound, b=bound),
        )
        with torch.no_grad():
            _, forget, _, _ = self.units.biases.chunk(4, dim=2)
            forget.fill_(1)

    def forward(
        self, x: Float[Tensor, "directions batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "directions batch time out"]:
        """Hidden states of both directions; padding does not affect those of tokens."""
        dropped = self.dropout(x.flatten(0, 1)).view_as(x)
        return self.units.states(dropped, lengths).squeeze(3)
