"""The LSTM with peepholes of Huang, Xu & Yu (2015), to be used wherever `nn.LSTM` is."""

from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ner_experiments.modules.checks import check_sizes


class PeepholeLSTM(nn.Module):
    """Layers of `PeepholeLayer`, built and called as `nn.LSTM(..., batch_first=True)` is."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, *, batch_first: Literal[True] = True
    ):
        super().__init__()
        check_sizes(num_layers=num_layers, hidden_size=hidden_size)
        self.layers = nn.ModuleList(
            PeepholeLayer(input_size=size, hidden_size=hidden_size)
            for size in [input_size] + (num_layers - 1) * [hidden_size]
        )

    def forward(
        self, x: Float[Tensor, "batch time in"]
    ) -> tuple[Float[Tensor, "batch time out"], Float[Tensor, "batch out"]]:
        """The states of the last layer, and the last of them."""
        for layer in self.layers:
            x = layer(x)
        return x, x[:, -1]


class PeepholeLayer(nn.Module):
    """An LSTM whose gates see the cell: i and f see c_{t-1}, o sees c_t, each unit its own (eq. 3).

    `peepholes` holds the diagonals of W_ci, W_cf and W_co. Gates stand in PyTorch's order: input, forget,
    cell, output. Weights start as those of `nn.LSTM`, uniform within 1 / sqrt(hidden_size); the paper does
    not say.
    """

    def __init__(self, *, input_size: int, hidden_size: int):
        super().__init__()
        self.input_weight = nn.Parameter(torch.empty(4 * hidden_size, input_size))
        self.state_weight = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        self.peepholes = nn.Parameter(torch.empty(3, hidden_size))
        self.bias = nn.Parameter(torch.empty(4 * hidden_size))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(hidden_size**-0.5), hidden_size**-0.5)

    def forward(self, x: Float[Tensor, "batch time in"]) -> Float[Tensor, "batch time out"]:
        gates = nn.functional.linear(x, self.input_weight, self.bias).transpose(0, 1)
        gates = gates.to(self.state_weight.dtype)
        with torch.autocast(x.device.type, enabled=False):  # it would round the state at every step
            states: Tensor = Steps.apply(gates, self.state_weight, self.peepholes)  # type: ignore[no-untyped-call]
        return states.transpose(0, 1)


class Steps(torch.autograd.Function):
    """The time loop of eq. 3, from zero states: what the input gives each gate -> h, both [time batch size].

    Its backward pass is written out: what does not depend on the step after is computed for all steps at
    once, and the weights' gradients are one product each. That is half of autograd's time.
    """

    @staticmethod
    def forward(
        ctx: Any,
        gates: Float[Tensor, "time batch gates"],
        weight: Float[Tensor, "gates size"],
        peepholes: Float[Tensor, "3 size"],
    ) -> Float[Tensor, "time batch size"]:
        time, batch, size = *gates.shape[:2], weight.shape[1]
        acts = gates.new_empty(gates.shape)
        h, c = gates.new_zeros(2, time + 1, batch, size)  # states 0 stand before the first token
        for t in range(time):
            act = torch.addmm(gates[t], h[t], weight.t(), out=acts[t]).view(batch, 4, size)
            act[:, :2].addcmul_(peepholes[:2], c[t, :, None]).sigmoid_()
            i, f, g, o = act.unbind(1)
            g.tanh_()
            torch.mul(f, c[t], out=c[t + 1]).addcmul_(i, g)
            o.addcmul_(peepholes[2], c[t + 1]).sigmoid_()
            torch.mul(o, c[t + 1].tanh(), out=h[t + 1])
        ctx.save_for_backward(acts, h, c, weight, peepholes)
        return h[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        acts, h, c, weight, peepholes = ctx.saved_tensors
        i, f, g, o = acts.chunk(4, dim=2)
        tanh_c = c[1:].tanh()
        # how c answers to what enters i, f and g, and h to what enters o
        slopes = torch.stack([g * i * (1 - i), c[:-1] * f * (1 - f), i * (1 - g**2), tanh_c * o * (1 - o)], 2)
        h_by_c = o * (1 - tanh_c**2) + slopes[:, :, 3] * peepholes[2]
        c_by_c = f + slopes[:, :, 0] * peepholes[0] + slopes[:, :, 1] * peepholes[1]
        by_gates = torch.empty_like(slopes)
        by_h = by_c = torch.zeros_like(h[0])
        for t in reversed(range(len(acts))):
            by_h = by_h + by_states[t]
            by_c = torch.addcmul(by_c, by_h, h_by_c[t])
            torch.mul(slopes[t, :, :3], by_c[:, None], out=by_gates[t, :, :3])
            torch.mul(slopes[t, :, 3], by_h, out=by_gates[t, :, 3])
            by_c = by_c * c_by_c[t]
            by_h = by_gates[t].flatten(1) @ weight
        cells = torch.stack([c[:-1], c[:-1], c[1:]], 2)
        by_peepholes = (by_gates[:, :, [0, 1, 3]] * cells).sum((0, 1))
        by_gates = by_gates.flatten(2)
        by_weight = by_gates.flatten(0, 1).t() @ h[:-1].flatten(0, 1)
        return by_gates, by_weight, by_peepholes
