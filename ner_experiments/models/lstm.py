"""The LSTM network of Huang, Xu & Yu (2015), section 2.1."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates
from ner_experiments.modules.dropout import Dropout
from ner_experiments.modules.recurrent import Cell, UniRNN


class LSTM(nn.Module):
    """LSTM layers from left to right: the state of a token depends on its past only.

    `dropout` is on the input and on the output (Ma & Hovy 2016). Huang et al. use no dropout and the cell
    `PeepholeLSTM`.
    """

    def __init__(
        self, *, input_size: int, num_layers: int, hidden_size: int, dropout: float, cell: Cell = nn.LSTM
    ):
        super().__init__()
        check_rates(dropout=dropout)
        self.output_size = hidden_size
        self.dropout = Dropout(dropout)
        self.layers = UniRNN(input_size=input_size, hidden_size=hidden_size, num_layers=num_layers, cell=cell)

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        return self.dropout(self.layers(self.dropout(x), lengths))
