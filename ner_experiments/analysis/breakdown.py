"""Precision, recall and F1 of groups of mentions, each with an interval.

What mentions are grouped by: type, length, what train has of them, and the length of their sentence.

A mention's group depends on nothing but its own words, place and type, be it a gold or a predicted one.

F1 by type and by length of mention: tables 3 and 4 of Li, Fu & Ma (2020).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from ner_experiments.analysis.bootstrap import interval, ratio, resampled
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.data.tags import LENGTHS, Span, length_group, spans
from ner_experiments.metrics import f1_score
from ner_experiments.runs.predictions import Predicted, as_field, units

TYPE, LENGTH = "type", "length"


@dataclass(frozen=True, slots=True)
class Bucket:
    """Mentions of a group: how many are right, predicted and gold; `low` to `high` is F1's 95 % interval.

    All scores are in [0, 1], and 0 where they are undefined, as in conlleval.
    """

    right: int
    predicted: int
    gold: int
    low: float
    high: float

    @property
    def precision(self) -> float:
        return f1_score(self.right, self.predicted, self.gold)["precision"]

    @property
    def recall(self) -> float:
        return f1_score(self.right, self.predicted, self.gold)["recall"]

    @property
    def f1(self) -> float:
        return f1_score(self.right, self.predicted, self.gold)["f1"]


def breakdown(
    sentences: Sequence[Predicted], train: Sequence[Sentence] | None, task: Task = "mentions"
) -> dict[str, dict[str, Bucket]]:
    """Dimension -> group -> its scores, both in the order to be shown; `dimensions` defines them.

    Precision is over the predicted mentions of a group, recall over the gold ones. So a mention that is found
    with a wrong boundary is a false one of its own group, and a missed one of the gold mention's. Over the
    groups of a dimension the counts add up to those of the whole test set. Without `train`, what needs it is
    left out, and so is a group with no mention, gold or predicted.

    The interval is that of the bootstrap over sentences; draws without any mention of the group are left out.
    It speaks of other sentences for the same trained model, not of other seeds.
    """
    return by_dimension(marked(sentences, task), dimensions(train, task))


def by_dimension(texts: Sequence[Marked], named: Mapping[str, Dimension]) -> dict[str, dict[str, Bucket]]:
    return {name: buckets(texts, dimension) for name, dimension in named.items()}


def buckets(texts: Sequence[Marked], dimension: Dimension) -> dict[str, Bucket]:
    of = dimension.of
    groups = {of(text.words, mention) for text in texts for mention in text.gold | text.predicted}
    names = dimension.ordered(groups)
    counts = counted(texts, dimension, names)
    sums = resampled(counts)
    f1 = ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2])
    found = {}
    for column, name in enumerate(names):
        right, predicted, gold = counts[:, column].sum(axis=0).tolist()
        found[name] = Bucket(right, predicted, gold, *interval(f1[:, column]))
    return found


def counted(
    texts: Sequence[Marked], dimension: Dimension, names: Sequence[str]
) -> Int[np.ndarray, "sentences groups 3"]:
    """Mentions right, predicted and gold, of each sentence and group."""
    column = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(texts), len(names), 3), dtype=np.int64)
    for row, text in zip(counts, texts, strict=True):
        for kind, mentions in enumerate((text.gold & text.predicted, text.predicted, text.gold)):
            for mention in mentions:
                row[column[dimension.of(text.words, mention)], kind] += 1
    return counts


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
        found[LENGTH] = Dimension(lambda _, mention: length_group(mention), LENGTHS)
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


def by_type(sentences: Iterable[Predicted]) -> dict[str, float]:
    """F1 of the exact mentions of each type."""
    return f1_by(sentences, lambda mention: mention[2])


def by_length(sentences: Iterable[Predicted]) -> dict[str, float]:
    """F1 of the exact mentions of 1, 2, 3 and more than 3 tokens.

    Precision is over the predicted mentions of that length, recall over the gold ones: one with a wrong
    boundary is a false mention of its own length, and a missed one of the gold's.
    """
    return f1_by(sentences, length_group)


def f1_by(sentences: Iterable[Predicted], kind: Callable[[Span], str]) -> dict[str, float]:
    """In percent. A kind without a gold mention is left out: its F1 is 0 or undefined in any run."""
    correct, predicted, gold = Counter[str](), Counter[str](), Counter[str]()
    for sentence in sentences:
        mentions, found = set(spans(sentence.gold)), set(spans(sentence.predicted))
        correct.update(map(kind, mentions & found))
        predicted.update(map(kind, found))
        gold.update(map(kind, mentions))
    return {name: 100 * f1_score(correct[name], predicted[name], gold[name])["f1"] for name in sorted(gold)}
