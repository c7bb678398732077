"""The forward-backward algorithm of a linear chain: likelihood of tags, marginals, and probabilities of spans.

The algorithm is written here in PyTorch, for any device and any order of derivative. The kernels in `kernels/cpu.py`
and `kernels/cuda.py` replace it where the gradient is known in closed form (the loss) or not needed (marginals).
"""

import math
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Float
from torch import Tensor

from ner_experiments.modules.decoding import (
    Mask,
    Scores,
    Spans,
    Tags,
    Transitions,
    center,
    check_mask,
    check_tags,
    widen,
)
from ner_experiments.modules.kernels import cpu, cuda


def negative_log_likelihood(
    scores: Scores, tags: Tags, mask: Mask, transitions: Transitions
) -> Float[Tensor, ""]:
    """-log p(tags | scores), averaged over the sentences; differentiable any number of times."""
    with_gradient = needs_gradient(scores, transitions)
    if cpu.supports_crf(scores):
        if with_gradient:
            return cast(Tensor, _NumbaLikelihood.apply(scores, tags, mask, *transitions))  # type: ignore[no-untyped-call]
        return cpu.likelihood(scores, tags, mask, *transitions, weight=1 / len(scores), gradient=False)[0]
    if cuda.supports_crf(scores):
        if with_gradient:
            return cast(Tensor, _TritonLikelihood.apply(scores, tags, mask, *transitions))  # type: ignore[no-untyped-call]
        return cuda.forward(scores, tags, mask, *transitions, save=False)[0].mean().to(scores.dtype)
    return plain_likelihood(scores, tags, mask, transitions)


def marginals(scores: Scores, mask: Mask, transitions: Transitions) -> Scores:
    """p(y_i = tag | scores), 0 at padding; differentiable."""
    if not needs_gradient(scores, transitions):
        if cpu.supports_crf(scores):
            return cpu.likelihood(scores, None, mask, *transitions, weight=1.0, gradient=True)[1]
        if cuda.supports_crf(scores):
            return cuda.marginals(scores, mask, *transitions)
    check_mask(mask)
    wide, transitions = widen(scores, transitions)
    return posterior(center(wide, mask), mask, transitions).marginals.to(scores.dtype)


@torch.no_grad()
def span_probabilities(
    scores: Scores, tags: Tags, mask: Mask, spans: Spans, transitions: Transitions
) -> Float[Tensor, " spans"]:
    """p(y_s = tags_s, ..., y_e = tags_e | scores) for each span from s to e.

    Read from right to left, y is a Markov chain. Let a_i(j) be the log of the sum of exp(score) over all tag sequences
    of the tokens before i, given y_i = j. Then

        p(y_i = j | y_{i+1} = k) = exp(a_i(j) + A[j, k] + f[i+1, k] - a_{i+1}(k)),
        p(y_s, ..., y_e) = p(y_e) prod_{i=s..e-1} p(y_i | y_{i+1}).

    The product of the tokens' marginals would treat the tags as independent. The a_i are computed in float64, because
    in a long sentence they differ by less than the rounding error of float32.
    """
    sentence, _, end = spans.unbind(1)
    last = marginals(scores, mask, transitions)[sentence, end - 1, tags[sentence, end - 1]]
    if scores.shape[1] == 1:
        return last
    before_last = spans - spans.new_tensor([0, 0, 1])
    conditionals = _log_conditionals(scores, tags, mask, transitions)
    return last * span_product(conditionals, before_last).to(scores.dtype)


def needs_gradient(scores: Tensor, transitions: Transitions) -> bool:
    return torch.is_grad_enabled() and any(x.requires_grad for x in (scores, *transitions))


class _NumbaLikelihood(torch.autograd.Function):
    """Mean loss, whose gradient is computed in the forward pass."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        ctx.save_for_backward(*inputs)
        loss, *ctx.gradients = cpu.likelihood(*inputs, weight=1 / len(inputs[0]), gradient=True)
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable_gradient(upstream, *inputs)
        if ctx.gradients is None:
            _, *ctx.gradients = cpu.likelihood(*inputs, weight=1 / len(inputs[0]), gradient=True)
        grad_scores, *grad_transitions = ctx.gradients
        ctx.gradients = None  # the caller owns them now, and may change them in place
        if upstream.item() != 1:
            for gradient in (grad_scores, *grad_transitions):
                gradient *= upstream
        return grad_scores, None, None, *grad_transitions


class _TritonLikelihood(torch.autograd.Function):
    """Mean loss, whose gradient is computed in `backward`, scaled by the upstream gradient without a device sync."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Tensor:
        losses, steps = cuda.forward(*inputs, save=True)
        ctx.save_for_backward(*inputs, steps)
        return losses.mean().to(inputs[0].dtype)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, steps = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable_gradient(upstream, *inputs)
        _, tags, mask, *transitions = inputs
        grad_scores, *others = cuda.backward(upstream / len(tags), tags, mask, steps, *transitions)
        return grad_scores, None, None, *others


def _differentiable_gradient(
    upstream: Tensor, scores: Tensor, tags: Tensor, mask: Tensor, *transitions: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradient as a graph, for create_graph=True.

    Differentiates with respect to views of the inputs, since one input may be a function of another.
    """
    scores, *others = views = [x.view_as(x) for x in (scores, *transitions)]
    loss = plain_likelihood(scores, tags, mask, Transitions(*others))
    wanted = [x for x in views if x.requires_grad]
    gradients = iter(torch.autograd.grad(loss, wanted, upstream, create_graph=True))
    grad_scores, *grad_transitions = (next(gradients) if x.requires_grad else None for x in views)
    return grad_scores, None, None, *grad_transitions


def plain_likelihood(scores: Scores, tags: Tags, mask: Mask, transitions: Transitions) -> Float[Tensor, ""]:
    """`negative_log_likelihood` in PyTorch."""
    check_mask(mask)
    check_tags(tags, mask, scores.shape[2])
    wide, transitions = widen(scores, transitions)
    wide = center(wide, mask)
    losses = log_partition(wide, mask, transitions) - sequence_score(wide, tags, mask, transitions)
    return losses.mean().to(scores.dtype)


def log_partition(scores: Scores, mask: Mask, transitions: Transitions) -> Float[Tensor, " batch"]:
    """log Z, the log of the sum of exp(score) over all tag sequences; differentiable any number of times."""
    return cast(Tensor, _LogPartition.apply(scores, mask, *transitions))  # type: ignore[no-untyped-call]


class _LogPartition(torch.autograd.Function):
    """`log_partition` with its gradient in closed form: marginals and expected transition counts."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor, start: Tensor, pairs: Tensor, end: Tensor) -> Tensor:
        result = posterior(scores, mask, Transitions(start, pairs, end))
        ctx.save_for_backward(scores, mask, start, pairs, end, *result[1:])
        return result.log_partition

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, mask, start, pairs, end, marginals, last, counts = ctx.saved_tensors
        if torch.is_grad_enabled():  # create_graph=True: recompute as a graph
            _, marginals, last, counts = posterior(scores, mask, Transitions(start, pairs, end))
        grad_scores = marginals * upstream[:, None, None]
        grad_pairs = (counts * upstream[:, None, None]).sum(0)
        return grad_scores, None, grad_scores[:, 0].sum(0), grad_pairs, (last * upstream[:, None]).sum(0)


class Posterior(NamedTuple):
    """Result of the forward-backward algorithm for p(y) = exp(score of y) / Z."""

    log_partition: Float[Tensor, " batch"]
    marginals: Float[Tensor, "batch time tags"]
    """p(y_i = tag), 0 at padding."""
    last: Float[Tensor, "batch tags"]
    """p(y_n = tag)."""
    counts: Float[Tensor, "batch tags tags"]
    """Expected number of transitions from one tag (row) to the next (column)."""


def posterior(scores: Scores, mask: Mask, transitions: Transitions) -> Posterior:
    """Forward recursion in log space, then backward along the Markov chain p(y_i | y_{i+1}) that it defines.

    Internally the batch is the last dimension, which is twice as fast on a CPU.
    """
    by_token = scores.permute(1, 2, 0).contiguous().unbind(0)
    real = mask.t().unbind(0)
    log_alpha = transitions.start.unsqueeze(1) + by_token[0]
    conditionals = []
    for score, is_real in zip(by_token[1:], real[1:], strict=True):
        log_sum, conditional = _normalize(log_alpha.unsqueeze(1) + transitions.pairs.unsqueeze(2))
        conditionals.append(conditional)
        log_alpha = torch.where(is_real, log_sum + score, log_alpha)
    log_z, last = _normalize(log_alpha + transitions.end.unsqueeze(1))

    marginals = [last]
    counts = torch.zeros_like(last.unsqueeze(1) * last)
    for conditional, is_real in zip(conditionals[::-1], real[:0:-1], strict=True):
        pairs = conditional * torch.where(is_real, marginals[-1], 0)
        counts = counts + pairs
        marginals.append(torch.where(is_real, pairs.sum(1), marginals[-1]))
    return Posterior(
        log_partition=log_z,
        marginals=torch.stack(marginals[::-1]).permute(2, 0, 1) * mask.unsqueeze(2),
        last=last.t(),
        counts=counts.permute(2, 0, 1),
    )


def _normalize(
    x: Float[Tensor, " tags *rest"],
) -> tuple[Float[Tensor, "*rest"], Float[Tensor, " tags *rest"]]:
    """Log-sum-exp of x over the tags, and the softmax of x over the tags.

    Weights below the square root of the smallest normal number (1e-19 in float32) become exactly 0: they are far below
    rounding, and on a CPU `exp` is 10 to 30 times slower where it underflows.
    """
    lowest = math.log(torch.finfo(x.dtype).tiny) / 2
    top = x.detach().amax(0)
    weights = torch.threshold((x - top).clamp(min=lowest).exp(), 2 * math.exp(lowest), 0.0)
    total = weights.sum(0)
    return top + total.log(), weights / total


def sequence_score(
    scores: Scores, tags: Tags, mask: Mask, transitions: Transitions
) -> Float[Tensor, " batch"]:
    """Sum of the scores and transitions that each sentence's tags select."""
    tags = tags.masked_fill(~mask, 0)
    last = tags.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)
    emitted = scores.gather(2, tags.unsqueeze(2)).squeeze(2).masked_fill(~mask, 0)
    passed = transitions.pairs[tags[:, :-1], tags[:, 1:]].masked_fill(~mask[:, 1:], 0)
    return emitted.sum(1) + passed.sum(1) + transitions.start[tags[:, 0]] + transitions.end[last]


def _log_conditionals(
    scores: Tensor, tags: Tensor, mask: Tensor, transitions: Transitions
) -> Float[Tensor, "batch steps"]:
    """log p(y_i = tags_i | y_{i+1} = tags_{i+1}) for each token but the last; undefined at padding."""
    tags = tags.masked_fill(~mask, 0)
    scores, (start, pairs, _) = widen(scores, transitions)
    scores = center(scores, mask)
    sums = [start + scores[:, 0]]
    for token in scores.unbind(1)[1:]:
        sums.append(torch.logsumexp(sums[-1].unsqueeze(2) + pairs, 1) + token)
    chosen = tags.unsqueeze(2)
    a = torch.stack(sums, 1).gather(2, chosen).squeeze(2)
    f = scores.gather(2, chosen).squeeze(2)
    return a[:, :-1] + pairs[tags[:, :-1], tags[:, 1:]] + f[:, 1:] - a[:, 1:]


def span_product(log_probabilities: Float[Tensor, "batch steps"], spans: Tensor) -> Float[Tensor, " spans"]:
    """Product of the probabilities over the tokens of each span; 1 for an empty span."""
    sentence, start, end = spans.unbind(1)
    lengths = end - start
    number = torch.repeat_interleave(torch.arange(len(spans), device=spans.device), lengths)
    first = lengths.cumsum(0) - lengths
    token = torch.arange(len(number), device=spans.device) + (start - first)[number]
    total = log_probabilities.new_zeros(len(spans))
    return total.index_add_(0, number, log_probabilities[sentence[number], token]).exp()
