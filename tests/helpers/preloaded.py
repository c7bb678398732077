"""What a run imports and loads until its first step. Processes that are forked from one with all this start at once."""

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

# the first folder was set to find this file or the suite; forked commands have their own
os.environ["PYTHONPATH"] = os.environ.get("PYTHONPATH", "").partition(os.pathsep)[2]
