"""Common parts of the decoders: signature, transitions and hard constraints, Viterbi decoding, input checks."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ner_experiments.modules.kernels import cpu, cuda
from ner_experiments.modules.kernels.rules import MASK_RULE, RESCALED, TAG_RULE

Scores = Float[Tensor, "batch time tags"]
Tags = Int[Tensor, "batch time"]
Mask = Bool[Tensor, "batch time"]
"""True for real tokens, which precede padding. Every sentence has at least one."""
Real = Bool[Tensor, " batch"]
"""False for fillers: sentences of one token, with tag 0, that make a batch as large as others (`encoder.Batch`)."""
Spans = Int[Tensor, "spans 3"]
"""Sentence index, first token, and the token after the last; no span is empty."""
FORBIDDEN = -1e30
"""Score of a forbidden transition: its probability is exactly 0 and, unlike -inf, it yields no NaN (inf - inf)."""


@runtime_checkable
class Decoder(Protocol):
    """A decoder: `crf.CRF`, `softmax.Softmax`, or `iob2.IOB2` over one of them.

    `loss` takes and `decode` returns ids of the corpus's tags. Scores and tags may have any value at padding. With
    `real`, the loss is that of the batch without its fillers. Decoders
    compute in float32 or float64, under autocast too.
    """

    num_tags: int
    """Number of scores per token; may differ from the number of the corpus's tags."""

    def loss(self, scores: Scores, tags: Tags, mask: Mask, real: Real | None = None) -> Float[Tensor, ""]:
        """Negative log-likelihood of the tags. Each decoder defines its own reduction over the batch."""
        ...

    def decode(self, scores: Scores, mask: Mask) -> Tags:
        """Most probable tags, 0 at padding."""
        ...

    def span_probabilities(
        self, scores: Scores, tags: Tags, mask: Mask, spans: Spans
    ) -> Float[Tensor, " spans"]:
        """p(y_i = tags_i for all i in the span | scores), summed over the tags of all other tokens."""
        ...


@runtime_checkable
class Allowed(Protocol):
    """Transitions that a tag scheme permits.

    `start[i]`: tag i may be first. `pairs[i][j]`: tag j may follow tag i. `end[i]`: tag i may be last.
    """

    @property
    def start(self) -> Sequence[bool] | Tensor: ...
    @property
    def pairs(self) -> Sequence[Sequence[bool]] | Tensor: ...
    @property
    def end(self) -> Sequence[bool] | Tensor: ...


class Transitions(NamedTuple):
    """Scores of a sentence's first tag, of a tag (row) followed by a tag (column), and of its last tag."""

    start: Float[Tensor, " tags"]
    pairs: Float[Tensor, "tags tags"]
    end: Float[Tensor, " tags"]


class HardConstraints(nn.Module):
    """Set the transitions that a tag scheme does not permit to `FORBIDDEN`.

    The masks are not part of the state dict, so weights trained without constraints can be decoded with them.
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
                    f"allowed.{name} must have shape {shape} for {num_tags} tags, got {tuple(permitted.shape)}"
                )
            self.register_buffer(name, ~permitted, persistent=False)

    def forward(self, transitions: Transitions) -> Transitions:
        return Transitions(
            start=transitions.start.masked_fill(self.start, FORBIDDEN),
            pairs=transitions.pairs.masked_fill(self.pairs, FORBIDDEN),
            end=transitions.end.masked_fill(self.end, FORBIDDEN),
        )


def viterbi(scores: Scores, mask: Mask, transitions: Transitions) -> Tags:
    """Tags with the largest sum of scores and transitions, 0 at padding.

    Ties are broken in favor of the lowest last tag, then of the lowest second-to-last tag, and so on.
    """
    if cpu.supports_crf(scores):
        return cpu.viterbi(scores, mask, *transitions)
    if cuda.supports_crf(scores):
        return cuda.viterbi(scores, mask, *transitions)
    return plain_viterbi(scores, mask, transitions)


@torch.no_grad()
def plain_viterbi(scores: Scores, mask: Mask, transitions: Transitions) -> Tags:
    """`viterbi` in PyTorch, without back-pointers: the backward pass repeats the argmax along the path only."""
    check_mask(mask)
    scores = center(scores, mask)
    # On a CPU, the batch as last dimension is twice as fast, and maxima without indices are four times as fast.
    by_token = scores.permute(1, 2, 0).contiguous().unbind(0)
    real = mask.t().unbind(0)
    best = [transitions.start.unsqueeze(1) + by_token[0]]
    for t in range(1, len(by_token)):
        reached = (best[-1].unsqueeze(1) + transitions.pairs.unsqueeze(2)).amax(0) + by_token[t]
        if t % RESCALED == RESCALED - 1:
            reached = reached - reached.amax(0)
        best.append(torch.where(real[t], reached, best[-1]))

    path = [(best[-1] + transitions.end.unsqueeze(1)).argmax(0)]
    for before, is_real in zip(best[-2::-1], real[:0:-1], strict=True):
        previous = (before + transitions.pairs[:, path[-1]]).argmax(0)
        path.append(torch.where(is_real, previous, path[-1]))
    return torch.stack(path[::-1], dim=1).masked_fill(~mask, 0)


def check_inputs(scores: Tensor, *, num_tags: int, mask: Tensor, tags: Tensor | None = None) -> None:
    """Raise ValueError for shapes that would broadcast to a wrong result. Reads no values, to avoid a GPU sync."""
    shape = scores.shape
    if len(shape) != 3 or shape[2] != num_tags or 0 in shape:
        raise ValueError(
            f"scores must have shape [batch, time, {num_tags}], with at least one sentence and one token,"
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


def check_mask(mask: Mask) -> None:
    """Raise ValueError unless each row of the mask is real tokens, at least one, and then padding.

    Waits for a GPU; the kernels check their masks themselves.
    """
    if not (mask[:, 0].all() and (mask[:, 1:] <= mask[:, :-1]).all()):
        raise ValueError(MASK_RULE)


def check_tags(tags: Tags, mask: Mask, num_tags: int) -> None:
    """Raise ValueError for tags of real tokens that do not exist. Waits for a GPU."""
    real = tags[mask]
    if not ((real >= 0) & (real < num_tags)).all():
        raise ValueError(TAG_RULE)


def widen(scores: Scores, transitions: Transitions) -> tuple[Scores, Transitions]:
    """Scores and transitions in float64, in which sums over thousands of tokens keep their digits.

    Apple's GPUs have no float64: there they stay as they are.
    """
    if scores.device.type == "mps":
        return scores, transitions
    return scores.double(), Transitions(*(part.double() for part in transitions))


def center(scores: Scores, mask: Mask) -> Scores:
    """Scores in at least float32, with each token's largest moved to 0, and 0 at padding.

    A constant added to all scores of a token changes no probability.
    """
    scores = at_least_float32(scores).masked_fill(~mask.unsqueeze(2), 0)
    return scores - scores.detach().amax(2, keepdim=True)


def certain(scores: Scores, real: Real) -> Scores:
    """Scores by which a filler has tag 0 for certain, so that its loss and the gradients of its loss are 0."""
    others = torch.arange(scores.shape[2], device=scores.device) > 0
    return scores.masked_fill(others & ~real[:, None, None], FORBIDDEN)


def at_least_float32(scores: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Scores, converted to float32 if their type is narrower."""
    return scores if scores.element_size() >= 4 else scores.float()
