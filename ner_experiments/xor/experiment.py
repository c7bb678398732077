"""The XOR limit as a training experiment: how many of four phrases can a tagger learn?"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ner_experiments.tagger import Decoder


class Outcome(NamedTuple):
    """The most phrases that were right at once, and the step, from 0, at which they first were."""

    right: int
    step: int


def most_right(
    *,
    scores: Callable[[], Float[Tensor, "phrases time tags"]],
    decoder: Decoder,
    optimizer: torch.optim.Optimizer,
    tags: Int[Tensor, "phrases time"],
    mask: Bool[Tensor, "phrases time"],
    num_steps: int,
) -> Outcome:
    """Trains on all phrases at once until all are right, for `num_steps` steps at most.

    A phrase is right if all its tags are. They are decoded from the scores that the step trains on, so there
    should be no dropout.
    """
    best = Outcome(right=-1, step=0)
    for step in range(num_steps + 1):
        now = scores()
        wrong = (decoder.decode(now.detach(), mask) != tags) & mask
        right = int((~wrong.any(1)).sum())
        if right > best.right:
            best = Outcome(right, step)
        if right == len(tags) or step == num_steps:
            break
        optimizer.zero_grad()
        torch.autograd.backward(decoder.loss(now, tags, mask))
        optimizer.step()
    return best
