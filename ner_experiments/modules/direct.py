"""Features connected straight to the tag scores: Huang, Xu & Yu (2015), section 4.2.4 and figure 8."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_sizes


class SparseScores(nn.Module):
    """Scores of the tags: the sum of the weights of a row's features. All weights start at 0.

    Features are numbered from 1; 0 is no feature. With `sparse` the gradient holds the rows of the batch's
    features only, so that a step of SGD does not go through all weights. It comes to the same, but neither
    Adam nor weight decay nor gradient clipping takes such gradients (torch 2.13).
    """

    def __init__(self, *, num_features: int, num_tags: int, sparse: bool = False):
        super().__init__()
        check_sizes(num_features=num_features, num_tags=num_tags)
        self.sparse = sparse
        self.weight = nn.Parameter(torch.zeros(1 + num_features, num_tags))

    def forward(self, ids: Int[Tensor, "rows features"]) -> Float[Tensor, "rows tags"]:
        return nn.functional.embedding_bag(ids, self.weight, mode="sum", sparse=self.sparse, padding_idx=0)
