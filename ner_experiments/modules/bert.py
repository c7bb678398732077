"""BERT's vectors of word pieces: fine-tuned, frozen, or precomputed.

The model is passed in: `transformers.BertModel`, or any other with the same call signature.
"""

from jaxtyping import Bool, Float, Int
from torch import Tensor, cat, is_grad_enabled, nn, no_grad, split

Windows = tuple[Int[Tensor, "windows length"], Bool[Tensor, "windows length"]]
"""Piece ids, and a mask that is True for real pieces."""
MAX_PIECES = 16_384
"""Maximum number of pieces per call without gradients. Sentences may be of any length, so this bounds the memory."""


class Bert(nn.Module):
    """Hidden states of BERT's last layer, one row per piece: rows = windows * length.

    Yang & Xu (2020), section IV. The dropout rates are those of the model's configuration.
    """

    def __init__(self, *, bert: nn.Module, dim: int):
        super().__init__()
        self.output_size = dim
        self.bert = bert.train()  # transformers returns models in eval mode, and Lightning leaves modes alone

    def forward(self, windows: Windows) -> Float[Tensor, "rows size"]:
        pieces, mask = windows
        if pieces.numel() > MAX_PIECES and not is_grad_enabled():
            windows_per_call = max(1, MAX_PIECES // pieces.shape[1])
            parts = zip(split(pieces, windows_per_call), split(mask, windows_per_call), strict=True)
            return cat(
                [self.bert(input_ids=ids, attention_mask=real)[0].flatten(0, 1) for ids, real in parts]
            )
        return self.bert(input_ids=pieces, attention_mask=mask)[0].flatten(0, 1)


class FrozenBert(Bert):
    """`Bert` without dropout and gradients."""

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
    """Identity, for precomputed vectors in the batch."""

    def __init__(self, *, dim: int):
        super().__init__()
        self.output_size = dim

    def forward(self, vectors: Float[Tensor, "rows size"]) -> Float[Tensor, "rows size"]:
        return vectors
