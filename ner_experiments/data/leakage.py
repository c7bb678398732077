"""Sentences that stand in two splits: what a model was trained or chosen on, and is scored on again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from ner_experiments.data.sentence import Sentence


def shared(splits: Mapping[str, Sequence[Sentence]]) -> dict[tuple[str, str], int]:
    """(train, test) -> how many sentences of test have the words of one of train, in its order; all pairs."""
    words = {split: [sentence.words for sentence in sentences] for split, sentences in splits.items()}
    return {
        (one, other): sum(map(set(words[one]).__contains__, words[other]))
        for one, other in combinations(words, 2)
    }


def audit(splits: Mapping[str, Sequence[Sentence]]) -> dict[str, int]:
    """The same by names such as "test_in_train", for a run's result."""
    return {f"{other}_in_{one}": count for (one, other), count in shared(splits).items()}
