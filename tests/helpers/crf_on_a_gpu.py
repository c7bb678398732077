"""Run the CRF by its Triton kernels: on a GPU if there is one, else in Triton's interpreter."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from ner_experiments.modules.kernels import cpu, cuda

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # and the interpreter, see conftest.py
LENGTHS = torch.tensor([5, 1, 3])


@contextmanager
def use_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Context in which tensors are created on the device; with the interpreter, CPU tensors use the kernels too."""
    if DEVICE == "cpu":
        monkeypatch.setattr(cpu, "supports_crf", lambda scores: False)
        monkeypatch.setattr(cuda, "supports_crf", lambda scores: scores.shape[2] <= cuda.MOST_TAGS)
    with torch.device(DEVICE):
        yield
