"""Traceable replacements of modules that loop over time or use an operator that ONNX lacks.

Loops become one operator, `scan`, which torch.export and ONNX support for any number of steps. Tracing would unroll
PyTorch's own LSTM and GRU, and cannot trace the kernels at all. The replacements compute the same as the modules up
to rounding, from left to right and including padding.
"""

from collections.abc import Sequence
from functools import singledispatch

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan  # PyTorch has it under no public name yet

from ner_experiments.modules import lstm
from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import Transitions, center
from ner_experiments.modules.direct import SparseScores
from ner_experiments.modules.kernels.rules import RESCALED
from ner_experiments.modules.lstm import Weights
from ner_experiments.modules.peephole import PeepholeLayer, PeepholeLSTM
from ner_experiments.modules.recurrent import weights_of
from ner_experiments.modules.softmax import Softmax
from ner_experiments.modules.units import BiLSTMUnits

State = tuple[Tensor, Tensor]


@singledispatch
def traceable(module: nn.Module) -> nn.Module:
    """A traceable equivalent of the module, whose children are replaced in place.

    A new architecture needs an entry here only if it loops over time itself.
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
    return ViterbiDecoder(module.constrained_transitions(torch.float32))


@traceable.register
def _(module: Softmax) -> nn.Module:
    transitions = module.constrained_transitions(torch.float32)
    return module if transitions is None else ViterbiDecoder(transitions)


@traceable.register
def _(module: SparseScores) -> nn.Module:
    return SummedScores(module.weight)


class LSTMs(nn.Module):
    """`lstm.lstm_states` with these weights."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        for name, part in weights._asdict().items():
            self.register_buffer(name, None if part is None else part.detach())

    def forward(
        self,
        x: Float[Tensor, "inputs batch time in"],
        lengths: Int[Tensor, " batch"],
        backwards: tuple[bool, ...],
    ) -> Float[Tensor, "directions batch time units size"]:
        weights = Weights(*(getattr(self, name) for name in Weights._fields))
        gates = lstm.reverse_directions(lstm.input_gates(x, weights), lengths, backwards)
        return lstm.reverse_directions(carry(gates, weights), lengths, backwards)


def carry(
    gates: Float[Tensor, "directions batch time units gates"], weights: Weights
) -> Float[Tensor, "directions batch time units size"]:
    """`lstm.recurrence` as a scan."""
    directions, batch, _, units, _ = gates.shape
    matrices = weights.recurrent.flatten(0, 1).mT
    peepholes = matrices.new_zeros(3, 1, 1, 1)
    if weights.peepholes is not None:
        peepholes = weights.peepholes.flatten(0, 1).transpose(0, 1)[:, :, None]
    nothing = gates.new_zeros(directions * units, batch, matrices.shape[1])

    def step(state: State, now: Tensor) -> tuple[State, Tensor]:
        h, c = state
        i, f, g, o = torch.baddbmm(now, h, matrices).chunk(4, dim=-1)
        i, f = (i + peepholes[0] * c).sigmoid(), (f + peepholes[1] * c).sigmoid()
        c = f * c + i * g.tanh()
        h = (o + peepholes[2] * c).sigmoid() * c.tanh()
        return (h, c), h.clone()  # scan requires that carry and output be different tensors

    _, states = scan(step, (nothing, nothing.clone()), gates.permute(2, 0, 3, 1, 4).flatten(1, 2))
    return states.unflatten(1, (directions, units)).permute(1, 3, 0, 2, 4)


class LSTMCell(nn.Module):
    """LSTM layers from left to right, as a replacement for the cell of a `UniRNN`; returns the last layer's states."""

    def __init__(self, layers: Sequence[Weights]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(map(LSTMs, layers))

    def forward(self, x: Float[Tensor, "batch time in"]) -> tuple[Float[Tensor, "batch time out"], None]:
        lengths = torch.full(x.shape[:1], x.shape[1])
        for layer in self.layers:
            x = layer(x[None], lengths, (False,))[0, :, :, 0]
        return x, None


class GRUCell(nn.Module):
    """Layers of an `nn.GRU`, as a replacement for the cell of a `UniRNN`; returns the last layer's states.

    r, z = sigmoid(U x_t + b + W h_{t-1} + d), n = tanh(U x_t + b + r (W h_{t-1} + d)), in the order r z n;
    h_t = (1 - z) n + z h_{t-1}.
    """

    def __init__(self, gru: nn.GRU) -> None:
        super().__init__()
        self.gru = gru

    def forward(self, x: Float[Tensor, "batch time in"]) -> tuple[Float[Tensor, "batch time out"], None]:
        for layer in self.gru.all_weights:
            x = self.read(x.transpose(0, 1), *layer).transpose(0, 1)
        return x, None

    def read(
        self,
        x: Float[Tensor, "time batch in"],
        by_x: Tensor,
        by_state: Tensor,
        bias: Tensor,
        state_bias: Tensor,
    ) -> Float[Tensor, "time batch out"]:
        matrix = by_state.T

        def step(h: Tensor, now: Tensor) -> tuple[Tensor, Tensor]:
            r, z, n = now.chunk(3, dim=-1)
            by_r, by_z, by_n = torch.addmm(state_bias, h, matrix).chunk(3, dim=-1)
            z = (z + by_z).sigmoid()
            h = (1 - z) * (n + (r + by_r).sigmoid() * by_n).tanh() + z * h
            return h, h.clone()

        _, states = scan(step, x.new_zeros(x.shape[1], len(matrix)), nn.functional.linear(x, by_x, bias))
        return states


class ViterbiDecoder(nn.Module):
    """`decoding.viterbi` with these transitions, as a decoder."""

    def __init__(self, transitions: Transitions) -> None:
        super().__init__()
        for name, part in transitions._asdict().items():
            self.register_buffer(name, part.detach())

    def decode(
        self, scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"]
    ) -> Int[Tensor, "batch time"]:
        start, pairs, end = (getattr(self, name) for name in Transitions._fields)
        by_token, real = center(scores, mask).transpose(0, 1), mask.T
        number = torch.arange(by_token.shape[0], device=mask.device)[:, None]

        def ahead(best: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            score, is_real, is_first, is_rescaled = now
            reached = torch.where(is_first, start, (best[:, :, None] + pairs).amax(1)) + score
            reached = torch.where(is_rescaled, reached - reached.amax(1, keepdim=True), reached)
            best = torch.where(is_real, reached, best)
            return best, best.clone()

        def back(tag: Tensor, now: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            before, follows = now
            previous = (before + pairs.T[tag]).argmax(1)
            tag = torch.where(follows, previous, tag)
            return tag, tag.clone()

        nothing = torch.zeros_like(by_token[0])
        last, best = scan(
            ahead, nothing, (by_token, real[:, :, None], number == 0, number % RESCALED == RESCALED - 1)
        )
        follows = torch.cat([real[1:], torch.zeros_like(real[:1])])
        _, path = scan(back, (last + end).argmax(1), (best, follows), reverse=True)
        return path.T.masked_fill(~mask, 0)


class Units(nn.Module):
    """`BiLSTMUnits` in evaluation mode."""

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
