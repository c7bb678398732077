"""Att-BiLSTM of Li, Fu & Ma (2020), section 3.6, and the ablation of its output (table 5)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from ner_experiments.models.baseline import BaselineBiLSTM
from ner_experiments.modules.checks import check_sizes

LONG = 2500
"""Number of tokens above which attention weights are not stored; no sentence of the papers' corpora is that long.

At this length the weights of 8 heads take 200 MB per sentence.
"""


class SelfAttention(nn.Module):
    """C^i = alpha^i H W^{vi}, where alpha^i = softmax(H W^{qi} (H W^{ki})^T / sqrt(d_c)), for each head i.

    No biases and no output projection. Each W is Glorot-uniform, as in the released code.
    """

    def __init__(self, *, input_size: int, num_heads: int, head_size: int):
        super().__init__()
        check_sizes(num_heads=num_heads, head_size=head_size)
        self.num_heads = num_heads
        self.head_size = head_size
        self.output_size = num_heads * head_size
        self.query = nn.Linear(input_size, self.output_size, bias=False)
        self.key = nn.Linear(input_size, self.output_size, bias=False)
        self.value = nn.Linear(input_size, self.output_size, bias=False)
        for projection in (self.query, self.key, self.value):
            for one_head in torch.split(projection.weight, head_size):
                nn.init.xavier_uniform_(one_head)

    def forward(
        self, h: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch time out"], Float[Tensor, "batch heads time time"]]:
        """C^1 || ... || C^m, and alpha, where alpha[b, i, t, s] is the attention of token t to token s in head i.

        alpha is 0 where s is padding, and undefined where t is padding.
        """
        query, key, value = self._heads(h)
        weights = self._weights(query, key, lengths)
        return (weights @ value).transpose(1, 2).flatten(2), weights

    def contexts(
        self, h: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        """First result of `forward`, by PyTorch's fused kernel: memory is linear in the length, but time quadratic."""
        query, key, value = self._heads(h)
        is_token = torch.arange(h.shape[1], device=h.device) < lengths[:, None]
        # on a GPU the shortcut for batches without padding would have to wait for the lengths
        mask = None if h.is_cpu and is_token.all() else is_token[:, None, None]
        return scaled_dot_product_attention(query, key, value, mask).transpose(1, 2).flatten(2)

    def _heads(self, h: Tensor) -> list[Float[Tensor, "batch heads time size"]]:
        return [
            projection(h).unflatten(2, (self.num_heads, self.head_size)).transpose(1, 2)
            for projection in (self.query, self.key, self.value)
        ]

    def _weights(
        self, query: Tensor, key: Tensor, lengths: Tensor
    ) -> Float[Tensor, "batch heads queries time"]:
        is_token = torch.arange(key.shape[2], device=key.device) < lengths[:, None]
        scores = query @ key.transpose(2, 3) / self.head_size**0.5
        return scores.masked_fill(~is_token[:, None, None], -torch.inf).softmax(3)


class AttBiLSTM(nn.Module):
    """H || C^1 || ... || C^m: the states of `BaselineBiLSTM` and the contexts of each attention head.

    A forward hook on `attention` receives the attention weights, which are the heat maps of figure 2. It is not called
    for sentences of more than `LONG` tokens, whose weights are never in memory at once.
    """

    def __init__(
        self,
        *,
        input_size: int,
        num_layers: int,
        hidden_size: int,
        num_heads: int,
        head_size: int,
        dropout: float,
    ):
        super().__init__()
        self.bilstm = BaselineBiLSTM(
            input_size=input_size, num_layers=num_layers, hidden_size=hidden_size, dropout=dropout
        )
        states = self.bilstm.output_size
        self.attention = SelfAttention(input_size=states, num_heads=num_heads, head_size=head_size)
        self.output_size = states + self.attention.output_size

    def forward(
        self, x: Float[Tensor, "batch time in"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch time out"]:
        h = self.bilstm(x, lengths)
        # exports have one graph for any length
        if not torch.compiler.is_exporting() and h.shape[1] > LONG:
            contexts = self.attention.contexts(h, lengths)
        else:
            contexts, _ = self.attention(h, lengths)
        return torch.cat([h, contexts], dim=-1)

    def parts(self) -> dict[str, slice]:
        """Slice of the output for each part: H, C (all contexts), C1 ... Cm, the columns of table 5."""
        states, size = self.bilstm.output_size, self.attention.head_size
        heads = {
            f"C{head + 1}": slice(states + head * size, states + (head + 1) * size)
            for head in range(self.attention.num_heads)
        }
        return {"H": slice(states), "C": slice(states, self.output_size), **heads}


@contextmanager
def only(part: str, *, of: AttBiLSTM) -> Iterator[None]:
    """Context in which the model's output is 0 except for one of its `parts()`, as in the ablation of table 5.

    Raises ValueError if there is no such part.
    """
    parts = of.parts()
    if part not in parts:
        raise ValueError(f"part must be one of {', '.join(parts)}, got {part!r}")

    def zero_the_others(_: nn.Module, __: object, output: Tensor) -> Tensor:
        selected = torch.zeros_like(output)
        selected[..., parts[part]] = output[..., parts[part]]
        return selected

    handle = of.register_forward_hook(zero_the_others)
    try:
        yield
    finally:
        handle.remove()
