"""The linear-chain conditional random field: loss, Viterbi decoding and posterior marginals."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ner_experiments.modules.checks import check_sizes
from ner_experiments.modules.decoding import (
    Allowed,
    HardConstraints,
    Transitions,
    at_least_float32,
    check_inputs,
    viterbi,
)
from ner_experiments.modules.forward_backward import marginals, negative_log_likelihood, of_chain


class CRF(nn.Module):
    """p(y | x) is proportional to exp(sum_{i=1..n} f[i, y_i] + sum_{i=0..n} A[y_i, y_{i+1}]).

    Yang & Xu (2020), eq. 9 and 10; Lample et al. (2016). y_0 and y_{n+1} stand for the start and the end of
    the sentence; their transitions are `start` and `end`. `transitions[i, j]` is the score of tag j after
    tag i. All three begin uniform in [-0.1, 0.1].

    With `constrained`, the tag sequences that `allowed` does not permit have probability 0 in the loss, in
    decoding and in the marginals. Gold tags must then be permitted: the loss does not look, since a GPU would
    have to be waited for, and is some 1e30 if they are not.

    A `tagger.Decoder`. Computes in float32 at least, under autocast too.
    """

    def __init__(self, *, num_tags: int, allowed: Allowed | None = None, constrained: bool = False):
        super().__init__()
        check_sizes(num_tags=num_tags)
        self.num_tags = num_tags
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.start = nn.Parameter(torch.empty(num_tags))
        self.end = nn.Parameter(torch.empty(num_tags))
        self.constraints = HardConstraints(num_tags=num_tags, allowed=allowed) if constrained else None
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    def loss(
        self,
        scores: Float[Tensor, "batch time tags"],
        tags: Int[Tensor, "batch time"],
        mask: Bool[Tensor, "batch time"],
    ) -> Float[Tensor, ""]:
        """-log p(tags | scores), the mean over the sentences of the batch."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask, tags=tags)
        scores = at_least_float32(scores)
        return negative_log_likelihood(scores, tags, mask, self.scored(scores.dtype))

    def decode(
        self, scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"]
    ) -> Int[Tensor, "batch time"]:
        """The most probable tags, 0 where mask is False; of equals, as `viterbi` says."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask)
        scores = at_least_float32(scores)
        return viterbi(scores, mask, self.scored(scores.dtype))

    def marginals(
        self, scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time tags"]:
        """p(y_i = tag | scores) of each token, 0 where mask is False; differentiable."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask)
        scores = at_least_float32(scores)
        return marginals(scores, mask, self.scored(scores.dtype))

    def span_probabilities(
        self,
        scores: Float[Tensor, "batch time tags"],
        tags: Int[Tensor, "batch time"],
        mask: Bool[Tensor, "batch time"],
        spans: Int[Tensor, "spans 3"],
    ) -> Float[Tensor, " spans"]:
        """p(y_i = tags_i of all i from start to end - 1 | scores) of each span (sentence, start, end).

        Exact, for any other tags of the other tokens: see `of_chain`.
        """
        check_inputs(scores, num_tags=self.num_tags, mask=mask, tags=tags)
        scores = at_least_float32(scores)
        return of_chain(scores, tags, mask, spans, self.scored(scores.dtype))

    def scored(self, dtype: torch.dtype) -> Transitions:
        """The transitions as they count: with the constraints, if there are any."""
        transitions = Transitions(self.start, self.transitions, self.end)
        if transitions.start.dtype != dtype:
            transitions = Transitions(*(part.to(dtype) for part in transitions))
        return transitions if self.constraints is None else self.constraints(transitions)
