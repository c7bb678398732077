"""What holds for every kind of the CRF's kernels."""

import torch
from torch import Tensor

from ner_experiments.modules.decoding import Transitions
from ner_experiments.modules.forward_backward import negative_log_likelihood


def check_backward_again(scores: Tensor, gold: Tensor, mask: Tensor) -> None:
    """The gradient is the same when taken again, scales, and can be derived in turn."""
    # All transitions are made of the same numbers: each way to these must count once.
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
