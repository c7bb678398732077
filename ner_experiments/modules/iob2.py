"""Decoders that score IOB2 tags, which Huang, Xu & Yu (2015) call BIO2, and take and return BIOES tags.

With T types a token has 1 + 2T scores (O, and B and I of each type) instead of 1 + 4T. Legal sequences of the two
schemes correspond one to one, so metrics, predictions and analyses work unchanged. A predicted I that continues no
mention is returned as I or E without a B, which counts as O, as in seqeval's strict mode.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import (
    Allowed,
    Decoder,
    Mask,
    Real,
    Scores,
    Spans,
    Tags,
    at_least_float32,
    check_inputs,
)
from ner_experiments.modules.softmax import Softmax

# O is 0 in both schemes. Tags of the k-th type, counted from 0, are 1 + 2k + letter in IOB2 and 1 + 4k + letter in
# BIOES, as `data.encoder.labels` has them.
BEGIN, INSIDE, END, SINGLE = range(4)


class Permitted(NamedTuple):
    """Transitions of legal IOB2 tags, see `decoding.Allowed`."""

    start: Bool[Tensor, " tags"]
    pairs: Bool[Tensor, "tags tags"]
    end: Bool[Tensor, " tags"]


class IOB2(nn.Module):
    """Adapter that lets a decoder over IOB2 tags take and return BIOES tags. Implements `decoding.Decoder`."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder
        self.num_tags = decoder.num_tags

    def loss(self, scores: Scores, tags: Tags, mask: Mask, real: Real | None = None) -> Float[Tensor, ""]:
        """Loss of the wrapped decoder for the same mentions in IOB2."""
        check_inputs(scores, num_tags=self.num_tags, mask=mask, tags=tags)
        return self.decoder.loss(scores, to_iob2(tags.masked_fill(~mask, 0)), mask, real)

    def decode(self, scores: Scores, mask: Mask) -> Tags:
        """Most probable IOB2 tags as BIOES tags, 0 at padding."""
        return to_bioes(self.decoder.decode(scores, mask))

    @torch.no_grad()
    def span_probabilities(
        self, scores: Scores, tags: Tags, mask: Mask, spans: Spans
    ) -> Float[Tensor, " spans"]:
        """p(y_i = tags_i for all i in the span | scores).

        If a span ends in E or S, no I of its type may follow, so the probability of the span followed by such an I is
        subtracted. If it ends in B or I, that probability is the result. A span whose tags contradict each other, such
        as S before I, has probability 0.
        """
        check_inputs(scores, num_tags=self.num_tags, mask=mask, tags=tags)
        tags = tags.masked_fill(~mask, 0)
        sentence, start, end = spans.unbind(1)
        iob2, last = to_iob2(tags), tags[sentence, end - 1]
        probability = self.decoder.span_probabilities(scores, iob2, mask, spans)
        longer = probability * self.continuations(scores, tags, mask, sentence, end)
        contradictory = expects_continuation(tags) != is_continued(iob2)
        before = nn.functional.pad(contradictory.cumsum(1), (1, 0))
        probability = torch.where(expects_continuation(last), longer, (probability - longer).clamp(min=0))
        return probability.masked_fill(before[sentence, end - 1] > before[sentence, start], 0)

    def continuations(
        self, scores: Scores, tags: Tags, mask: Mask, sentence: Tensor, end: Tensor
    ) -> Float[Tensor, " spans"]:
        """p(token `end` is I of the type of the tag before | that tag, scores), 0 after O and at the sentence's end.

        y is a Markov chain, so the tags before that one do not matter. Pairs of tokens that all begin at even
        positions, or all at odd ones, do not overlap, so one call of the decoder covers them.
        """
        iob2, position = to_iob2(tags), torch.arange(tags.shape[1], device=tags.device)
        following = torch.where(tags > 0, inside(tags), 0).roll(1, dims=1)
        found = scores.new_zeros(len(end), dtype=at_least_float32(scores).dtype)
        room = (tags[sentence, end - 1] > 0) & (end < mask.sum(1)[sentence])
        for parity in (0, 1):
            chosen = room & ((end - 1) % 2 == parity)
            pairs = torch.stack([sentence, end - 1, end + 1], dim=1)[chosen]
            alone = pairs - pairs.new_tensor([0, 0, 1])
            of_pairs = torch.where(position % 2 == parity, iob2, following)
            first = self.decoder.span_probabilities(scores, iob2, mask, alone)
            both = self.decoder.span_probabilities(scores, of_pairs, mask, pairs)
            found[chosen] = torch.where(first > 0, both / first, 0)
        return found


def crf_iob2(*, num_tags: int, allowed: Allowed | None = None, constrained: bool = False) -> IOB2:
    """A CRF over IOB2 tags. `num_tags` and `allowed` are those of BIOES.

    Raises ValueError for a corpus that is scored tag by tag.
    """
    types = num_types(num_tags, allowed)
    return IOB2(CRF(num_tags=1 + 2 * types, allowed=permitted(types), constrained=constrained))


def softmax_iob2(
    *, num_tags: int, allowed: Allowed | None = None, constrained: bool = False, reduction: str = "sentence"
) -> IOB2:
    """A softmax over IOB2 tags for each token, see `crf_iob2` and `softmax.Softmax`."""
    types = num_types(num_tags, allowed)
    decoder = Softmax(
        num_tags=1 + 2 * types, allowed=permitted(types), constrained=constrained, reduction=reduction
    )
    return IOB2(decoder)


def num_types(num_tags: int, allowed: Allowed | None) -> int:
    """Number of types of BIOES tags. Raises ValueError for tags without a scheme, which have no `allowed`."""
    if allowed is None:
        raise ValueError(
            "IOB2 decoders need a corpus of mentions; this one is scored tag by tag: use decoder=crf or softmax"
        )
    return num_tags // 4


def permitted(types: int) -> Permitted:
    """Transitions of legal IOB2 tags: O and B anywhere, I only after B or I of its type."""
    tags = torch.arange(1 + 2 * types)
    continues = (tags > 0) & (tags % 2 == 0)
    own = ((tags - 1) // 2)[:, None] == ((tags - 1) // 2)
    return Permitted(~continues, ~continues | own, torch.ones_like(continues))


def to_iob2(tags: Tags) -> Tags:
    """IOB2 ids of BIOES ids. Negative ids, which decoders refuse, are returned as they are."""
    letter = (tags - 1) % 4
    return torch.where(tags > 0, inside(tags) - ((letter == BEGIN) | (letter == SINGLE)).long(), tags)


def to_bioes(tags: Tags) -> Tags:
    """BIOES ids of IOB2 ids; the next tag decides whether a mention continues."""
    kind, letter, continued = (tags - 1) // 2, (tags - 1) % 2, is_continued(tags)
    first, later = torch.where(continued, BEGIN, SINGLE), torch.where(continued, INSIDE, END)
    return torch.where(tags > 0, 1 + 4 * kind + torch.where(letter == BEGIN, first, later), 0)


def inside(tags: Tensor) -> Tensor:
    """IOB2 id of I of the types of BIOES ids other than O."""
    return 2 + 2 * ((tags - 1) // 4)


def is_continued(tags: Tags) -> Bool[Tensor, "batch time"]:
    """Whether the next token's IOB2 tag is I of the same type; False for O."""
    time = tags.shape[1]
    position = torch.arange(time, device=tags.device)
    following = tags[:, (position + 1).clamp(max=time - 1)]  # torch.export cannot trace a slice of any length
    return (tags > 0) & (following == 2 + 2 * ((tags - 1) // 2)) & (position < time - 1)


def expects_continuation(tags: Tensor) -> Tensor:
    """Whether a BIOES id is a B or I."""
    return (tags > 0) & ((tags - 1) % 4 <= INSIDE)
