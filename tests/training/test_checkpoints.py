"""Best weights: a step with a finite loss can still produce weights that are not finite."""

import pytest
import torch
from torch import nn

from ner_experiments.training.checkpoints import refuse_infinite


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_by_name(value: float) -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    refuse_infinite(module, epoch=3)
    with torch.no_grad():
        module[1].weight[0, 1] = value
    with pytest.raises(ValueError, match=r"^after epoch 3 some weights are not finite: 1\.weight$"):
        refuse_infinite(module, epoch=3)
