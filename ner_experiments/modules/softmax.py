"""The softmax decoder: independent tags given the scores, with or without the hard constraints of a tag scheme."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ner_experiments.modules.checks import REDUCTIONS, check_sizes
from ner_experiments.modules.decoding import (
    Allowed,
    HardConstraints,
    Mask,
    Real,
    Scores,
    Spans,
    Tags,
    Transitions,
    at_least_float32,
    center,
    check_inputs,
    viterbi,
)
from ner_experiments.modules.forward_backward import span_product


class Softmax(nn.Module):
    """p(y | x) = prod_i softmax(scores[i])[y_i].

    The loss is the cross-entropy summed over the tokens of the batch. `reduction` sets its divisor: the number of
    sentences ("sentence", as in the CRF's loss), the number of tokens ("token", Li et al. 2020), or 1 ("sum",
    Zukov-Gregoric et al. 2018).

    With `constrained`, decoding returns the most probable of the tag sequences that `allowed` permits. Loss and
    marginals remain those of independent tokens.

    Implements `decoding.Decoder`.
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

    def loss(self, scores: Scores, tags: Tags, mask: Mask, real: Real | None = None) -> Float[Tensor, ""]:
        """-log p(tags | scores), summed over the tokens and divided according to `reduction`."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask, tags=tags)
        log_probabilities = center(scores, mask).log_softmax(2)
        gold = log_probabilities.gather(2, tags.masked_fill(~mask, 0).unsqueeze(2)).squeeze(2)
        counted = mask if real is None else mask & real[:, None]
        total = -gold.masked_fill(~counted, 0).sum()
        if self.reduction == "sentence":
            return total / (len(scores) if real is None else real.sum())
        return total / counted.sum() if self.reduction == "token" else total

    def decode(self, scores: Scores, mask: Mask) -> Tags:
        """Most probable tags, 0 at padding; ties go to the lowest tag (see `viterbi`)."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask)
        transitions = self.constrained_transitions(scores.dtype)
        if transitions is None:
            return scores.argmax(2).masked_fill(~mask, 0)
        # Centered scores differ from log-probabilities by a constant per token, which changes no argmax.
        return viterbi(center(scores, mask), mask, transitions)

    @torch.no_grad()
    def span_probabilities(
        self, scores: Scores, tags: Tags, mask: Mask, spans: Spans
    ) -> Float[Tensor, " spans"]:
        """Product of the tokens' probabilities over each span: tags are independent given the scores."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask, tags=tags)
        chosen = tags.masked_fill(~mask, 0).unsqueeze(2)
        return span_product(center(scores, mask).log_softmax(2).gather(2, chosen).squeeze(2), spans)

    def constrained_transitions(self, dtype: torch.dtype) -> Transitions | None:
        """Transition scores in decoding, in at least float32: 0 or `FORBIDDEN`; None without constraints."""
        if self.constraints is None:
            return None
        zeros = at_least_float32(
            torch.zeros(self.num_tags, dtype=dtype, device=self.constraints.start.device)
        )
        return self.constraints(Transitions(zeros, torch.diag(zeros), zeros))
