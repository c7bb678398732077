"""No encoder: tag scores are computed from the input itself."""

from jaxtyping import Float, Int
from torch import Tensor, nn


class NoEncoder(nn.Module):
    """Identity; with a CRF on top, the plain CRF of Huang et al. (2015), section 2.3."""

    def __init__(self, *, input_size: int):
        super().__init__()
        self.output_size = input_size

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time in"]:
        return x
