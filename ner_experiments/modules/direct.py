"""Features connected directly to the tag scores: Huang, Xu & Yu (2015), section 4.2.4 and figure 8."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_sizes
from ner_experiments.modules.lookup import Lookup


class SparseScores(Lookup):
    """Tag scores of a row: the sum of the weights of its features. All weights start at 0.

    Feature ids start at 1; id 0 is padding.
    """

    def __init__(self, *, num_features: int, num_tags: int):
        super().__init__()
        check_sizes(num_features=num_features, num_tags=num_tags)
        self.weight = nn.Parameter(torch.zeros(1 + num_features, num_tags))

    def forward(self, ids: Int[Tensor, "rows features"]) -> Float[Tensor, "rows tags"]:
        return nn.functional.embedding_bag(ids, self.weight, mode="sum", sparse=self.sparse, padding_idx=0)
