"""What a run imports and loads until its first step. Processes that are forked from one with all this start at once."""

import os

import torch

import ner_experiments.commands.train
import ner_experiments.launch.summary
import ner_experiments.train  # noqa: F401
from ner_experiments.modules.kernels import cpu

SCORES = torch.zeros(1, 1, 1)
assert cpu.supports_crf(SCORES)
for gradient in (True, False):
    with torch.set_grad_enabled(gradient):
        assert cpu.supports_lstm(SCORES)

os.environ.pop("PYTHONPATH", None)  # of this folder: the commands that are forked have their own
