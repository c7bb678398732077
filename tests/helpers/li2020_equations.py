"""Oracle of `test_li2020`: the equations of Li, Fu & Ma (2020), one sentence and one step at a time."""

import math
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor

Parameters = dict[str, Tensor]
Vectors = list[Tensor]


@dataclass
class Masks:
    """Factors of each dropout by module, one row per LSTM and sentence; 1 for modules that are not listed."""

    rows: dict[str, Tensor] = field(default_factory=dict)

    def of(self, name: str, row: int) -> Tensor:
        return self.rows[name][row] if name in self.rows else torch.ones((), dtype=torch.float64)


@dataclass
class Equations:
    """Equations for sentence number `sentence` of `batch`, whose masks apply; `p` holds the parameters by name."""

    p: Parameters
    masks: Masks
    sentence: int
    batch: int
    num_layers: int

    def lstm(self, layer: int, direction: int, xs: Vectors) -> Vectors:
        name, row = f"layers.{layer}", direction * self.batch + self.sentence
        read, carried = (self.masks.of(f"{name}.{dropout}", row) for dropout in ("dropout", "units.dropout"))
        parts = ("input_weights", "recurrent_weights", "biases")
        w, u, b = (self.p[f"{name}.units.{part}"][direction, 0] for part in parts)
        n = u.shape[1]
        w_i, w_f, w_g, w_o = w.split(n)
        u_i, u_f, u_g, u_o = u.split(n)
        b_i, b_f, b_g, b_o = b.split(n)
        h = c = torch.zeros(n, dtype=torch.float64)
        states = []
        for x in xs:
            x, h = x * read, h * carried
            i = torch.sigmoid(w_i @ x + u_i @ h + b_i)
            f = torch.sigmoid(w_f @ x + u_f @ h + b_f)
            o = torch.sigmoid(w_o @ x + u_o @ h + b_o)
            c = f * c + i * torch.tanh(w_g @ x + u_g @ h + b_g)
            h = o * torch.tanh(c)
            states.append(h)
        return states

    def joined(self, ahead: Vectors, back: Vectors) -> Vectors:
        return [torch.cat([a, b]) for a, b in zip(ahead, back, strict=True)]

    def output(self, states: Vectors) -> Vectors:
        mask = self.masks.of("dropout", self.sentence)
        return [state * mask for state in states]

    def baseline(self, xs: Vectors) -> Vectors:  # section 3.2
        ahead, back = xs, xs
        for layer in range(self.num_layers):
            ahead = self.lstm(layer, 0, ahead)
            back = self.lstm(layer, 1, back[::-1])[::-1]
        return self.output(self.joined(ahead, back))

    def cross(self, xs: Vectors) -> Vectors:  # section 3.5
        for layer in range(self.num_layers):
            xs = self.joined(self.lstm(layer, 0, xs), self.lstm(layer, 1, xs[::-1])[::-1])
        return self.output(xs)


def attention(p: Parameters, hs: Vectors, num_heads: int, head_size: int) -> tuple[Vectors, list[Vectors]]:
    """C^1 || ... || C^m of each token, and alpha^i[t] as rows[i][t] (section 3.6)."""
    bounds = [*pairwise(range(0, num_heads * head_size + 1, head_size))]
    alphas: list[Vectors] = []
    contexts: list[Vectors] = []
    for start, stop in bounds:
        w_q, w_k, w_v = (p[f"{name}.weight"][start:stop] for name in ("query", "key", "value"))
        alphas.append([])
        contexts.append([])
        for h in hs:
            scores = [sum((w_q @ h)[d] * (w_k @ other)[d] for d in range(head_size)) for other in hs]
            exponentials = [torch.exp(score / math.sqrt(head_size)) for score in scores]
            alpha = [exponential / sum(exponentials) for exponential in exponentials]
            alphas[-1].append(torch.stack(alpha))
            contexts[-1].append(sum(a * (w_v @ other) for a, other in zip(alpha, hs, strict=True)))
    return [torch.cat([*parts]) for parts in zip(*contexts, strict=True)], alphas
