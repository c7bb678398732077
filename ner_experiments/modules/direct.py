"""Features connected directly to the tag scores: Huang, Xu & Yu (2015), section 4.2.4 and figure 8."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_sizes


class SparseScores(nn.Module):
    """Tag scores of a row: the sum of the weights of its features. All weights start at 0.

    Feature ids start at 1; id 0 is padding. With `sparse`, the gradient has rows only for the features of the batch,
    so that a step of SGD or Adagrad does not visit all weights. The result is the same, but Adam, weight decay and
    gradient clipping do not support such gradients (torch 2.13).
    """

    def __init__(self, *, num_features: int, num_tags: int, sparse: bool = False):
        super().__init__()
        check_sizes(num_features=num_features, num_tags=num_tags)
        self.sparse = sparse
        if sparse:  # Adagrad warns as long as this is left open
            torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call]
        self.weight = nn.Parameter(torch.zeros(1 + num_features, num_tags))

    def forward(self, ids: Int[Tensor, "rows features"]) -> Float[Tensor, "rows tags"]:
        return nn.functional.embedding_bag(ids, self.weight, mode="sum", sparse=self.sparse, padding_idx=0)
