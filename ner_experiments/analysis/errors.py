"""Errors by kind (wrong boundary, wrong type, both, missing, spurious) and the confusion of types.

Both start from `compare`, which aligns the gold and the predicted mentions of a sentence.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from ner_experiments.analysis.bootstrap import interval, ratio, resampled
from ner_experiments.data.sentence import Task
from ner_experiments.data.tags import Span
from ner_experiments.runs.predictions import Predicted, mentions

BOUNDARY, WRONG_TYPE, BOTH, MISSING, SPURIOUS = KINDS = ("boundary", "type", "both", "missing", "spurious")
NONE = "none"
Pair = tuple[Span, Span]
"""A gold mention and the predicted mention aligned with it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Number of errors of one kind, and their share of the gold mentions with its 95 % interval."""

    count: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Alignment:
    """All mentions of a sentence, each exactly once: in a pair (exact or wrong), missing or spurious."""

    pairs: list[Pair]
    missing: list[Span]
    spurious: list[Span]

    def kinds(self) -> list[str]:
        """The kind of each error; exact mentions are not errors."""
        of_pairs = [kind(gold, predicted) for gold, predicted in self.pairs if gold != predicted]
        return of_pairs + [MISSING] * len(self.missing) + [SPURIOUS] * len(self.spurious)

    def counts(self) -> list[int]:
        """Number of errors of each kind, then of gold mentions."""
        return [*map(self.kinds().count, KINDS), len(self.pairs) + len(self.missing)]

    def types(self) -> Iterator[tuple[str, str]]:
        """Gold and predicted type of each mention; "" stands for no mention."""
        yield from ((gold[2], predicted[2]) for gold, predicted in self.pairs)
        yield from ((mention[2], "") for mention in self.missing)
        yield from (("", mention[2]) for mention in self.spurious)


def shares_of_kinds(
    counts: Int[np.ndarray, "sentences counts"], *, intervals: bool = True
) -> dict[str, Kind]:
    """Errors of every kind, in the order of `KINDS`. Empty if no sentence has a gold mention.

    The five kinds are those of Manning (2006), "Doing named entity recognition? Don't optimize for F1": a boundary,
    label or label-boundary error is one error, though F1 counts it twice; the rest are false negatives (missing) and
    false positives (spurious). Errors are counted, not tokens, and `compare` decides which mentions belong together.
    So boundary + type + both + missing = gold - correct, and boundary + type + both + spurious = predicted - correct.

    counts: `Alignment.counts` of each sentence. Intervals are from the bootstrap over sentences, and NaN without
    `intervals`.
    """
    totals = counts.sum(axis=0)
    gold = totals[-1]
    if not gold:
        return {}
    bounds = [(math.nan, math.nan)] * len(KINDS)
    if intervals:
        sums = resampled(counts)
        rates = ratio(sums[:, :-1], np.broadcast_to(sums[:, -1:], sums[:, :-1].shape))
        bounds = [*map(interval, rates.T)]
    return {
        name: Kind(int(total), float(total / gold), *bound)
        for name, total, bound in zip(KINDS, totals[:-1], bounds, strict=True)
    }


def aligned(sentence: Predicted) -> Alignment:
    """The gold mentions of a sentence and the predicted ones, as `compare`."""
    return compare(mentions(sentence.gold), mentions(sentence.predicted))


def compare(gold: Iterable[Span], predicted: Iterable[Span]) -> Alignment:
    """Align each mention with at most one overlapping mention of the other side, greedily.

    The pair with the largest overlap is taken first, then the next among the remaining mentions. Ties go to
    the pair of equal type, then to the earlier gold mention, then to the earlier predicted one. Mentions
    without a partner are missing or spurious, even if they overlap a mention that has another partner.
    """
    gold, predicted = sorted(gold), sorted(predicted)
    candidates = [(one, other) for one in gold for other in predicted if overlap(one, other)]
    pairs: list[Pair] = []
    for one, other in sorted(candidates, key=precedence):
        if all(one != paired_gold and other != paired for paired_gold, paired in pairs):
            pairs.append((one, other))
    paired_gold, paired_predicted = ({pair[side] for pair in pairs} for side in (0, 1))
    return Alignment(
        sorted(pairs),
        [mention for mention in gold if mention not in paired_gold],
        [mention for mention in predicted if mention not in paired_predicted],
    )


def precedence(pair: Pair) -> tuple[int, bool, int, int]:
    """Sort key of candidate pairs, the best pair first."""
    gold, predicted = pair
    return -overlap(gold, predicted), gold[2] != predicted[2], gold[0], predicted[0]


def overlap(one: Span, other: Span) -> int:
    """Number of tokens that two mentions share."""
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def kind(gold: Span, predicted: Span) -> str:
    """Kind of error of an aligned pair that is not exact."""
    if gold[:2] == predicted[:2]:
        return WRONG_TYPE
    return BOUNDARY if gold[2] == predicted[2] else BOTH


@dataclass(frozen=True, slots=True)
class Confusion:
    """`counts[i][j]`: gold mentions of type i aligned with a predicted mention of type j (`compare`).

    The last row counts spurious mentions, the last column missing ones; `types` names the others. So a row
    adds up to the gold mentions of a type, a column to the predicted ones. The diagonal holds exact mentions
    and those that differ only in their boundaries. With one tag per token, i and j are the tags of a token,
    and the last row and column are empty.
    """

    types: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rows, and of the columns."""
        return (*self.types, NONE)

    def pairs(self) -> Counter[tuple[str, str]]:
        """Counts by gold and predicted type; "" stands for no mention."""
        names = [*self.types, ""]
        rows = zip(names, self.counts, strict=True)
        return Counter({(gold, other): n for gold, row in rows for other, n in zip(names, row, strict=True)})

    def record(self) -> dict[str, Any]:
        """JSON content, with one string per row."""
        return {"types": list(self.types), "counts": [" ".join(map(str, row)) for row in self.counts]}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Confusion:
        """The confusion that `record` wrote."""
        return cls(tuple(record["types"]), tuple(tuple(map(int, row.split(" "))) for row in record["counts"]))


def confusion(sentences: Sequence[Predicted], task: Task = "mentions") -> Confusion:
    """Confusion of the gold and predicted types that occur, sorted by name."""
    return confusion_of(Counter(pair for sentence in sentences for pair in pairs(sentence, task)))


def confusion_of(counts: Mapping[tuple[str, str], int]) -> Confusion:
    """Confusion from the number of each pair of a gold and a predicted type, as `pairs` yields them."""
    types = sorted({kind for pair in counts for kind in pair if kind})
    names = [*types, ""]
    return Confusion(tuple(types), tuple(tuple(counts.get((a, b), 0) for b in names) for a in names))


def pairs(sentence: Predicted, task: Task) -> Iterator[tuple[str, str]]:
    """Gold and predicted type of each mention, or tag of each token; "" stands for no mention."""
    if task == "tags":
        return zip(sentence.gold, sentence.predicted, strict=True)
    return aligned(sentence).types()


def num_errors(counts: Int[np.ndarray, "sentences counts"]) -> Int[np.ndarray, " sentences"]:
    """Number of errors per sentence: missing and spurious mentions, or wrong tags.

    counts: as `runs.predictions.count`. A mention with a wrong boundary or type counts twice, as in F1.
    """
    return (counts[:, 1:] - counts[:, :1]).sum(axis=1)
