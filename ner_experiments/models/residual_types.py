"""Other residual structures, types A, B and D of Yang & Xu (2020), figure 4 and table 11.

Type C is `ResidualBiLSTM` without dense layer, norm, activation and dropout (`conf/model/residual_c.yaml`).
Readings: sums start with the output of the first layer, since the input has a different width. The paper says that C
has no dropout, so the others have none either: `dropout`, on the input of every layer, is 0.0 in conf/.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.models.residual import local_residual
from ner_experiments.modules.lstm import reverse
from ner_experiments.modules.recurrent import BiRNN, UniRNN, stack


class TypeA(nn.Module):
    """r^l = r^{l-1} + BiLSTM(r^{l-1}), as in ResNets and in Tran et al. (2017): the sum of all layers."""

    def __init__(self, *, input_size: int, num_layers: int, hidden_size: int, dropout: float):
        super().__init__()
        self.output_size = 2 * hidden_size
        self.blocks = stack(
            BiRNN, input_size=input_size, num_layers=num_layers, hidden_size=hidden_size, dropout=dropout
        )

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        first, *others = self.blocks
        r = first(x, lengths)
        for block in others:
            r = r + block(r, lengths)
        return r


class TypeB(nn.Module):
    """u^l = u^{l-1} + r^{l-1}, r^l = BiLSTM(u^l): the addition of type A moved before the BiLSTM.

    u^2 = r^1: the input of a layer is the sum of all outputs below it, and the last output is not summed.
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
        first, *others = self.blocks
        r = first(x, lengths)
        u = torch.zeros_like(r)
        for block in others:
            u = u + r
            r = block(u, lengths)
        return r


class TypeD(nn.Module):
    """Type C in each direction separately, concatenated at the top.

    The directions are independent below the output, so this model has the XOR limitation of Li et al. (2020),
    section 3.3.
    """

    def __init__(self, *, input_size: int, num_layers: int, hidden_size: int, dropout: float):
        super().__init__()
        self.output_size = 2 * hidden_size
        self.left_to_right = stack(
            UniRNN, input_size=input_size, num_layers=num_layers, hidden_size=hidden_size, dropout=dropout
        )
        self.right_to_left = stack(
            UniRNN, input_size=input_size, num_layers=num_layers, hidden_size=hidden_size, dropout=dropout
        )

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        forward = local_residual(self.left_to_right, x, lengths)
        backward = local_residual(self.right_to_left, reverse(x, lengths), lengths)
        return torch.cat([forward, reverse(backward, lengths)], dim=-1)
