"""The inputs of Li, Fu & Ma (2020), section 3.1, one row per distinct form of a batch."""

import copy
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_sizes
from ner_experiments.modules.words import with_rows

PADDING = 0


class TypedCharCNN(nn.Module):
    """Convolutions over [character ; type], no bias, no non-linearity, and the maximum over all positions.

    Row i of `types` is the one-hot type of character i, all False if it has none. As in the released code, words are
    padded to `length` characters and padding is an ordinary character: its vector is trained, and its windows take
    part in the maximum. A window of width w starts at one of length - w + 1 positions. There are `num_filters` filters
    per width; the vector concatenates the widths in order.

    Weights are Glorot-uniform and character vectors normal with standard deviation 0.1, as in the released code.
    """

    types: Tensor

    def __init__(
        self,
        *,
        types: Bool[Tensor, "num_chars num_types"],
        length: int,
        dim: int,
        num_filters: int,
        widths: Sequence[int],
    ):
        super().__init__()
        check_sizes(length=length, dim=dim, num_filters=num_filters)
        if not widths or min(widths) < 1 or max(widths) > length:
            raise ValueError(f"widths must be one or more numbers from 1 to {length}, got {list(widths)}")
        num_chars, num_types = types.shape
        self.output_size = num_filters * len(widths)
        self.length = length
        self.vectors = nn.Parameter(torch.empty(num_chars, dim).normal_(std=0.1))
        self.register_buffer("types", types.to(self.vectors.dtype), persistent=False)
        self.convolutions = nn.ModuleList()
        for width in widths:
            layer = nn.Conv1d(dim + num_types, num_filters, width, bias=False)
            nn.init.xavier_uniform_(layer.weight)
            self.convolutions.append(layer)

    def forward(self, ids: Int[Tensor, "forms chars"]) -> Float[Tensor, "forms size"]:
        missing = self.length - ids.shape[1]
        assert missing >= 0, "the input cuts words at `length` characters"
        ids = nn.functional.pad(ids, (0, missing), value=PADDING)
        table = torch.cat([self.vectors, self.types], dim=1)
        chars = nn.functional.embedding(ids, table).transpose(1, 2)
        return torch.cat([layer(chars).amax(2) for layer in self.convolutions], dim=1)


class KnownWords(nn.Module):
    """Frozen rows of `vectors`, and one trained vector for word 0, the unknown word; row 0 is not used.

    The trained vector is initialized from a normal distribution with standard deviation 0.1, as in the released code.
    """

    vectors: Tensor

    def __init__(self, *, vectors: Float[Tensor, "num_words size"]):
        super().__init__()
        self.output_size = vectors.shape[1]
        self.unknown = nn.Parameter(torch.empty(self.output_size).normal_(std=0.1))
        self.register_buffer("vectors", vectors)

    def forward(self, ids: Int[Tensor, " forms"]) -> Float[Tensor, "forms size"]:
        known = nn.functional.embedding(ids, self.vectors)
        return torch.where((ids == 0)[:, None], self.unknown, known)

    def extended(self, rows: Float[Tensor, "more size"]) -> "KnownWords":
        """A copy with further rows at the end of its table, for evaluation."""
        more = copy.deepcopy(self)
        more.vectors = with_rows(self.vectors, rows)
        return more
