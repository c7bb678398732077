"""Stacked BiLSTM layers, the baseline of Yang & Xu (2020), table 12."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.recurrent import BiRNN, stack


class StackedBiLSTM(nn.Module):
    """h^l = BiLSTM(dropout(h^{l-1})), without the shortcuts, dense layers, norms and ReLUs of the residual block.

    The paper "uses the output of previous LSTM as the input of next LSTM directly" (section V.B) and does not mention
    dropout. Reading: the rate of table 2, before each BiLSTM as in the residual block.
    """

    def __init__(self, *, input_size: int, num_layers: int, hidden_size: int, dropout: float):
        super().__init__()
        self.output_size = 2 * hidden_size
        self.blocks = stack(
            BiRNN, input_size=input_size, num_layers=num_layers, hidden_size=hidden_size, dropout=dropout
        )

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        for block in self.blocks:
            x = block(x, lengths)
        return x
