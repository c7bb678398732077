"""The forward-backward algorithm of a linear chain: log partition, marginals and expected transitions."""

import math
from typing import Any, NamedTuple, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ner_experiments.modules.decoding import Transitions


class Posterior(NamedTuple):
    """What the forward-backward algorithm finds of p(y) = exp(score of y) / Z."""

    log_partition: Float[Tensor, " batch"]
    marginals: Float[Tensor, "batch time tags"]
    """p(y_i = tag), 0 at padding."""
    last: Float[Tensor, "batch tags"]
    """p(y_n = tag)."""
    counts: Float[Tensor, "batch tags tags"]
    """How often y is expected to go from one tag (row) to the next (column)."""


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
    """By products where no graph is asked for and they turn out exact, else by logs, which always serve.

    Products need a look at the result, for which a GPU would have to be waited for: CPU only.
    """
    found = None
    if scores.is_cpu and not torch.is_grad_enabled():
        with torch.autocast("cpu", enabled=False):  # it would take the products in bfloat16
            found = posterior_by_products(scores, mask, transitions)
    return posterior_by_logs(scores, mask, transitions) if found is None else found


def posterior_by_logs(
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


@torch.no_grad()
def posterior_by_products(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], transitions: Transitions
) -> Posterior | None:
    """The same chain, p(y_i | y_{i+1}) = alpha_i A / sum_i alpha_i A, with one matrix product for each step.

    alpha is scaled to a largest value of 1 at each step (Rabiner 1989, section V.A), for which centred scores
    (`decoding.centred`) are best. None if a sum comes near the smallest normal number: some of its summands
    may then have underflowed, and the result be wrong without a sign of it.
    """
    start, pairs, end = ((part - part.max()).exp() for part in transitions)
    emitted = scores.exp().unbind(1)
    real = mask.unsqueeze(2).unbind(1)
    alpha = start * emitted[0]
    scales = [alpha.amax(1, keepdim=True)]
    alphas = [alpha / scales[0]]
    sums = []
    for score, is_real in zip(emitted[1:], real[1:], strict=True):
        sums.append(alphas[-1] @ pairs)
        alpha = sums[-1] * score
        scales.append(alpha.amax(1, keepdim=True))
        alphas.append(torch.where(is_real, alpha / scales[-1], alphas[-1]))
    closing = alphas[-1] * end
    total = closing.sum(1, keepdim=True)
    if not torch.cat([*scales, *sums, total], dim=1).min() > torch.finfo(scores.dtype).tiny ** 0.8:
        return None

    marginals = [closing / total]
    ratios = [torch.zeros_like(closing)]
    back = pairs.t()
    for alpha, into, is_real in zip(alphas[-2::-1], sums[::-1], real[:0:-1], strict=True):
        ratios.append(torch.where(is_real, marginals[-1] / into, 0))
        marginals.append(torch.where(is_real, alpha * (ratios[-1] @ back), marginals[-1]))
    scaled_by = torch.cat(scales, dim=1).log().masked_fill(~mask, 0).sum(1) + total.squeeze(1).log()
    subtracted = transitions.start.max() + (mask.sum(1) - 1) * transitions.pairs.max() + transitions.end.max()
    return Posterior(
        log_partition=scaled_by + subtracted,
        marginals=torch.stack(marginals[::-1], dim=1) * mask.unsqueeze(2),
        last=marginals[0],
        counts=pairs * torch.einsum("tbi,tbj->bij", torch.stack(alphas), torch.stack(ratios[::-1])),
    )
