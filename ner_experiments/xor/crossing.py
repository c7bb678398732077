"""A token between the pasts and futures of two sentences, and its scores in all four."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ner_experiments.data.batches import TokenBudget
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Sentence
from ner_experiments.tagger import Tagger

BATCHES = TokenBudget(4096)


class Token(NamedTuple):
    """A token where it stands."""

    sentence: Sentence
    place: int

    @property
    def word(self) -> str:
        return self.sentence.words[self.place]

    @property
    def tag(self) -> str:
        return self.sentence.tags[self.place]

    @property
    def past(self) -> tuple[str, ...]:
        return self.sentence.words[: self.place]

    @property
    def future(self) -> tuple[str, ...]:
        return self.sentence.words[self.place + 1 :]


class Pair(NamedTuple):
    """A token, and another one that lends its past and its future."""

    token: Token
    other: Token

    def contexts(self) -> list[Token]:
        """The token itself, which is (p1, f1); then with (p1, f2), (p2, f1) and (p2, f2)."""
        ends = (self.token, self.other)
        return [between(past, self.token, future) for past in ends for future in ends]


def between(past: Token, token: Token, future: Token) -> Token:
    """`token` after the past of one token and before the future of another, columns and all."""

    def joined(first: Sequence[str], middle: Sequence[str], last: Sequence[str]) -> tuple[str, ...]:
        return (*first[: past.place], middle[token.place], *last[future.place + 1 :])

    sources = (past.sentence, token.sentence, future.sentence)
    sentence = Sentence(
        words=joined(*(source.words for source in sources)),
        tags=joined(*(source.tags for source in sources)),
        columns={name: joined(*(source.columns[name] for source in sources)) for name in sources[1].columns},
    )
    return Token(sentence, past.place)


def crossed_scores(tagger: Tagger, encoder: Encoder, pairs: Sequence[Pair]) -> Tensor:
    """[pairs 2 2 tags]: `scores[n, i, j]` of the token of pair n with past i and future j, in float64.

    The tagger is left in float64 and in evaluation mode.
    """
    tagger.double().eval()
    contexts = [context for pair in pairs for context in pair.contexts()]
    places = torch.tensor([context.place for context in contexts])
    encoded = encoder.encode([context.sentence for context in contexts], torch.device("cpu"))
    scores = torch.empty(len(contexts), len(encoder.labels), dtype=torch.float64)
    with torch.inference_mode():
        for numbers in BATCHES.in_order(encoded.lengths):
            rows = torch.from_numpy(numbers)
            scores[rows] = tagger(encoded.batch(numbers))[torch.arange(len(rows)), places[rows]]
    return scores.view(len(pairs), 2, 2, -1)
