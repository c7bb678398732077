"""F1 by type and by length of mention: tables 3 and 4 of Li, Fu & Ma (2020)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ner_experiments.analysis.measure import length
from ner_experiments.analysis.predictions import Predicted
from ner_experiments.data.tags import Span, spans
from ner_experiments.metrics import f1_score


def by_type(sentences: Iterable[Predicted]) -> dict[str, float]:
    """F1 of the exact mentions of each type."""
    return f1_by(sentences, lambda mention: mention[2])


def by_length(sentences: Iterable[Predicted]) -> dict[str, float]:
    """F1 of the exact mentions of 1, 2, 3 and more than 3 tokens.

    Precision is over the predicted mentions of that length, recall over the gold ones: one with a wrong
    boundary is a false mention of its own length, and a missed one of the gold's.
    """
    return f1_by(sentences, length)


def f1_by(sentences: Iterable[Predicted], kind: Callable[[Span], str]) -> dict[str, float]:
    """In percent. A kind without a gold mention is left out: its F1 is 0 or undefined in any run."""
    correct, predicted, gold = Counter[str](), Counter[str](), Counter[str]()
    for sentence in sentences:
        mentions, found = set(spans(sentence.gold)), set(spans(sentence.predicted))
        correct.update(map(kind, mentions & found))
        predicted.update(map(kind, found))
        gold.update(map(kind, mentions))
    return {name: 100 * f1_score(correct[name], predicted[name], gold[name])["f1"] for name in sorted(gold)}
