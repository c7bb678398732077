"""The residual BiLSTM of Yang & Xu (2020), and its parts."""

from collections import OrderedDict
from collections.abc import Iterable

from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates, check_sizes
from ner_experiments.modules.dropout import Dropout
from ner_experiments.modules.recurrent import BiRNN, Block, Cell


class Dense(nn.Linear):
    """W r of eq. 5, without bias."""

    def __init__(self, input_size: int, dense_size: int):
        super().__init__(input_size, dense_size, bias=False)
        self.output_size = dense_size


class NoDense(nn.Identity):
    """Replacement of `Dense` (table 13): norm, activation and BiLSTM have the width of the block's input."""

    def __init__(self, input_size: int, dense_size: int):
        super().__init__()
        self.output_size = input_size


def local_residual(
    blocks: Iterable[nn.Module], x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch time out"]:
    """r^l = h^{l-1} + h^l, where h^l = block^l(r^{l-1}) (eq. 7): the sum of the last two layers only (eq. 3).

    Reading: r^0 = x, and the first block has no shortcut, r^1 = h^1, since x has a different width.
    """
    first, *others = blocks
    below = total = first(x, lengths)
    for block in others:
        h = block(total, lengths)
        below, total = h, below + h
    return total


class ResidualBiLSTM(nn.Module):
    """r^l = h^{l-1} + h^l, where h^l = BiLSTM(dropout(relu(norm(W r^{l-1})))).

    Yang & Xu (2020), eq. 5-8. The shortcut carries the output of the BiLSTM, not that of the block. The parts of the
    block are classes, so that tables 11 (type C) and 13 are this model with other parts: `NoDense`, `nn.Identity`,
    `nn.ELU`, `nn.GRU`. They are built as `dense(input_size, dense_size)`, which has `output_size`,
    `norm(output_size)` and `activation()`. Weights have PyTorch's initialization; the paper gives none.
    """

    def __init__(
        self,
        *,
        input_size: int,
        num_layers: int,
        hidden_size: int,
        dense_size: int,
        dropout: float,
        dense: type[Dense] | type[NoDense] = Dense,
        norm: type[nn.Module] = nn.LayerNorm,
        activation: type[nn.Module] = nn.ReLU,
        cell: Cell = nn.LSTM,
    ):
        super().__init__()
        check_sizes(num_layers=num_layers, hidden_size=hidden_size, dense_size=dense_size)
        check_rates(dropout=dropout)
        self.output_size = 2 * hidden_size
        self.blocks = nn.ModuleList()
        for size in [input_size] + (num_layers - 1) * [self.output_size]:
            weight = dense(size, dense_size)
            width = weight.output_size
            parts = {"dense": weight, "norm": norm(width), "activation": activation()}
            before = nn.Sequential(OrderedDict(parts, dropout=Dropout(dropout)))
            rnn = BiRNN(input_size=width, hidden_size=hidden_size, cell=cell)
            self.blocks.append(Block(before=before, rnn=rnn))

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        return local_residual(self.blocks, x, lengths)
