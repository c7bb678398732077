"""The BiLSTM network of Huang, Xu & Yu (2015), section 2.2."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates
from ner_experiments.modules.dropout import Dropout
from ner_experiments.modules.recurrent import BiRNN, Cell


class BiLSTM(nn.Module):
    """One BiLSTM layer; for several, see `StackedBiLSTM`.

    `dropout` is on the input and on the output (Ma & Hovy 2016). Huang et al. use no dropout and the cell
    `PeepholeLSTM`.
    """

    def __init__(self, *, input_size: int, hidden_size: int, dropout: float, cell: Cell = nn.LSTM):
        super().__init__()
        check_rates(dropout=dropout)
        self.dropout = Dropout(dropout)
        self.layer = BiRNN(input_size=input_size, hidden_size=hidden_size, cell=cell)
        self.output_size = self.layer.output_size

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        return self.dropout(self.layer(self.dropout(x), lengths))
