"""The CRF's Triton kernels in place of all others: on a GPU, or else in Triton's interpreter."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from ner_experiments.modules.kernels import cpu, cuda

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # and the interpreter, see conftest.py
LENGTHS = torch.tensor([5, 1, 3])


@contextmanager
def kernels_serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The CPU's tensors too, where the interpreter stands for a GPU. What is made is made on the device."""
    if DEVICE == "cpu":
        monkeypatch.setattr(cpu, "supports_crf", lambda scores: False)
        monkeypatch.setattr(cuda, "supports_crf", lambda scores: scores.shape[2] <= cuda.MOST_TAGS)
    with torch.device(DEVICE):
        yield
