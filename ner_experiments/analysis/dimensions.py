"""What mentions are grouped by: type, length, what train has of them, and the length of their sentence.

A mention's group depends on nothing but its own words, place and type, be it a gold or a predicted one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ner_experiments.analysis.measure import LENGTH, LENGTHS, TYPE, length
from ner_experiments.analysis.predictions import Predicted, as_field, units
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.data.tags import Span

SEEN, FREQUENCY, SENTENCE_LENGTH = "seen", "frequency", "sentence length"
SAME, OTHER, NEW, UNKNOWN = (
    "with this type",
    "with another type only",
    "new, of known words",
    "new, unknown word",
)
FREQUENCIES = ("0", "1", "2 to 5", "6 to 20", "more than 20")
SENTENCE_LENGTHS = ("1 to 10", "11 to 20", "21 to 30", "31 to 50", "more than 50")


@dataclass(frozen=True)
class Dimension:
    """`of` gives the group of a mention in a sentence of these words; no `order` is that from A to Z."""

    of: Callable[[Sequence[str], Span], str]
    order: tuple[str, ...] = ()

    def ordered(self, groups: set[str]) -> list[str]:
        return [group for group in self.order if group in groups] if self.order else sorted(groups)


class Known:
    """What train has: its words, and how often words in a row are a mention, and of which type.

    Words are compared letter by letter, capitals included. Of a corpus that is tagged token by token, each
    token is a mention of one word, and its tag the type.
    """

    def __init__(self, train: Sequence[Sentence], task: Task) -> None:
        self.words: set[str] = set()
        self.mentions: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for sentence in train:
            words, tags = (tuple(map(as_field, column)) for column in (sentence.words, sentence.tags))
            self.words.update(words)
            for start, end, kind in units(tags, task):
                self.mentions[words[start:end]][kind] += 1

    def seen(self, words: Sequence[str], mention: Span) -> str:
        start, end, kind = mention
        surface = tuple(words[start:end])
        if surface in self.mentions:
            return SAME if kind in self.mentions[surface] else OTHER
        return NEW if self.words.issuperset(surface) else UNKNOWN

    def frequency(self, words: Sequence[str], mention: Span) -> str:
        surface = tuple(words[mention[0] : mention[1]])
        count = self.mentions[surface].total() if surface in self.mentions else 0
        return FREQUENCIES[bisect_left((0, 1, 5, 20), count)]


def dimensions(train: Sequence[Sentence] | None, task: Task) -> dict[str, Dimension]:
    """By name.

    type, length: of the mention; its length in tokens, as in table 4 of Li et al. (2020).
    seen: whether the mention's words, in their order, are a gold mention in train: of its own type, or of
        others only; or of none, where train knows each of its words, or does not know one.
    frequency: how often the mention's words are a gold mention in train, of whatever type.
    sentence length: in tokens.
    Without train, and where every mention is one token, there are those left that then make sense.
    """
    found = {TYPE: Dimension(lambda _, mention: mention[2])}
    if task == "mentions":
        found[LENGTH] = Dimension(lambda _, mention: length(mention), LENGTHS)
    if train is not None:
        known = Known(train, task)
        found[SEEN] = Dimension(known.seen, (SAME, OTHER, NEW, UNKNOWN))
        found[FREQUENCY] = Dimension(known.frequency, FREQUENCIES)
    found[SENTENCE_LENGTH] = Dimension(sentence_length, SENTENCE_LENGTHS)
    return found


def sentence_length(words: Sequence[str], _: Span) -> str:
    return SENTENCE_LENGTHS[bisect_left((10, 20, 30, 50), len(words))]


@dataclass(frozen=True)
class Marked:
    """A sentence's words with its gold and its predicted mentions."""

    words: tuple[str, ...]
    gold: frozenset[Span]
    predicted: frozenset[Span]


def marked(sentences: Sequence[Predicted], task: Task) -> list[Marked]:
    return [
        Marked(it.words, frozenset(units(it.gold, task)), frozenset(units(it.predicted, task)))
        for it in sentences
    ]
