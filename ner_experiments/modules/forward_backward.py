"""The forward-backward algorithm of a linear chain: the likelihood of tags, and their marginals.

In PyTorch, for any device and any derivative. The kernels of `compiled` (CPU) and `crf_cuda` take over
wherever no graph of their result is asked for: in the loss, whose gradient they know in closed form, and in
marginals that nobody derives.

How probable it is that some tokens in a row have certain tags, whatever tags the others have.
"""

import math
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ner_experiments.modules.decoding import Transitions, centred
from ner_experiments.modules.kernels import cpu, cuda


class Posterior(NamedTuple):
    """What the forward-backward algorithm finds of p(y) = exp(score of y) / Z."""

    log_partition: Float[Tensor, " batch"]
    marginals: Float[Tensor, "batch time tags"]
    """p(y_i = tag), 0 at padding."""
    last: Float[Tensor, "batch tags"]
    """p(y_n = tag)."""
    counts: Float[Tensor, "batch tags tags"]
    """How often y is expected to go from one tag (row) to the next (column)."""


def negative_log_likelihood(
    scores: Float[Tensor, "batch time tags"],
    tags: Int[Tensor, "batch time"],
    mask: Bool[Tensor, "batch time"],
    transitions: Transitions,
) -> Float[Tensor, ""]:
    """-log p(tags | scores), the mean over the sentences; differentiable any number of times."""
    derived = is_derived(scores, transitions)
    if cpu.numba_serves(scores):
        if derived:
            return cast(Tensor, _CompiledLikelihood.apply(scores, tags, mask, *transitions))  # type: ignore[no-untyped-call]
        return cpu.likelihood(scores, tags, mask, *transitions, weight=1 / len(scores), derive=False)[0]
    if cuda.crf_serves(scores):
        if derived:
            return cast(Tensor, _CudaLikelihood.apply(scores, tags, mask, *transitions))  # type: ignore[no-untyped-call]
        return cuda.forward(scores, tags, mask, *transitions, keep=False)[0].mean().to(scores.dtype)
    return plain_likelihood(scores, tags, mask, transitions)


def marginals(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], transitions: Transitions
) -> Float[Tensor, "batch time tags"]:
    """p(y_i = tag | scores), 0 at padding; differentiable."""
    if not is_derived(scores, transitions):
        if cpu.numba_serves(scores):
            return cpu.likelihood(scores, None, mask, *transitions, weight=1.0, derive=True)[1]
        if cuda.crf_serves(scores):
            return cuda.marginals(scores, mask, *transitions)
    return posterior(centred(scores, mask), mask, transitions).marginals


def is_derived(scores: Tensor, transitions: Transitions) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in (scores, *transitions))


class _CompiledLikelihood(torch.autograd.Function):
    """Finds the gradient along with the value."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        ctx.save_for_backward(*inputs)
        loss, *ctx.gradients = cpu.likelihood(*inputs, weight=1 / len(inputs[0]), derive=True)
        return loss

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _derive_as_graph(gradient, *inputs)
        if ctx.gradients is None:
            _, *ctx.gradients = cpu.likelihood(*inputs, weight=1 / len(inputs[0]), derive=True)
        by_scores, *by_transitions = ctx.gradients
        ctx.gradients = None  # the caller's now, who may change them
        if gradient.item() != 1:
            for found in (by_scores, *by_transitions):
                found *= gradient
        return by_scores, None, None, *by_transitions


class _CudaLikelihood(torch.autograd.Function):
    """Finds the gradient on the way back, times what comes from there, which nobody waits for."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        losses, steps = cuda.forward(*inputs, keep=True)
        ctx.save_for_backward(*inputs, steps)
        return losses.mean().to(inputs[0].dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, steps = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _derive_as_graph(gradient, *inputs)
        _, tags, mask, *transitions = inputs
        by_scores, *others = cuda.backward(gradient / len(tags), tags, mask, steps, *transitions)
        return by_scores, None, None, *others


def _derive_as_graph(
    gradient: Tensor, scores: Tensor, tags: Tensor, mask: Tensor, *transitions: Tensor
) -> tuple[Tensor | None, ...]:
    """For create_graph=True. By views of the inputs, since one of them may have been made of another."""
    scores, *others = views = [x.view_as(x) for x in (scores, *transitions)]
    loss = plain_likelihood(scores, tags, mask, Transitions(*others))
    derived = [x for x in views if x.requires_grad]
    found = iter(torch.autograd.grad(loss, derived, gradient, create_graph=True))
    by_scores, *by_transitions = (next(found) if x.requires_grad else None for x in views)
    return by_scores, None, None, *by_transitions


def plain_likelihood(
    scores: Float[Tensor, "batch time tags"],
    tags: Int[Tensor, "batch time"],
    mask: Bool[Tensor, "batch time"],
    transitions: Transitions,
) -> Float[Tensor, ""]:
    """`negative_log_likelihood` without kernels."""
    scores = centred(scores, mask)
    losses = log_partition(scores, mask, transitions) - sequence_score(scores, tags, mask, transitions)
    return losses.mean()


def log_partition(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], transitions: Transitions
) -> Float[Tensor, " batch"]:
    """log Z, the log of the sum of exp(score) over all tag sequences; differentiable any number of times."""
    return cast(Tensor, _LogPartition.apply(scores, mask, *transitions))  # type: ignore[no-untyped-call]


class _LogPartition(torch.autograd.Function):
    """`log_partition` with its gradient in closed form: marginals and expected transitions."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor, start: Tensor, pairs: Tensor, end: Tensor) -> Tensor:
        found = posterior(scores, mask, Transitions(start, pairs, end))
        ctx.save_for_backward(scores, mask, start, pairs, end, *found[1:])
        return found.log_partition

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scores, mask, start, pairs, end, marginals, last, counts = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True: once more, as a graph
            _, marginals, last, counts = posterior(scores, mask, Transitions(start, pairs, end))
        by_scores = marginals * gradient[:, None, None]
        by_pairs = (counts * gradient[:, None, None]).sum(0)
        return by_scores, None, by_scores[:, 0].sum(0), by_pairs, (last * gradient[:, None]).sum(0)


def posterior(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], transitions: Transitions
) -> Posterior:
    """Forward in log space, then back along the Markov chain p(y_i | y_{i+1}): the summands of each step.

    The batch is the last dimension in between: twice as fast on a CPU.
    """
    by_token = scores.permute(1, 2, 0).contiguous().unbind(0)
    real = mask.t().unbind(0)
    log_alpha = transitions.start.unsqueeze(1) + by_token[0]
    previous = []
    for score, is_real in zip(by_token[1:], real[1:], strict=True):
        log_sum, weights = _normalise(log_alpha.unsqueeze(1) + transitions.pairs.unsqueeze(2))
        previous.append(weights)
        log_alpha = torch.where(is_real, log_sum + score, log_alpha)
    log_z, last = _normalise(log_alpha + transitions.end.unsqueeze(1))

    marginals = [last]
    counts = torch.zeros_like(last.unsqueeze(1) * last)
    for weights, is_real in zip(previous[::-1], real[:0:-1], strict=True):
        pairs = weights * torch.where(is_real, marginals[-1], 0)
        counts = counts + pairs
        marginals.append(torch.where(is_real, pairs.sum(1), marginals[-1]))
    return Posterior(
        log_partition=log_z,
        marginals=torch.stack(marginals[::-1]).permute(2, 0, 1) * mask.unsqueeze(2),
        last=last.t(),
        counts=counts.permute(2, 0, 1),
    )


def _normalise(x: Float[Tensor, "tags *rest"]) -> tuple[Float[Tensor, "*rest"], Float[Tensor, "tags *rest"]]:
    """log sum exp x over the tags, and exp x divided by that sum.

    Weights below the root of the smallest normal number (1e-19 in float32) become exactly 0: far below
    rounding, and on a CPU `exp` takes 10 to 30 times as long for numbers that underflow.
    """
    lowest = math.log(torch.finfo(x.dtype).tiny) / 2
    top = x.detach().amax(0)
    weights = torch.threshold((x - top).clamp(min=lowest).exp(), 2 * math.exp(lowest), 0.0)
    total = weights.sum(0)
    return top + total.log(), weights / total


def sequence_score(
    scores: Float[Tensor, "batch time tags"],
    tags: Int[Tensor, "batch time"],
    mask: Bool[Tensor, "batch time"],
    transitions: Transitions,
) -> Float[Tensor, " batch"]:
    """The sum of the scores and transitions that each sentence's tags select."""
    tags = tags.masked_fill(~mask, 0)
    last = tags.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
    emitted = scores.gather(2, tags.unsqueeze(2)).squeeze(2).masked_fill(~mask, 0)
    passed = transitions.pairs[tags[:, :-1], tags[:, 1:]].masked_fill(~mask[:, 1:], 0)
    return emitted.sum(1) + passed.sum(1) + transitions.start[tags[:, 0]] + transitions.end[last]


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
