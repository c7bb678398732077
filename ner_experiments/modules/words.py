"""Word vectors, one per distinct form of a batch, random or pretrained. Id 0 is the unknown word."""

import copy

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_sizes
from ner_experiments.modules.lookup import Lookup
from ner_experiments.utils.ranges import POSITIVE, PROBABILITY


def uniform_vectors(num: int, dim: int, bound: float | None = None) -> Float[Tensor, "{num} {dim}"]:
    """Initial embeddings, uniform in [-bound, bound].

    The default bound is sqrt(3 / dim): variance 1 / dim, norm near 1 (Ma & Hovy 2016, section 3.1).
    """
    check_sizes(dim=dim)
    if bound is None:
        bound = (3 / dim) ** 0.5
    else:
        POSITIVE.check("bound", bound)
    return torch.empty(num, dim).uniform_(-bound, bound)


class SingletonReplacement(nn.Module):
    """Random replacement of singletons of train by the unknown word during training, so that its vector is trained.

    Lample et al. (2016), section 4.1, with probability 0.5. There is one draw per form of the batch. Since a singleton
    occurs once in train, this amounts to one draw per token and epoch.
    """

    singletons: Tensor

    def __init__(self, *, singletons: Bool[Tensor, " num_words"], probability: float):
        super().__init__()
        PROBABILITY.check("replace_singletons", probability)
        self.probability = probability
        self.register_buffer("singletons", singletons)

    def forward(self, ids: Int[Tensor, " forms"]) -> Int[Tensor, " forms"]:
        if not self.training or self.probability == 0:
            return ids
        drawn = torch.rand(ids.shape, device=ids.device) < self.probability
        return ids.masked_fill(drawn & self.singletons[ids], 0)

    def extra_repr(self) -> str:
        return f"probability={self.probability}"


class RandomEmbedding(Lookup):
    """Trained word vectors, initialized by `uniform_vectors`; for the unknown word see `SingletonReplacement`."""

    def __init__(
        self,
        *,
        num_words: int,
        dim: int,
        singletons: Bool[Tensor, " {num_words}"],
        replace_singletons: float,
        bound: float | None = None,
    ):
        super().__init__()
        self.output_size = dim
        self.replace = SingletonReplacement(singletons=singletons, probability=replace_singletons)
        self.vectors = nn.Parameter(uniform_vectors(num_words, dim, bound))

    def forward(self, ids: Int[Tensor, " forms"]) -> Float[Tensor, "forms size"]:
        return nn.functional.embedding(self.replace(ids), self.vectors, sparse=self.sparse)


class PretrainedEmbedding(Lookup):
    """Pretrained vectors, and one trained vector for the unknown word.

    `found` marks the rows of `vectors` that come from the file. Row 0 never does, and rows that are not marked are
    ignored. If trainable, every word has its own vector, all vectors are fine-tuned, and words that are not in the file
    start from `uniform_vectors`. If frozen, the vectors of the file are constant but saved with the weights, and all
    words that are not in the file share the vector of the unknown word.
    """

    vectors: Tensor
    has_vector: Tensor

    def __init__(
        self,
        *,
        vectors: Float[Tensor, "num_words dim"],
        found: Bool[Tensor, " num_words"],
        singletons: Bool[Tensor, " num_words"],
        replace_singletons: float,
        trainable: bool,
    ):
        super().__init__()
        assert not found[0], "row 0 is the unknown word and cannot come from the file"
        num_words, self.output_size = vectors.shape
        self.replace = SingletonReplacement(singletons=singletons, probability=replace_singletons)
        self.unknown = nn.Parameter(uniform_vectors(1, self.output_size)[0])
        if trainable:
            self.register_buffer("has_vector", torch.arange(num_words) > 0)
            initial = torch.where(found[:, None], vectors, uniform_vectors(num_words, self.output_size))
            self.vectors = nn.Parameter(initial)
        else:
            self.register_buffer("has_vector", found)
            self.register_buffer("vectors", vectors)

    def forward(self, ids: Int[Tensor, " forms"]) -> Float[Tensor, "forms size"]:
        ids = self.replace(ids)
        vectors = nn.functional.embedding(ids, self.vectors, sparse=self.sparse)
        return torch.where(self.has_vector[ids, None], vectors, self.unknown)

    def extended(self, rows: Float[Tensor, "more dim"]) -> "PretrainedEmbedding":
        """A copy with further rows of the file at the end of its table, for evaluation."""
        more, num = copy.deepcopy(self), len(rows)
        more.vectors = with_rows(self.vectors, rows)
        more.has_vector = torch.cat([self.has_vector, self.has_vector.new_ones(num)])
        more.replace.singletons = torch.cat([self.replace.singletons, self.replace.singletons.new_zeros(num)])
        return more


def with_rows(table: Tensor, rows: Tensor) -> Tensor:
    """A table with further rows, as a parameter if it is one."""
    longer = torch.cat([table.detach(), rows.to(table)])
    return (
        nn.Parameter(longer, requires_grad=table.requires_grad) if isinstance(table, nn.Parameter) else longer
    )
