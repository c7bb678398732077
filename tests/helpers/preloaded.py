"""Modules and kernels that a run needs until its first step, loaded: a process forked from this one starts at once."""

import contextlib
import os

import pytest  # noqa: F401
import torch

import ner_experiments.commands.train
import ner_experiments.launch.summary
import ner_experiments.train  # noqa: F401
from ner_experiments.modules.kernels import cpu

with contextlib.suppress(ImportError):
    import transformers.models.bert.modeling_bert  # noqa: F401

SCORES = torch.zeros(1, 1, 1)
cpu.supports_crf(SCORES)
for gradient in (True, False):
    with torch.set_grad_enabled(gradient):
        cpu.supports_lstm(SCORES)

# its first folder served to find this file or the suite; forked commands are given their own
os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH", "").partition(os.pathsep)[2]
