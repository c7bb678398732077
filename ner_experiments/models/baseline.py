"""Baseline-BiLSTM of Li, Fu & Ma (2020), section 3.2."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates, check_sizes
from ner_experiments.modules.dropout import VariationalDropout
from ner_experiments.modules.variational_lstm import VariationalLSTMs


class BaselineBiLSTM(nn.Module):
    """H = LSTM^2(LSTM^1(X)) || LSTM^4(LSTM^3(X)): independent forward and backward stacks.

    The scores of a token are therefore the sum of a term that depends on its past and a term that depends on its
    future, and no weights can represent an XOR of the two (section 3.3). Variational dropout is on the input and on the
    recurrent state of every LSTM, and on H.
    """

    def __init__(self, *, input_size: int, num_layers: int, hidden_size: int, dropout: float):
        super().__init__()
        check_sizes(num_layers=num_layers, hidden_size=hidden_size)
        check_rates(dropout=dropout)
        self.output_size = 2 * hidden_size
        self.layers = nn.ModuleList(
            VariationalLSTMs(input_size=size, hidden_size=hidden_size, dropout=dropout)
            for size in [input_size] + (num_layers - 1) * [hidden_size]
        )
        self.dropout = VariationalDropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        both = torch.stack([x, x])
        for layer in self.layers:
            both = layer(both, lengths)
        return self.dropout(torch.cat(list(both), dim=-1))
