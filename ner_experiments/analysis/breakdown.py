"""Precision, recall and F1 of groups of mentions, each with an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from ner_experiments.analysis.bootstrap import interval, ratio, resampled
from ner_experiments.analysis.dimensions import Dimension, Marked, dimensions, marked
from ner_experiments.analysis.predictions import Predicted
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.metrics import f1_score


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
