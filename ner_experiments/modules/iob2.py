"""Decoders that score IOB2 tags, which Huang, Xu & Yu (2015) call BIO2, and take and return BIOES tags.

A token has 1 + 2T scores for T types, of O and of B and I of each type, instead of 1 + 4T. Metrics, predictions and
analyses are those of every other run, since legal tags of both schemes correspond one to one. An I that continues no
mention is illegal in IOB2: it comes back as I or E without a B, and counts as `O`, as in seqeval's strict mode.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ner_experiments.modules.crf import CRF
from ner_experiments.modules.decoding import Allowed, Decoder, Mask, Scores, Spans, Tags
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
    """Decoder of BIOES tags by a decoder of IOB2 tags. Implements `decoding.Decoder`."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder
        self.num_tags = decoder.num_tags

    def loss(self, scores: Scores, tags: Tags, mask: Mask) -> Float[Tensor, ""]:
        """The decoder's loss of the same mentions in IOB2."""
        return self.decoder.loss(scores, to_iob2(tags.masked_fill(~mask, 0)), mask)

    def decode(self, scores: Scores, mask: Mask) -> Tags:
        """Most probable IOB2 tags as BIOES tags, 0 at padding."""
        return to_bioes(self.decoder.decode(scores, mask))

    @torch.no_grad()
    def span_probabilities(
        self, scores: Scores, tags: Tags, mask: Mask, spans: Spans
    ) -> Float[Tensor, " spans"]:
        """p(y_i = tags_i for all i in the span | scores).

        An E or S at the end of a span says that no I of its type follows: the probability is that of the span's IOB2
        tags less that of the same tags with such an I after them. For a B or I at the end, it is the latter. It is 0
        if a tag within the span says otherwise than the next one, such as an S before an I.
        """
        tags = tags.masked_fill(~mask, 0)
        sentence, start, end = spans.unbind(1)
        own = tags[sentence]  # [spans time]
        iob2, last = to_iob2(own), tags[sentence, end - 1]
        probability = self.decoder.span_probabilities(scores, to_iob2(tags), mask, spans)
        longer = torch.zeros_like(probability)
        room = (last > 0) & (end < mask.sum(1)[sentence])
        if room.any():
            number = torch.arange(int(room.sum()), device=spans.device)
            extended, rows = iob2[room], sentence[room]
            extended[number, end[room]] = inside(last[room])
            with_next = torch.stack([number, start[room], end[room] + 1], dim=1)
            longer[room] = self.decoder.span_probabilities(scores[rows], extended, mask[rows], with_next)
        probability = torch.where(says_continued(last), longer, (probability - longer).clamp(min=0))
        position = torch.arange(tags.shape[1], device=spans.device)
        within = (position >= start[:, None]) & (position < end[:, None] - 1)
        return probability.masked_fill((within & (says_continued(own) != is_continued(iob2))).any(1), 0)


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
    if allowed is None or num_tags % 4 != 1:
        raise ValueError("decoder: IOB2 is a scheme of mentions, and this corpus is scored tag by tag")
    return num_tags // 4


def permitted(types: int) -> Permitted:
    """O and B may stand anywhere, and I after B or I of its type."""
    tags = torch.arange(1 + 2 * types)
    inside = (tags > 0) & (tags % 2 == 0)
    own = ((tags - 1) // 2)[:, None] == ((tags - 1) // 2)
    return Permitted(~inside, ~inside | own, torch.ones_like(inside))


def to_iob2(tags: Tags) -> Tags:
    """IOB2 ids of BIOES ids."""
    letter = (tags - 1) % 4
    return torch.where(tags > 0, inside(tags) - ((letter == BEGIN) | (letter == SINGLE)).long(), 0)


def to_bioes(tags: Tags) -> Tags:
    """BIOES ids of IOB2 ids: the next tag decides whether a mention goes on."""
    kind, letter, goes_on = (tags - 1) // 2, (tags - 1) % 2, is_continued(tags)
    letter = torch.where(
        letter == BEGIN, torch.where(goes_on, BEGIN, SINGLE), torch.where(goes_on, INSIDE, END)
    )
    return torch.where(tags > 0, 1 + 4 * kind + letter, 0)


def inside(tags: Tensor) -> Tensor:
    """IOB2 id of I of the types of BIOES ids other than O."""
    return 2 + 2 * ((tags - 1) // 4)


def is_continued(tags: Tags) -> Bool[Tensor, "batch time"]:
    """Whether the tag after an IOB2 id is I of its type; never for O."""
    time = tags.shape[1]
    position = torch.arange(time, device=tags.device)
    following = tags[:, (position + 1).clamp(max=time - 1)]  # torch.export cannot trace a slice of any length
    return (tags > 0) & (following == 2 + 2 * ((tags - 1) // 2)) & (position < time - 1)


def says_continued(tags: Tensor) -> Tensor:
    """Whether a BIOES id is a B or I."""
    return (tags > 0) & ((tags - 1) % 4 <= INSIDE)
