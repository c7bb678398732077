"""The LSTM network of Huang, Xu & Yu (2015), section 2.1."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates, check_sizes
from ner_experiments.modules.recurrent import Cell


class LSTM(nn.Module):
    """LSTM layers from left to right: a token sees the past only.

    `dropout` is on the input and on the output (Ma & Hovy 2016); Huang et al. have none, and their cell is
    `PeepholeLSTM`.
    """

    def __init__(
        self, *, input_size: int, num_layers: int, hidden_size: int, dropout: float, cell: Cell = nn.LSTM
    ):
        super().__init__()
        check_sizes(num_layers=num_layers, hidden_size=hidden_size)
        check_rates(dropout=dropout)
        self.output_size = hidden_size
        self.dropout = nn.Dropout(dropout)
        self.layers = cell(input_size, hidden_size, num_layers, batch_first=True)

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        states, _ = self.layers(self.dropout(x))
        return self.dropout(states)
