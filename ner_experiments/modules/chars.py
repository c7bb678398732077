"""Word vectors from characters, one per distinct form of a batch.

Id 0 is padding, 1 the unknown character. A form has at least one character and is padded on the right; the amount of
padding does not change its vector.
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
    """Embedding initialized by `uniform_vectors`, with a constant zero vector for padding."""
    vectors = uniform_vectors(num_chars, dim)
    embedding = nn.Embedding(num_chars, dim, padding_idx=PADDING)
    with torch.no_grad():
        embedding.weight[PADDING + 1 :] = vectors[PADDING + 1 :]
    return embedding


def max_over_time(
    x: Float[Tensor, "forms time size"], mask: Bool[Tensor, "forms time"]
) -> Float[Tensor, "forms size"]:
    """Maximum over the positions where the mask is True."""
    return x.masked_fill(~mask[..., None], -torch.inf).amax(1)


def convolution(dim: int, num_filters: int, width: int) -> nn.Conv1d:
    """Convolution with Glorot-uniform weights and zero bias (Ma & Hovy 2016, section 3.1)."""
    layer = nn.Conv1d(dim, num_filters, width, padding=width // 2)
    assert layer.bias is not None
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class CharCNN(nn.Module):
    """Convolutions over the embedded characters, no non-linearity, max over time (Ma & Hovy 2016, 2.1, 3.1).

    There are `num_filters` filters per width; the vector concatenates the widths in order. A form is padded with
    width // 2 zeros at either end. It has one window per character, plus one if the width is even; windows in the
    batch padding are masked. `dropout` is applied to the embeddings.
    """

    def __init__(self, *, num_chars: int, dim: int, num_filters: int, widths: Sequence[int], dropout: float):
        super().__init__()
        check_sizes(num_filters=num_filters)
        check_rates(dropout=dropout)
        if not widths or min(widths) < 1:
            raise ValueError(f"widths must be one or more numbers of at least 1, got {list(widths)}")
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
            mask = torch.arange(windows.shape[1], device=ids.device) < num_windows[:, None]
            maxima.append(max_over_time(windows, mask))
        return torch.cat(maxima, dim=1)


class LastState(nn.Module):
    """Final state of each direction, at the last and at the first character (Lample et al. 2016)."""

    def forward(
        self, states: Float[Tensor, "forms length size"], lengths: Int[Tensor, " forms"]
    ) -> Float[Tensor, "forms size"]:
        forward, backward = states.chunk(2, dim=-1)
        last = forward[torch.arange(lengths.shape[0], device=lengths.device), lengths - 1]
        return torch.cat([last, backward[:, 0]], dim=-1)


class MaxOverTime(nn.Module):
    """Maximum of each unit over the characters (Zukov-Gregoric et al. 2018)."""

    def forward(
        self, states: Float[Tensor, "forms length size"], lengths: Int[Tensor, " forms"]
    ) -> Float[Tensor, "forms size"]:
        return max_over_time(states, torch.arange(states.shape[1], device=lengths.device) < lengths[:, None])


class CharBiLSTM(nn.Module):
    """A BiLSTM over the embedded characters, `hidden_size` per direction (Lample et al. 2016, section 4.1).

    `pool(states, lengths)` reduces the states of a form to one vector: `LastState` or `MaxOverTime`.
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
