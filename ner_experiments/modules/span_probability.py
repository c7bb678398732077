"""How probable it is that some tokens in a row have certain tags, whatever tags the others have."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ner_experiments.modules.decoding import Transitions, centred
from ner_experiments.modules.forward_backward import marginals

Spans = Int[Tensor, "spans 3"]
"""The number of a sentence in its batch, the first token, the token after the last; none is empty."""


@torch.no_grad()
def of_chain(
    scores: Float[Tensor, "batch time tags"],
    tags: Int[Tensor, "batch time"],
    mask: Bool[Tensor, "batch time"],
    spans: Spans,
    transitions: Transitions,
) -> Float[Tensor, " spans"]:
    """p(y_s = tags_s, ..., y_e = tags_e | scores) for each span from s to e, in a linear chain.

    From right to left y is a Markov chain. With a_i(j), the log of the sum of exp(score) over all tags of the
    tokens before i, given that y_i = j,

        p(y_i = j | y_{i+1} = k) = exp(a_i(j) + A[j, k] + f[i+1, k] - a_{i+1}(k)),
        p(y_s, ..., y_e) = p(y_e) prod_{i=s..e-1} p(y_i | y_{i+1}).

    That is no product of the tokens' marginals, which would take the tags for independent. The sums a are
    float64: in float32 those of a long sentence differ by less than their rounding.
    """
    sentence, _, end = spans.unbind(1)
    at_the_end = marginals(scores, mask, transitions)[sentence, end - 1, tags[sentence, end - 1]]
    if scores.shape[1] == 1:
        return at_the_end
    before_the_end = spans - spans.new_tensor([0, 0, 1])
    return at_the_end * product(_links(scores, tags, mask, transitions), before_the_end).to(scores.dtype)


def _links(
    scores: Tensor, tags: Tensor, mask: Tensor, transitions: Transitions
) -> Float[Tensor, "batch steps"]:
    """log p(y_i = tags_i | y_{i+1} = tags_{i+1}) of each token but the last; at padding it means nothing."""
    tags = tags.masked_fill(~mask, 0)
    start, pairs = transitions.start.double(), transitions.pairs.double()
    scores = centred(scores.double(), mask)
    sums = [start + scores[:, 0]]
    for token in scores.unbind(1)[1:]:
        sums.append(torch.logsumexp(sums[-1].unsqueeze(2) + pairs, 1) + token)
    chosen = tags.unsqueeze(2)
    a = torch.stack(sums, 1).gather(2, chosen).squeeze(2)
    f = scores.gather(2, chosen).squeeze(2)
    return a[:, :-1] + pairs[tags[:, :-1], tags[:, 1:]] + f[:, 1:] - a[:, 1:]


def product(log_probabilities: Float[Tensor, "batch steps"], spans: Spans) -> Float[Tensor, " spans"]:
    """Over the tokens of each span, which may have none: then 1."""
    sentence, start, end = spans.unbind(1)
    lengths = end - start
    number = torch.repeat_interleave(torch.arange(len(spans), device=spans.device), lengths)
    first = lengths.cumsum(0) - lengths
    token = torch.arange(len(number), device=spans.device) + (start - first)[number]
    total = log_probabilities.new_zeros(len(spans))
    return total.index_add_(0, number, log_probabilities[sentence[number], token]).exp()
