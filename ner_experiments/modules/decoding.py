"""What the decoders share: the constraints of a tag scheme, Viterbi, and the care their inputs need."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ner_experiments.modules.kernels import cpu, cuda

FORBIDDEN = -1e30
"""Score of what is forbidden: its probability is exactly 0, and unlike -inf it makes no NaN (inf - inf)."""


@runtime_checkable
class Allowed(Protocol):
    """What a tag scheme permits: i may open a sentence, j may follow i (`pairs[i][j]`), i may close it."""

    @property
    def start(self) -> Sequence[bool] | Tensor: ...
    @property
    def pairs(self) -> Sequence[Sequence[bool]] | Tensor: ...
    @property
    def end(self) -> Sequence[bool] | Tensor: ...


class Transitions(NamedTuple):
    """Scores of opening a sentence with a tag, of a tag (row) followed by another (column), of closing it."""

    start: Float[Tensor, " tags"]
    pairs: Float[Tensor, "tags tags"]
    end: Float[Tensor, " tags"]


class HardConstraints(nn.Module):
    """Sets the transitions that a tag scheme does not permit to `FORBIDDEN`.

    Not part of the state dict: weights trained without constraints can be decoded with them.
    """

    start: Bool[Tensor, " tags"]
    pairs: Bool[Tensor, "tags tags"]
    end: Bool[Tensor, " tags"]

    def __init__(self, *, num_tags: int, allowed: Allowed | None):
        super().__init__()
        if allowed is None:
            raise ValueError("constrained=True needs allowed, the transitions that the tag scheme permits")
        shapes = {"start": (num_tags,), "pairs": (num_tags, num_tags), "end": (num_tags,)}
        for name, shape in shapes.items():
            permitted = torch.as_tensor(getattr(allowed, name), dtype=torch.bool)
            if permitted.shape != shape:
                raise ValueError(
                    f"allowed.{name} must have the shape {shape} of num_tags, got {tuple(permitted.shape)}"
                )
            self.register_buffer(name, ~permitted, persistent=False)

    def forward(self, transitions: Transitions) -> Transitions:
        return Transitions(
            start=transitions.start.masked_fill(self.start, FORBIDDEN),
            pairs=transitions.pairs.masked_fill(self.pairs, FORBIDDEN),
            end=transitions.end.masked_fill(self.end, FORBIDDEN),
        )


def viterbi(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], transitions: Transitions
) -> Int[Tensor, "batch time"]:
    """The tags with the largest sum of scores and transitions, 0 where mask is False.

    Of equally good sequences, the one whose last tag has the lowest number, then its last but one, and so on.
    """
    if cpu.numba_serves(scores):
        return cpu.viterbi(scores, mask, *transitions)
    if cuda.crf_serves(scores):
        return cuda.viterbi(scores, mask, *transitions)
    return plain_viterbi(scores, mask, transitions)


@torch.no_grad()
def plain_viterbi(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"], transitions: Transitions
) -> Int[Tensor, "batch time"]:
    """`viterbi` without its kernel."""
    scores = centred(scores, mask)
    # Batch last: twice as fast on a CPU; maxima without indices: four times. The way back needs few indices.
    by_token = scores.permute(1, 2, 0).contiguous().unbind(0)
    real = mask.t().unbind(0)
    best = [transitions.start.unsqueeze(1) + by_token[0]]
    for score, is_real in zip(by_token[1:], real[1:], strict=True):
        reached = (best[-1].unsqueeze(1) + transitions.pairs.unsqueeze(2)).amax(0) + score
        best.append(torch.where(is_real, reached, best[-1]))

    path = [(best[-1] + transitions.end.unsqueeze(1)).argmax(0)]
    for before, is_real in zip(best[-2::-1], real[:0:-1], strict=True):
        previous = (before + transitions.pairs[:, path[-1]]).argmax(0)
        path.append(torch.where(is_real, previous, path[-1]))
    return torch.stack(path[::-1], dim=1).masked_fill(~mask, 0)


def check_inputs(scores: Tensor, *, num_tags: int, mask: Tensor, tags: Tensor | None = None) -> None:
    """Refuses what would broadcast into a wrong number; looks at shapes only, so a GPU is not waited for."""
    shape = scores.shape
    if len(shape) != 3 or shape[2] != num_tags or 0 in shape:
        raise ValueError(
            f"scores must have shape [batch, time, {num_tags}], with a sentence and a token at least,"
            f" got {tuple(shape)}"
        )
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be bool, True for a real token, got {mask.dtype}")
    tokens = shape[:2]
    for name, tensor in (("mask", mask), ("tags", tags)):
        if tensor is not None and tensor.shape != tokens:
            raise ValueError(
                f"{name} must have shape {tuple(tokens)}, the batch and time of scores,"
                f" got {tuple(tensor.shape)}"
            )


def centred(
    scores: Float[Tensor, "batch time tags"], mask: Bool[Tensor, "batch time"]
) -> Float[Tensor, "batch time tags"]:
    """The scores in float32 at least, each token's largest moved to 0, and 0 at padding.

    A constant added to all tags of a token changes no probability; without it the sums over a sentence grow
    until float32 rounds the differences away.
    """
    scores = at_least_float32(scores).masked_fill(~mask.unsqueeze(2), 0)
    return scores - scores.detach().amax(2, keepdim=True)


def at_least_float32(scores: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    return scores if scores.element_size() >= 4 else scores.float()
