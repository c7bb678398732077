"""Errors by kind: a wrong boundary, a wrong type, both, a mention missed, and one invented.

Which type was taken for which, and what was missed or invented.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ner_experiments.analysis.bootstrap import interval, ratio, resampled
from ner_experiments.data.sentence import Task
from ner_experiments.data.tags import Span, spans
from ner_experiments.runs.predictions import Predicted

BOUNDARY, TYPE, BOTH, MISSED, INVENTED = KINDS = ("boundary", "type", "both", "missed", "invented")
Pair = tuple[Span, Span]
"""A gold mention and the predicted one that stands for it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How many errors of a kind there are; as a share of the gold mentions, with its 95 % interval."""

    count: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Compared:
    """All mentions of a sentence, each of them once: exact ones and errors in pairs, or without a partner."""

    pairs: list[Pair]
    missed: list[Span]
    invented: list[Span]

    def kinds(self) -> list[str]:
        """Of each error; an exact mention is none."""
        of_pairs = [kind(gold, predicted) for gold, predicted in self.pairs if gold != predicted]
        return of_pairs + [MISSED] * len(self.missed) + [INVENTED] * len(self.invented)


def kinds(sentences: Sequence[Predicted]) -> dict[str, Kind]:
    """The kinds in their order, each of them, be it with no error. Empty if no sentence has a gold mention.

    The five kinds are those of Manning (2006), "Doing named entity recognition? Don't optimize for F1": a
    boundary, label or label-boundary error is one error, though F1 counts it twice; what remains are false
    negatives (missed) and false positives (invented). What counts is errors, not tokens. `compare` says which
    predicted mention stands for which gold one. So boundary + type + both + missed = gold - right, and
    boundary + type + both + invented = predicted - right.

    The intervals are those of the bootstrap over sentences, as in `breakdown`.
    """
    counts = np.array([counted(sentence) for sentence in sentences])
    gold = counts[:, -1].sum()
    if not gold:
        return {}
    sums = resampled(counts)
    rates = ratio(sums[:, :-1], np.broadcast_to(sums[:, -1:], sums[:, :-1].shape))
    totals = counts.sum(axis=0)
    return {
        name: Kind(int(totals[column]), float(totals[column] / gold), *interval(rates[:, column]))
        for column, name in enumerate(KINDS)
    }


def counted(sentence: Predicted) -> list[int]:
    """Errors of each kind, then gold mentions."""
    gold = spans(sentence.gold)
    errors = compare(gold, spans(sentence.predicted)).kinds()
    return [*map(errors.count, KINDS), len(gold)]


def compare(gold: Iterable[Span], predicted: Iterable[Span]) -> Compared:
    """Pairs each mention with one of the other side at most, of those that have a token in common with it.

    The pair with most tokens in common comes first, then the next of what is left. Of equals, the pair of one
    type; then the one whose gold mention begins first; then whose predicted one does. What is left alone in
    the end is missed or invented, even if it overlaps a mention that another one stands for.
    """
    gold, predicted = sorted(gold), sorted(predicted)
    candidates = [(one, other) for one in gold for other in predicted if overlap(one, other)]
    pairs: list[Pair] = []
    for one, other in sorted(candidates, key=precedence):
        if all(one != taken and other != found for taken, found in pairs):
            pairs.append((one, other))
    paired, found = ({pair[side] for pair in pairs} for side in (0, 1))
    return Compared(
        sorted(pairs),
        [mention for mention in gold if mention not in paired],
        [mention for mention in predicted if mention not in found],
    )


def precedence(pair: Pair) -> tuple[int, bool, int, int]:
    gold, predicted = pair
    return -overlap(gold, predicted), gold[2] != predicted[2], gold[0], predicted[0]


def overlap(one: Span, other: Span) -> int:
    """Tokens that two mentions have in common."""
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def kind(gold: Span, predicted: Span) -> str:
    """Of a pair that is not exact."""
    if gold[:2] == predicted[:2]:
        return TYPE
    return BOUNDARY if gold[2] == predicted[2] else BOTH


NONE = "none"


@dataclass(frozen=True, slots=True)
class Confusion:
    """`counts[i][j]`: gold mentions of type i for which a predicted one of type j stands (`kinds.compare`).

    The last row is what was invented, the last column what was missed; `types` names the others. So a row
    adds up to the gold mentions of a type, a column to the predicted ones. On the diagonal are those that are
    right and those with a wrong boundary alone. Where each token has a tag, i and j are those of a token,
    and the last row and column are empty.
    """

    types: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the rows, and of the columns."""
        return (*self.types, NONE)

    def pairs(self) -> Counter[tuple[str, str]]:
        """Gold and predicted type -> how many; "", which is no type, stands for none."""
        names = [*self.types, ""]
        rows = zip(names, self.counts, strict=True)
        return Counter({(gold, other): n for gold, row in rows for other, n in zip(names, row, strict=True)})

    def record(self) -> dict[str, Any]:
        """As JSON: a row a line."""
        return {"types": list(self.types), "counts": [" ".join(map(str, row)) for row in self.counts]}

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> Confusion:
        """What `record` wrote."""
        return cls(tuple(record["types"]), tuple(tuple(map(int, row.split(" "))) for row in record["counts"]))


def confusion(sentences: Sequence[Predicted], task: Task = "mentions") -> Confusion:
    """The types that occur, gold or predicted, from A to Z."""
    found = Counter(pair for sentence in sentences for pair in pairs(sentence, task))
    types = sorted({kind for pair in found for kind in pair if kind})
    names = [*types, ""]
    return Confusion(tuple(types), tuple(tuple(found[gold, other] for other in names) for gold in names))


def pairs(sentence: Predicted, task: Task) -> Iterator[tuple[str, str]]:
    """Gold and predicted type; "", which is no type, where there is none."""
    if task == "tags":
        yield from zip(sentence.gold, sentence.predicted, strict=True)
        return
    compared = compare(spans(sentence.gold), spans(sentence.predicted))
    yield from ((gold[2], predicted[2]) for gold, predicted in compared.pairs)
    yield from ((mention[2], "") for mention in compared.missed)
    yield from (("", mention[2]) for mention in compared.invented)
