"""BERT's vectors of the pieces, tuned or frozen, or as they were computed before.

The model itself is given: `transformers.BertModel`, or any other that is called as it is.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor, cat, is_grad_enabled, nn, no_grad, split

Windows = tuple[Int[Tensor, "windows length"], Bool[Tensor, "windows length"]]
"""Piece ids, and which of them are real."""
MOST = 16_384
"""Pieces that are read at once where nothing is learned: a sentence may have any number."""


class Bert(nn.Module):
    """The last layer of BERT at every piece, windows one after another: rows = windows * length.

    Yang & Xu (2020), section IV. Dropout is that of the model's own configuration.
    """

    def __init__(self, *, bert: nn.Module, dim: int):
        super().__init__()
        self.output_size = dim
        self.bert = bert.train()  # transformers hands it over in eval mode, and Lightning changes no mode

    def forward(self, windows: Windows) -> Float[Tensor, "rows size"]:
        pieces, mask = windows
        if pieces.numel() > MOST and not is_grad_enabled():
            some = max(1, MOST // pieces.shape[1])
            parts = zip(split(pieces, some), split(mask, some), strict=True)
            return cat(
                [self.bert(input_ids=ids, attention_mask=real)[0].flatten(0, 1) for ids, real in parts]
            )
        return self.bert(input_ids=pieces, attention_mask=mask)[0].flatten(0, 1)


class FrozenBert(Bert):
    """The same without dropout and without gradient: the weights stay as they are."""

    def __init__(self, *, bert: nn.Module, dim: int):
        super().__init__(bert=bert, dim=dim)
        self.requires_grad_(False)
        self.train()

    def train(self, mode: bool = True) -> "FrozenBert":
        super().train(mode)
        self.bert.eval()
        return self

    def forward(self, windows: Windows) -> Float[Tensor, "rows size"]:
        with no_grad():
            return super().forward(windows)


class GivenVectors(nn.Module):
    """Vectors that come with the batch."""

    def __init__(self, *, dim: int):
        super().__init__()
        self.output_size = dim

    def forward(self, vectors: Float[Tensor, "rows size"]) -> Float[Tensor, "rows size"]:
        return vectors
