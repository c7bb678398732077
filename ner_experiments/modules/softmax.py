"""The softmax decoder: each token's tag on its own, with or without a tag scheme's hard constraints."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_sizes
from ner_experiments.modules.decoding import (
    Allowed,
    HardConstraints,
    Transitions,
    at_least_float32,
    centred,
    check_inputs,
    viterbi,
)
from ner_experiments.modules.forward_backward import product

REDUCTIONS = ("sentence", "token", "sum")


class Softmax(nn.Module):
    """p(y | x) = product over the tokens of softmax(scores of the token)[y_i].

    `reduction` says what the cross-entropy, summed over the tokens of the batch, is divided by: its sentences
    ("sentence", the unit of the CRF's loss), its tokens ("token", Li et al. 2020) or nothing ("sum",
    Zukov-Gregoric et al. 2018).

    With `constrained`, decoding finds the most probable of the tag sequences that `allowed` permits; loss and
    marginals stay those of single tokens.

    A `tagger.Decoder`. Computes in float32 at least, under autocast too.
    """

    def __init__(
        self,
        *,
        num_tags: int,
        allowed: Allowed | None = None,
        constrained: bool = False,
        reduction: str = "sentence",
    ):
        super().__init__()
        check_sizes(num_tags=num_tags)
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")
        self.num_tags = num_tags
        self.reduction = reduction
        self.constraints = HardConstraints(num_tags=num_tags, allowed=allowed) if constrained else None

    def loss(
        self,
        scores: Float[Tensor, "batch time tags"],
        tags: Int[Tensor, "batch time"],
        mask: Bool[Tensor, "batch time"],
    ) -> Float[Tensor, ""]:
        """-log p(tags | scores), summed over the tokens and divided as `reduction` says."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask, tags=tags)
        log_probabilities = centred(scores, mask).log_softmax(2)
        gold = log_probabilities.gather(2, tags.masked_fill(~mask, 0).unsqueeze(2)).squeeze(2)
        total = -gold.masked_fill(~mask, 0).sum()
        if self.reduction == "sentence":
            return total / len(scores)
        return total / mask.sum() if self.reduction == "token" else total

    def decode(
        self, scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"]
    ) -> Int[Tensor, "batch time"]:
        """The most probable tags, 0 where mask is False; of equals, the lowest (see `viterbi`)."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask)
        transitions = self.scored(scores.dtype)
        if transitions is None:
            return scores.argmax(2).masked_fill(~mask, 0)
        # what is centred differs from the log-probabilities by a constant for each token only
        return viterbi(centred(scores, mask), mask, transitions)

    def scored(self, dtype: torch.dtype) -> Transitions | None:
        """The transitions as they count in decoding, in float32 at least: 0 or forbidden; None without."""
        if self.constraints is None:
            return None
        none = at_least_float32(torch.zeros(self.num_tags, dtype=dtype, device=self.constraints.start.device))
        return self.constraints(Transitions(none, torch.diag(none), none))

    def marginals(
        self, scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time tags"]:
        """The softmax of each token, 0 where mask is False; differentiable."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask)
        return centred(scores, mask).softmax(2) * mask.unsqueeze(2)

    @torch.no_grad()
    def span_probabilities(
        self,
        scores: Float[Tensor, "batch time tags"],
        tags: Int[Tensor, "batch time"],
        mask: Bool[Tensor, "batch time"],
        spans: Int[Tensor, "spans 3"],
    ) -> Float[Tensor, " spans"]:
        """p(y_i = tags_i of all i from start to end - 1 | scores) of each span (sentence, start, end).

        The product of its tokens' probabilities, since the tags are independent given the scores.
        """
        check_inputs(scores, num_tags=self.num_tags, mask=mask, tags=tags)
        chosen = tags.masked_fill(~mask, 0).unsqueeze(2)
        return product(centred(scores, mask).log_softmax(2).gather(2, chosen).squeeze(2), spans)
