"""Dense features of a word, joined to its vectors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class OneHot(nn.Module):
    """A feature with `num_values` values as unit vectors, such as capitalisation (Li et al. 2020)."""

    unit_vectors: Tensor

    def __init__(self, *, num_values: int):
        super().__init__()
        self.output_size = num_values
        # A buffer follows the module's device and precision; it is no weight, and so is not saved.
        self.register_buffer("unit_vectors", torch.eye(num_values), persistent=False)

    def forward(self, ids: Int[Tensor, " forms"]) -> Float[Tensor, "forms size"]:
        return self.unit_vectors[ids]
