"""Dense features of a word, concatenated to its vectors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class OneHot(nn.Module):
    """One-hot vectors of a feature with `num_values` values, such as capitalization (Li et al. 2020)."""

    unit_vectors: Tensor

    def __init__(self, *, num_values: int):
        super().__init__()
        self.output_size = num_values
        # A buffer follows the module's device and precision; it is constant, so it is not saved.
        self.register_buffer("unit_vectors", torch.eye(num_values), persistent=False)

    def forward(self, ids: Int[Tensor, " forms"]) -> Float[Tensor, "forms size"]:
        return self.unit_vectors[ids]
