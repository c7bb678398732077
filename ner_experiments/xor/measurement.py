"""How far a token's tag scores are from a sum of its past and its future: the mixed second difference.

Scores come in fours, `scores[n, i, j]`: the tag scores of one token with past i and future j, i and j in
{0, 1}. If they are a sum, s(p, f) = a(p) + c(f) (Li, Fu & Ma 2020, section 3.3), then

    s(p1, f1) - s(p1, f2) - s(p2, f1) + s(p2, f2) = 0

for each tag, whatever the weights; for one pair of contexts or more it is not 0 if past and future interact.
Scores are those before the softmax or CRF: what a CRF adds is the same in all four.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

ROUNDING = 1e-9
"""In float64 a sum's interaction stays orders of magnitude below this, and other models' above."""


def second_difference(scores: Float[Tensor, "pairs 2 2 tags"]) -> Float[Tensor, "pairs tags"]:
    """s(p1, f1) - s(p1, f2) - s(p2, f1) + s(p2, f2)."""
    return scores[:, 0, 0] - scores[:, 0, 1] - scores[:, 1, 0] + scores[:, 1, 1]


def interaction(scores: Float[Tensor, "pairs 2 2 tags"]) -> Float[Tensor, " pairs"]:
    """The largest second difference of any tag, relative to the largest of all scores; at most 4."""
    size = scores.abs().amax((1, 2, 3)).clamp(min=torch.finfo(scores.dtype).tiny)
    return second_difference(scores).abs().amax(1) / size


def decided(scores: Float[Tensor, "pairs 2 2 tags"]) -> Bool[Tensor, " pairs"]:
    """Whether the best tag of (p1, f1) is due to interaction: a sum would make it another.

    A sum that has the other three scores has s(p1, f2) + s(p2, f1) - s(p2, f2) here.
    """
    additive = scores[:, 0, 1] + scores[:, 1, 0] - scores[:, 1, 1]
    return scores[:, 0, 0].argmax(1) != additive.argmax(1)


def tags_form_xor(scores: Float[Tensor, "pairs 2 2 tags"]) -> Bool[Tensor, " pairs"]:
    """Whether the four best tags are an XOR: i for (p1, f1) and (p2, f2), another one for the other two.

    No sum can have these, and some sum has any other four tags.
    """
    best = scores.argmax(3)
    same = (best[:, 0, 0] == best[:, 1, 1]) & (best[:, 0, 1] == best[:, 1, 0])
    return same & (best[:, 0, 0] != best[:, 0, 1])
