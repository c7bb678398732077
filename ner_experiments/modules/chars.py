"""A word's vector from its characters, one per distinct form of a batch.

Id 0 is padding, 1 the unknown character. A form has at least one character, and its padding stands at the
right; how long that is changes no vector.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_rates, check_sizes
from ner_experiments.modules.dropout import Dropout
from ner_experiments.modules.recurrent import BiRNN
from ner_experiments.modules.words import uniform_vectors

PADDING = 0


def char_embedding(num_chars: int, dim: int) -> nn.Embedding:
    """Trained vectors from `uniform_vectors`; that of padding is 0 and stays so."""
    vectors = uniform_vectors(num_chars, dim)
    embedding = nn.Embedding(num_chars, dim, padding_idx=PADDING)
    with torch.no_grad():
        embedding.weight[PADDING + 1 :] = vectors[PADDING + 1 :]
    return embedding


def max_over_time(
    x: Float[Tensor, "forms time size"], taking_part: Bool[Tensor, "forms time"]
) -> Float[Tensor, "forms size"]:
    return x.masked_fill(~taking_part[..., None], -torch.inf).amax(1)


def convolution(dim: int, num_filters: int, width: int) -> nn.Conv1d:
    """Glorot-uniform weights and no bias at first (Ma & Hovy 2016, section 3.1)."""
    layer = nn.Conv1d(dim, num_filters, width, padding=width // 2)
    assert layer.bias is not None
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class CharCNN(nn.Module):
    """Convolutions over the embedded characters, no non-linearity, max over time (Ma & Hovy 2016, 2.1, 3.1).

    `num_filters` per width; the vector joins the widths in their order. A form's windows are those it has
    alone, with width // 2 zeros at either end: one per character, and one more where the width is even. Those
    that only a longer form in the batch makes room for take no part. `dropout` is on the embeddings.
    """

    def __init__(self, *, num_chars: int, dim: int, num_filters: int, widths: Sequence[int], dropout: float):
        super().__init__()
        check_sizes(num_filters=num_filters)
        check_rates(dropout=dropout)
        if not widths or min(widths) < 1:
            raise ValueError(f"widths must be one or more numbers from 1 on, got {list(widths)}")
        self.output_size = num_filters * len(widths)
        self.embedding = char_embedding(num_chars, dim)
        self.dropout = Dropout(dropout)
        self.widths = tuple(widths)
        self.convolutions = nn.ModuleList(convolution(dim, num_filters, width) for width in widths)

    def forward(self, ids: Int[Tensor, "forms length"]) -> Float[Tensor, "forms size"]:
        lengths = (ids != PADDING).sum(1)
        chars = self.dropout(self.embedding(ids)).transpose(1, 2)
        maxima = []
        for width, layer in zip(self.widths, self.convolutions, strict=True):
            windows = layer(chars).transpose(1, 2)
            num_windows = lengths + (width + 1) % 2
            taking_part = torch.arange(windows.shape[1], device=ids.device) < num_windows[:, None]
            maxima.append(max_over_time(windows, taking_part))
        return torch.cat(maxima, dim=1)


class LastState(nn.Module):
    """The state in which each direction ends: at the last character and at the first (Lample et al. 2016)."""

    def forward(
        self, states: Float[Tensor, "forms length size"], lengths: Int[Tensor, " forms"]
    ) -> Float[Tensor, "forms size"]:
        forward, backward = states.chunk(2, dim=-1)
        last = forward[torch.arange(lengths.shape[0], device=lengths.device), lengths - 1]
        return torch.cat([last, backward[:, 0]], dim=-1)


class MaxOverTime(nn.Module):
    """The maximum of each unit over the characters (Zukov-Gregoric et al. 2018)."""

    def forward(
        self, states: Float[Tensor, "forms length size"], lengths: Int[Tensor, " forms"]
    ) -> Float[Tensor, "forms size"]:
        return max_over_time(states, torch.arange(states.shape[1], device=lengths.device) < lengths[:, None])


class CharBiLSTM(nn.Module):
    """A BiLSTM over the embedded characters, `hidden_size` per direction (Lample et al. 2016, section 4.1).

    `pool(states, lengths)` makes one vector of a form's states: `LastState` or `MaxOverTime`.
    """

    def __init__(self, *, num_chars: int, dim: int, hidden_size: int, pool: nn.Module):
        super().__init__()
        self.output_size = 2 * hidden_size
        self.embedding = char_embedding(num_chars, dim)
        self.lstm = BiRNN(input_size=dim, hidden_size=hidden_size, cell=nn.LSTM)
        self.pool = pool

    def forward(self, ids: Int[Tensor, "forms length"]) -> Float[Tensor, "forms size"]:
        lengths = (ids != PADDING).sum(1)
        return self.pool(self.lstm(self.embedding(ids), lengths), lengths)
