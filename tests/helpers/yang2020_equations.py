"""The oracle of `test_yang2020`: the paper's equations, one sentence and one step at a time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

LAYERS = 4


def sums(*sequences: Sequence[Any]) -> list[Any]:
    return [sum(vectors[1:], start=vectors[0]) for vectors in zip(*sequences, strict=True)]


class Equations:
    """One sentence as a list of vectors; `p` are the parameters by name."""

    def __init__(self, p: dict, dense=True, norm=True, activation="relu", cell="lstm"):
        self.p, self.dense, self.norm = p, dense, norm
        self.activation = {"relu": self.relu, "elu": self.elu, "none": lambda v: v}[activation]
        self.cell: Callable[..., Iterator[Any]] = {"lstm": self.lstm, "gru": self.gru}[cell]

    def relu(self, v):
        return v * (v > 0)

    def elu(self, v):
        return self.relu(v) + (v <= 0) * (torch.exp(v * (v <= 0)) - 1)

    def sigmoid(self, v):
        return 1 / (1 + torch.exp(-v))

    def weights(self, name: str) -> list[Any]:
        return [self.p[f"{name}.{part}_l0"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]

    def lstm(self, name: str, xs: list[Any]) -> Iterator[Any]:
        """Eq. 6, with weights in PyTorch's order, i f g o."""
        w, u, b, b_h = self.weights(name)
        h = c = 0 * u[0]
        for x in xs:
            i, f, g, o = (w @ x + b + u @ h + b_h).reshape(4, -1)
            c = self.sigmoid(i) * torch.tanh(g) + self.sigmoid(f) * c
            h = self.sigmoid(o) * torch.tanh(c)
            yield h

    def gru(self, name: str, xs: list[Any]) -> Iterator[Any]:
        """The GRU as documented by torch.nn.GRU, with weights in its order, r z n."""
        w, u, b, b_h = self.weights(name)
        h = 0 * u[0]
        for x in xs:
            (r, z, n), (r_h, z_h, n_h) = (w @ x + b).reshape(3, -1), (u @ h + b_h).reshape(3, -1)
            z = self.sigmoid(z + z_h)
            h = (1 - z) * torch.tanh(n + self.sigmoid(r + r_h) * n_h) + z * h
            yield h

    def both(self, ahead: Iterator[Any], back: Iterator[Any]) -> list[Any]:
        pairs = zip(ahead, reversed([*back]), strict=True)
        return [torch.concatenate([*pair]) for pair in pairs]

    def before(self, name: str, v):
        """Eq. 5 without dropout, as in evaluation."""
        if self.dense:
            v = self.p[f"{name}.dense.weight"] @ v
        if self.norm:
            deviation = v - v.mean()
            v = deviation / torch.sqrt((deviation**2).mean() + 1e-5)
            v = v * self.p[f"{name}.norm.weight"] + self.p[f"{name}.norm.bias"]
        return self.activation(v)

    def h(self, layer: int, rs: list[Any]) -> list[Any]:
        ds = [self.before(f"blocks.{layer}.before", r) for r in rs]
        name = f"blocks.{layer}.rnn"
        ahead = self.cell(f"{name}.left_to_right.cell", ds)
        return self.both(ahead, self.cell(f"{name}.right_to_left.cell", ds[::-1]))

    def stacked(self, xs):
        for layer in range(LAYERS):
            xs = self.h(layer, xs)
        return xs

    def local_residual(self, xs, h=None):
        """Eq. 7."""
        h = h or self.h
        hs = [h(0, xs)]
        r = hs[0]
        for layer in range(1, LAYERS):
            hs.append(h(layer, r))
            r = sums(hs[-2], hs[-1])
        return r

    def type_a(self, xs):
        """The sum of eq. 1."""
        hs = [self.h(0, xs)]
        for layer in range(1, LAYERS):
            hs.append(self.h(layer, sums(*hs)))
        return sums(*hs)

    def type_b(self, xs):
        rs = [self.h(0, xs)]
        for layer in range(1, LAYERS):
            rs.append(self.h(layer, sums(*rs)))
        return rs[-1]

    def type_d(self, xs):
        def one_way(name: str) -> Callable[..., list[Any]]:
            return lambda layer, rs: [*self.lstm(f"{name}.{layer}.rnn.cell", rs)]

        ahead = self.local_residual(xs, one_way("left_to_right"))
        back = self.local_residual(xs[::-1], one_way("right_to_left"))
        return self.both(iter(ahead), iter(back))
