"""Runs the CRF's Triton kernels on CUDA tensors: triton is imported, and they are compiled, on first use.

Nothing here waits for the device, which must not be asked what tags and masks hold. What the compiled kernels
of CPUs refuse with an error gives NaN here: the loss of tags that there are none of, or of a sentence without
tokens. Nothing is read or written out of bounds.
"""

import functools
import importlib
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ner_experiments.modules.cuda import have_triton

MOST_TAGS = 128
"""The square of it, twice, is what fits in a program's registers."""


@functools.cache
def kernels() -> Any:
    return importlib.import_module("ner_experiments.modules.crf_triton")


def serve(scores: Tensor) -> bool:
    return scores.is_cuda and scores.shape[2] <= MOST_TAGS and have_triton()


def forward(
    scores: Float[Tensor, "batch time tags"],
    tags: Int[Tensor, "batch time"] | None,
    mask: Bool[Tensor, "batch time"],
    *transitions: Tensor,
    keep: bool,
) -> tuple[Float[Tensor, " batch"], Float[Tensor, "batch time 3 tags"] | None]:
    """Each sentence's log Z, less the score of its tags, in float64; and what `backward` needs, if kept."""
    batch, time, size = scores.shape
    losses = scores.new_empty(batch, dtype=torch.float64)
    steps = scores.new_empty(batch, time, 3, size) if keep else None
    inputs = (scores.contiguous(), contiguous(tags), lengths(mask), stacked(*transitions))
    launch(kernels().forward, scores, *inputs, losses, steps)
    return losses, steps


def backward(
    weight: Float[Tensor, ""],
    tags: Int[Tensor, "batch time"] | None,
    mask: Bool[Tensor, "batch time"],
    steps: Float[Tensor, "batch time 3 tags"],
    *transitions: Tensor,
) -> list[Tensor]:
    """The gradient of the weighted sum of the losses by scores, start, pairs and end."""
    batch, time, _, size = steps.shape
    start, pairs, end = transitions
    by_scores = steps.new_zeros(batch, time, size)
    by_transitions = steps.new_empty(batch, size + 2, size)
    inputs = (weight, contiguous(tags), lengths(mask), stacked(start, pairs.t(), end), steps)
    launch(kernels().backward, by_scores, *inputs, by_scores, by_transitions)
    found = by_transitions.sum(0)
    return [by_scores, found[size], found[:size].t(), found[size + 1]]


def marginals(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], *transitions: Tensor
) -> Float[Tensor, "batch time tags"]:
    """p(y_i = tag), 0 at padding: the gradient of log Z."""
    _, steps = forward(scores, None, mask, *transitions, keep=True)
    assert steps is not None
    return backward(scores.new_ones(()), None, mask, steps, *transitions)[0]


def viterbi(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], *transitions: Tensor
) -> Int[Tensor, "batch time"]:
    tags = torch.empty(mask.shape, dtype=torch.long, device=mask.device)
    inputs = (scores.contiguous(), lengths(mask), stacked(*transitions))
    launch(kernels().viterbi, scores, *inputs, torch.empty_like(inputs[0]), tags)
    return tags.masked_fill_(~mask, 0)


def lengths(mask: Bool[Tensor, "batch time"]) -> Int[Tensor, " batch"]:
    return mask.sum(1, dtype=torch.int32)


def contiguous(tags: Tensor | None) -> Tensor | None:
    return None if tags is None else tags.contiguous()


def stacked(
    start: Float[Tensor, " tags"], pairs: Float[Tensor, "tags tags"], end: Float[Tensor, " tags"]
) -> Float[Tensor, "rows tags"]:
    return torch.cat([pairs, start[None], end[None]])


def launch(kernel: Any, like: Float[Tensor, "batch time tags"], *args: Tensor | None) -> None:
    """A program for each sentence, with a thread for each 32 pairs of tags."""
    batch, time, size = like.shape
    width = max(16, 1 << (size - 1).bit_length())
    with torch.cuda.device(like.get_device()):
        kernel[(batch,)](*args, time, size=size, width=width, num_warps=max(1, width**2 // 1024))
