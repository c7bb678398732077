"""Which modules are traced in another form: those with a loop over time or an operator that ONNX lacks."""

from functools import singledispatch

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ner_experiments.export.over_time import BestPath, GRUCell, LSTMCell, LSTMs
from ner_experiments.modules.crf import CRF
from ner_experiments.modules.direct import SparseScores
from ner_experiments.modules.lstms import Weights
from ner_experiments.modules.peephole import PeepholeLayer, PeepholeLSTM
from ner_experiments.modules.recurrent import weights_of
from ner_experiments.modules.softmax import Softmax
from ner_experiments.modules.units import BiLSTMUnits


@singledispatch
def traceable(module: nn.Module) -> nn.Module:
    """What computes the same as the module and can be traced; changes the module's parts in place.

    An architecture of one's own needs a form here only if it loops over time itself.
    """
    for name, part in module.named_children():
        setattr(module, name, traceable(part))
    return module


@traceable.register
def _(module: nn.LSTM) -> nn.Module:
    return LSTMCell(list(weights_of(module)))


@traceable.register
def _(module: nn.GRU) -> nn.Module:
    return GRUCell(module)


@traceable.register
def _(module: PeepholeLSTM) -> nn.Module:
    return LSTMCell([layer.weights() for layer in module.layers if isinstance(layer, PeepholeLayer)])


@traceable.register
def _(module: BiLSTMUnits) -> nn.Module:
    return Units(module.weights())


@traceable.register
def _(module: CRF) -> nn.Module:
    return BestPath(module.scored(torch.float32))


@traceable.register
def _(module: Softmax) -> nn.Module:
    transitions = module.scored(torch.float32)
    return module if transitions is None else BestPath(transitions)


@traceable.register
def _(module: SparseScores) -> nn.Module:
    return SummedScores(module.weight)


class Units(nn.Module):
    """`BiLSTMUnits`, in evaluation."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.lstms = LSTMs(weights)

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time units out"]:
        return torch.cat(list(self.states(x[None], lengths)), dim=-1)

    def states(
        self, x: Float[Tensor, "inputs batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "directions batch time units size"]:
        return self.lstms(x, lengths, (False, True))


class SummedScores(nn.Module):
    """`SparseScores` without `embedding_bag`."""

    weight: Tensor

    def __init__(self, weight: Float[Tensor, "features tags"]) -> None:
        super().__init__()
        self.register_buffer("weight", weight.detach().index_fill(0, torch.tensor([0]), 0))

    def forward(self, ids: Int[Tensor, "rows features"]) -> Float[Tensor, "rows tags"]:
        return nn.functional.embedding(ids, self.weight).sum(1)
