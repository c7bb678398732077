"""The CRF's Triton kernels in place of all others: on a GPU, or else in Triton's interpreter."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from ner_experiments.modules import compiled, crf_cuda
from ner_experiments.modules.decoding import Transitions

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # and the interpreter, see conftest.py
LENGTHS = torch.tensor([5, 1, 3])


@contextmanager
def kernels_serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU's tensors too, where the interpreter stands for a GPU. What is made is made on the device."""
    if DEVICE == "cpu":
        monkeypatch.setattr(compiled, "serve", lambda scores: False)
        monkeypatch.setattr(crf_cuda, "serve", lambda scores: scores.shape[2] <= crf_cuda.MOST_TAGS)
    with torch.device(DEVICE):
        yield


def make_transitions(num_tags: int, scale: float, forbidden: float = 0.0) -> Transitions:
    """About half of the transitions may be forbidden, but none from and to the first tag."""
    pairs = scale * torch.randn(num_tags, num_tags)
    start, end = scale * torch.randn(num_tags), scale * torch.randn(num_tags)
    if forbidden:
        for scores in (pairs[1:, 1:], start[1:], end[1:]):
            scores[torch.rand(scores.shape) < 0.5] = forbidden
    return Transitions(start, pairs, end)
