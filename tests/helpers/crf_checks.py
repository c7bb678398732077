"""Checks shared by the numba and the Triton kernels of the CRF."""

from typing import Any

import torch
from torch import Tensor

from ner_experiments.modules.decoding import Transitions, center, plain_viterbi, viterbi
from ner_experiments.modules.forward_backward import (
    marginals,
    negative_log_likelihood,
    plain_likelihood,
    posterior,
)


def make_transitions(num_tags: int, scale: float, forbidden: float = 0.0) -> Transitions:
    """Random transitions; about half get the score `forbidden` if given, but none from and to the first tag."""
    pairs = scale * torch.randn(num_tags, num_tags)
    start, end = scale * torch.randn(num_tags), scale * torch.randn(num_tags)
    if forbidden:
        for scores in (pairs[1:, 1:], start[1:], end[1:]):
            scores[torch.rand(scores.shape) < 0.5] = forbidden
    return Transitions(start, pairs, end)


def derive(function: Any, dtype: torch.dtype, tensors: list[Tensor], tags: Tensor, mask: Tensor) -> Any:
    """The loss and its gradients with respect to `tensors`."""
    scores, *transitions = (x.to(dtype, copy=True).requires_grad_() for x in tensors)
    loss = function(scores, tags, mask, Transitions(*transitions))
    return loss.detach(), torch.autograd.grad(loss, [scores, *transitions])


def check_against_plain(tensors: list[Tensor], mask: Tensor) -> None:
    """Check loss, gradients, marginals and best tags in both precisions. `tensors`: scores and transitions."""
    gold = torch.zeros(mask.shape, dtype=torch.long)  # always permitted
    right, right_gradients = derive(plain_likelihood, torch.float64, tensors, gold, mask)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        loss, gradients = derive(negative_log_likelihood, dtype, tensors, gold, mask)
        torch.testing.assert_close(loss.double(), right, rtol=min(tolerance, 1e-6), atol=tolerance)
        for found, expected in zip(gradients, right_gradients, strict=True):
            assert found.dtype == dtype
            torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=2 * tolerance)

        scores, *transitions = (x.to(dtype) for x in tensors)
        found = marginals(scores, mask, Transitions(*transitions))
        double = Transitions(*(x.double() for x in transitions))
        expected = posterior(center(scores.double(), mask), mask, double).marginals
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=tolerance)
        best = plain_viterbi(scores, mask, Transitions(*transitions))
        assert torch.equal(viterbi(scores, mask, Transitions(*transitions)), best)


def check_backward_again(scores: Tensor, gold: Tensor, mask: Tensor) -> None:
    """Check that the gradient can be computed again, scales with the upstream gradient, and is differentiable."""
    # Start and end transitions are rows of the pairs: the gradient must count each use of these numbers once.
    scores.requires_grad_()
    pairs = torch.randn(5, 5, requires_grad=True)
    loss = negative_log_likelihood(scores, gold, mask, Transitions(pairs[0], pairs, pairs[1]))
    inputs = (scores, pairs)
    first = torch.autograd.grad(loss, inputs, retain_graph=True)
    again = torch.autograd.grad(loss, inputs, retain_graph=True)
    scaled = torch.autograd.grad(-3 * loss, inputs, retain_graph=True)
    graph = torch.autograd.grad(loss, inputs, create_graph=True)
    for one, two, three, four in zip(first, again, scaled, graph, strict=True):
        assert torch.equal(one, two)
        torch.testing.assert_close(three, -3 * one)
        assert four.requires_grad
        torch.testing.assert_close(four, one)
