"""Precision, recall and F1 of groups of mentions: by type, length, occurrence in train and sentence length.

Each F1 has a bootstrap interval. A mention's group depends only on its own words, place and type, so gold and
predicted mentions are grouped alike. F1 by type and by length are tables 3 and 4 of Li, Fu & Ma (2020).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from ner_experiments.analysis.bootstrap import interval, ratio, resampled
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.data.tags import LENGTHS, Span, length_group
from ner_experiments.runs.predictions import UNREACHABLE, Predicted, as_field, units
from ner_experiments.utils.f1 import f1_score

TYPE, LENGTH, SEEN, FREQUENCY, SENTENCE_LENGTH = "type", "length", "seen", "frequency", "sentence length"


@dataclass(frozen=True, slots=True)
class Bucket:
    """Counts of a group's correct, predicted and gold mentions; `low` to `high` is F1's 95 % interval.

    Scores are in [0, 1], and 0 where undefined, as in conlleval.
    """

    correct: int
    predicted: int
    gold: int
    low: float
    high: float

    @property
    def precision(self) -> float:
        return f1_score(self.correct, self.predicted, self.gold)["precision"]

    @property
    def recall(self) -> float:
        return f1_score(self.correct, self.predicted, self.gold)["recall"]

    @property
    def f1(self) -> float:
        return f1_score(self.correct, self.predicted, self.gold)["f1"]


def grouped(
    texts: Sequence[Marked], dimension: Dimension
) -> tuple[list[str], Int[np.ndarray, "sentences groups 3"]]:
    """The groups of a dimension that have a mention, and the counts of each sentence as `group_counts`."""
    names = groups(texts, dimension)
    return names, group_counts(texts, dimension, names)


def buckets(
    names: Sequence[str], counts: Int[np.ndarray, "sentences groups 3"], *, intervals: bool = True
) -> dict[str, Bucket]:
    """Scores of the groups that have a mention.

    Precision is over the predicted mentions of a group, recall over the gold ones. So a mention with a wrong boundary
    is spurious in its own group, and the gold mention is missing in its group. The counts of a dimension's groups add
    up to those of the test set.

    Intervals are from the bootstrap over sentences, without the draws in which a group has no mention. They describe
    how F1 of this trained model varies with the test sentences, not how it varies with the seed. They are NaN without
    `intervals`.
    """
    totals = counts.sum(axis=0)
    found = np.flatnonzero(totals.any(axis=1)).tolist()
    bounds = [(math.nan, math.nan)] * len(found)
    if intervals:
        sums = resampled(counts[:, found])
        bounds = [*map(interval, ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2]).T)]
    scores = {}
    for column, (low, high) in zip(found, bounds, strict=True):
        correct, predicted, gold = totals[column].tolist()
        scores[names[column]] = Bucket(correct, predicted, gold, low, high)
    return scores


def groups(texts: Sequence[Marked], dimension: Dimension) -> list[str]:
    """Names of a dimension's groups that have a gold or predicted mention, in display order."""
    names = {text.group(dimension, mention) for text in texts for mention in text.gold | text.predicted}
    return dimension.ordered(names)


def group_counts(
    texts: Sequence[Marked], dimension: Dimension, names: Sequence[str]
) -> Int[np.ndarray, "sentences groups 3"]:
    """Correct, predicted and gold mentions by sentence and group."""
    column = {name: number for number, name in enumerate(names)}
    counts = np.zeros((len(texts), len(names), 3), dtype=np.int64)
    for row, text in zip(counts, texts, strict=True):
        for kind, mentions in enumerate((text.gold & text.predicted, text.predicted, text.gold)):
            for mention in mentions:
                row[column[text.group(dimension, mention)], kind] += 1
    return counts


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
    """A way to group mentions: `of(words, mention)` is the group; groups without an `order` are sorted by name."""

    of: Callable[[Sequence[str], Span], str]
    order: tuple[str, ...] = ()

    def ordered(self, groups: set[str]) -> list[str]:
        return [group for group in self.order if group in groups] if self.order else sorted(groups)


class TrainMentions:
    """The words of train, and the number of its gold mentions by surface form and type.

    Words are compared case-sensitively. In a corpus that is tagged token by token, each token is a mention of
    one word, and its tag is the type.
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
        """Group by whether train has the mention's surface form, with this type or another."""
        surface, kind = surface_form(words, mention), mention[2]
        if surface in self.mentions:
            return SAME if kind in self.mentions[surface] else OTHER
        return NEW if self.words.issuperset(surface) else UNKNOWN

    def frequency(self, words: Sequence[str], mention: Span) -> str:
        """Group by the number of gold mentions of train with this surface form, of any type."""
        surface = surface_form(words, mention)
        count = self.mentions[surface].total() if surface in self.mentions else 0
        return FREQUENCIES[bisect_left((0, 1, 5, 20), count)]


def surface_form(words: Sequence[str], mention: Span) -> tuple[str, ...]:
    return tuple(word.removeprefix(UNREACHABLE) for word in words[mention[0] : mention[1]])


def dimensions(train: Sequence[Sentence] | None, task: Task) -> dict[str, Dimension]:
    """Dimensions by name; without train, or with one tag per token, only those that apply.

    type, length: the mention's type, and its length in tokens as in table 4 of Li et al. (2020).
    seen: whether the mention's surface form is a gold mention of train with the same type, only with other
        types, or not at all; in the last case, whether train has all of its words.
    frequency: number of gold mentions of train with the same surface form, of any type.
    sentence length: in tokens.
    """
    by_name = {TYPE: Dimension(lambda _, mention: mention[2])}
    if task == "mentions":
        by_name[LENGTH] = Dimension(lambda _, mention: length_group(mention), LENGTHS)
    if train is not None:
        known = TrainMentions(train, task)
        by_name[SEEN] = Dimension(known.seen, (SAME, OTHER, NEW, UNKNOWN))
        by_name[FREQUENCY] = Dimension(known.frequency, FREQUENCIES)
    by_name[SENTENCE_LENGTH] = Dimension(sentence_length, SENTENCE_LENGTHS)
    return by_name


def sentence_length(words: Sequence[str], _: Span) -> str:
    length = sum(not word.startswith(UNREACHABLE) for word in words)
    return SENTENCE_LENGTHS[bisect_left((10, 20, 30, 50), length)]


@dataclass(frozen=True)
class Marked:
    """A sentence's words with its gold and predicted mentions. tokens: see `Predicted`."""

    words: tuple[str, ...]
    gold: frozenset[Span]
    predicted: frozenset[Span]
    tokens: tuple[int, ...] = ()

    def group(self, dimension: Dimension, mention: Span) -> str:
        """The group of a mention, by whole tokens, so that that of a gold mention depends on no tool."""
        if not self.tokens:
            return dimension.of(self.words, mention)
        number = [*self.tokens, *range(self.tokens[-1] + 1, len(self.words))]
        words = [""] * (number[-1] + 1)
        for token, word in zip(number, self.words, strict=False):
            words[token] += word
        start, end, type_ = mention
        return dimension.of(words, (number[start], number[end - 1] + 1, type_))


def marked(sentences: Sequence[Predicted], task: Task) -> list[Marked]:
    return [
        Marked(it.words, frozenset(units(it.gold, task)), frozenset(units(it.predicted, task)), it.tokens)
        for it in sentences
    ]


def f1_by(sentences: Sequence[Predicted], name: str) -> dict[str, float]:
    """F1 by group of a dimension that needs no train, in percent, for groups with a gold mention.

    The F1 of a group without one is 0 or undefined in any run.
    """
    texts, dimension = marked(sentences, "mentions"), dimensions(None, "mentions")[name]
    names = sorted(groups(texts, dimension))
    totals = group_counts(texts, dimension, names).sum(axis=0).tolist()
    return {
        group: 100 * f1_score(*counts)["f1"] for group, counts in zip(names, totals, strict=True) if counts[2]
    }
