"""The linear-chain conditional random field: loss, Viterbi decoding and posterior marginals."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ner_experiments.modules.checks import check_sizes
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
    certain,
    check_inputs,
    viterbi,
)
from ner_experiments.modules.forward_backward import marginals, negative_log_likelihood, span_probabilities


class CRF(nn.Module):
    """p(y | x) is proportional to exp(sum_{i=1..n} f[i, y_i] + sum_{i=0..n} A[y_i, y_{i+1}]).

    Yang & Xu (2020), eq. 9 and 10; Lample et al. (2016). y_0 and y_{n+1} denote the start and the end of the sentence;
    their transitions are `start` and `end`. `transitions[i, j]` is the score of tag j after tag i. All three are
    initialized uniformly in [-0.1, 0.1].

    With `constrained`, tag sequences that `allowed` does not permit have probability 0 in the loss, in decoding and in
    the marginals. Gold tags must then be permitted. The loss does not check this, because the check would synchronize
    with the GPU. For forbidden gold tags it is about 1e30.

    Implements `decoding.Decoder`.
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

    def loss(self, scores: Scores, tags: Tags, mask: Mask, real: Real | None = None) -> Float[Tensor, ""]:
        """-log p(tags | scores), averaged over the sentences of the batch."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask, tags=tags)
        scores = at_least_float32(scores)
        transitions = self.constrained_transitions(scores.dtype)
        if real is None:
            return negative_log_likelihood(scores, tags, mask, transitions)
        total = negative_log_likelihood(certain(scores, real), tags, mask, transitions) * len(real)
        return total / real.sum()

    def decode(self, scores: Scores, mask: Mask) -> Tags:
        """Most probable tags, 0 at padding; ties are broken as in `viterbi`."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask)
        scores = at_least_float32(scores)
        return viterbi(scores, mask, self.constrained_transitions(scores.dtype))

    def marginals(self, scores: Scores, mask: Mask) -> Scores:
        """p(y_i = tag | scores), 0 at padding; differentiable."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask)
        scores = at_least_float32(scores)
        return marginals(scores, mask, self.constrained_transitions(scores.dtype))

    def span_probabilities(
        self, scores: Scores, tags: Tags, mask: Mask, spans: Spans
    ) -> Float[Tensor, " spans"]:
        """p(y_i = tags_i for all i in the span | scores), exact: see `forward_backward.span_probabilities`."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask, tags=tags)
        scores = at_least_float32(scores)
        return span_probabilities(scores, tags, mask, spans, self.constrained_transitions(scores.dtype))

    def constrained_transitions(self, dtype: torch.dtype) -> Transitions:
        """Transitions in `dtype`, with the hard constraints applied if there are any."""
        transitions = Transitions(self.start, self.transitions, self.end)
        if transitions.start.dtype != dtype:
            transitions = Transitions(*(part.to(dtype) for part in transitions))
        return transitions if self.constraints is None else self.constraints(transitions)
