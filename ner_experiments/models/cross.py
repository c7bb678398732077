"""Cross-BiLSTM of Li, Fu & Ma (2020), section 3.5."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates, check_sizes
from ner_experiments.modules.dropout import VariationalDropout
from ner_experiments.modules.variational_lstm import VariationalLSTMs


class CrossBiLSTM(nn.Module):
    """H^l = LSTM_fwd(H^{l-1}) || LSTM_bwd(H^{l-1}): each direction reads both directions of the layer below.

    Variational dropout is on the input and on the recurrent state of every LSTM, and on the last H.
    """

    def __init__(self, *, input_size: int, num_layers: int, hidden_size: int, dropout: float):
        super().__init__()
        check_sizes(num_layers=num_layers, hidden_size=hidden_size)
        check_rates(dropout=dropout)
        self.output_size = 2 * hidden_size
        self.layers = nn.ModuleList(
            VariationalLSTMs(input_size=size, hidden_size=hidden_size, dropout=dropout)
            for size in [input_size] + (num_layers - 1) * [self.output_size]
        )
        self.dropout = VariationalDropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        for layer in self.layers:
            x = torch.cat(list(layer(torch.stack([x, x]), lengths)), dim=-1)
        return self.dropout(x)
