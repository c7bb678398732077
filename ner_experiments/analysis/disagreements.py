"""Of each gold mention whether a run finds it, so that runs can be compared mention by mention.

Two rows of runs on one test set: which gold mentions both, one or neither of them finds, and where.

The sentences that some models tag right and others wrong: table 14 of Yang & Xu (2020).
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from ner_experiments.analysis.breakdown import Dimension, Marked
from ner_experiments.data.tags import spans
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import open_run


@dataclass(frozen=True, slots=True)
class Grouped:
    """The groups of a dimension that have a gold mention, and which of them each mention is in."""

    names: tuple[str, ...]
    of: Int[np.ndarray, " mentions"]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Of each gold mention of the test set, in its order: whether it is found exactly, and its groups."""

    right: Bool[np.ndarray, " mentions"]
    groups: Mapping[str, Grouped]

    def record(self) -> dict[str, Any]:
        """Compressed: a few hundred bytes for each thousand mentions."""
        groups = {
            name: {"names": list(grouped.names), "of": packed(grouped.of.astype("<u2"))}
            for name, grouped in self.groups.items()
        }
        return {"mentions": len(self.right), "right": packed(self.right.astype(np.uint8)), "groups": groups}


def outcomes(texts: Sequence[Marked], named: Mapping[str, Dimension]) -> Outcomes:
    """Of a test set, by the dimensions that `breakdown` has."""
    gold = [(text, mention) for text in texts for mention in sorted(text.gold)]
    right = np.array([mention in text.predicted for text, mention in gold], dtype=bool)
    groups = {}
    for name, dimension in named.items():
        of = [dimension.of(text.words, mention) for text, mention in gold]
        names = dimension.ordered(set(of))
        number = {group: place for place, group in enumerate(names)}
        groups[name] = Grouped(tuple(names), np.array([number[group] for group in of], dtype=np.int64))
    return Outcomes(right, groups)


def restored(record: Mapping[str, Any]) -> Outcomes:
    """What `record` wrote."""
    count = record["mentions"]
    groups = {
        name: Grouped(tuple(grouped["names"]), unpacked(grouped["of"], count, "<u2").astype(np.int64))
        for name, grouped in record["groups"].items()
    }
    return Outcomes(unpacked(record["right"], count, "u1").astype(bool), groups)


def packed(numbers: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()


def unpacked(text: str, count: int, kind: str) -> np.ndarray:
    """No more than `count` numbers, whatever the text would come to."""
    size = count * np.dtype(kind).itemsize
    return np.frombuffer(zlib.decompressobj().decompress(base64.b64decode(text), size or 1), dtype=kind)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Gold mentions found by both rows, by the first or the second alone, and by neither.

    Means over pairs of runs, so not always whole; their sum is the number of gold mentions.
    """

    both: float
    first: float
    second: float
    neither: float


@dataclass(frozen=True)
class Agreements:
    """`pairs` is how many pairs of runs were taken; `groups` are by dimension and group as in `breakdown`."""

    pairs: int
    total: Agreement
    groups: dict[str, dict[str, Agreement]]


def agreements(first: Mapping[int, Outcomes], second: Mapping[int, Outcomes]) -> Agreements:
    """Of two rows' outcomes by seed; a mention is found if its boundaries and its type are right.

    Where both rows have the same seeds, the runs of one seed are a pair; else each run of the first is one
    with each of the second, as in `statistics.difference`. A dimension that one of them lacks is left out.
    ValueError if a row is empty, or if the rows' gold mentions differ.
    """
    check_same_mentions(first, second)
    a, b = (np.stack([row[seed].right for seed in sorted(row)]) for row in (first, second))
    if first.keys() == second.keys():
        parts, pairs = by_pair(a, b).mean(axis=0), len(a)
    else:
        one, other = a.mean(axis=0), b.mean(axis=0)  # the mean over all pairs is the product of the means
        parts, pairs = shares(one, other), len(a) * len(b)
    every = [outcomes.groups for row in (first, second) for outcomes in row.values()]
    groups = {
        name: {group: agreement(parts[:, grouped.of == number]) for number, group in enumerate(grouped.names)}
        for name, grouped in every[0].items()
        if all(name in of_run for of_run in every)
    }
    return Agreements(pairs, agreement(parts), groups)


def by_pair(
    a: Bool[np.ndarray, "pairs mentions"], b: Bool[np.ndarray, "pairs mentions"]
) -> Float[np.ndarray, "pairs 4 mentions"]:
    return np.stack([shares(one, other) for one, other in zip(a, b, strict=True)])


def shares(a: np.ndarray, b: np.ndarray) -> Float[np.ndarray, "4 mentions"]:
    """For each mention, of which `a` and `b` say whether, or how often, it is found: 1 or a part of it."""
    a, b = a.astype(float), b.astype(float)
    return np.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)])


def agreement(parts: Float[np.ndarray, "4 mentions"]) -> Agreement:
    return Agreement(*(float(part) for part in parts.sum(axis=1)))


def check_same_mentions(first: Mapping[int, Outcomes], second: Mapping[int, Outcomes]) -> None:
    runs = [*first.values(), *second.values()]
    if not (first and second):
        raise ValueError("two rows can be compared that have a run each, got one without")
    sizes = {len(run.right) for run in runs}
    if len(sizes) > 1:
        raise ValueError(
            f"rows of one test set: expected the same gold mentions, got {sorted(sizes)} of them"
        )
    for name, grouped in runs[0].groups.items():
        others = [run.groups[name] for run in runs if name in run.groups]
        if any(it.names != grouped.names or (it.of != grouped.of).any() for it in others):
            raise ValueError(f"rows of one test set: their gold mentions differ in {name}")


def cases(first: Sequence[Sequence[Predicted]], second: Sequence[Sequence[Predicted]]) -> list[Case]:
    """The sentences that one row gets right in more of its runs than the other does.

    A sentence is right if all its tags are. Those come first in which the rows differ most, by the shares of
    their runs, and of these the shortest. `Case.predicted` has the first row's runs, then the second's. The
    runs are of the same sentences, as the outcomes of their mentions are.
    """
    runs = [*first, *second]
    found = [
        (abs(gap), Case(number, same[0].words, same[0].gold, tuple(it.predicted for it in same)))
        for number, same in enumerate(zip(*runs, strict=True), start=1)
        if (gap := difference(same[: len(first)], same[len(first) :]))
    ]
    return [case for _, case in sorted(found, key=lambda it: (-it[0], len(it[1].words), it[1].number))]


def difference(first: Sequence[Predicted], second: Sequence[Predicted]) -> float:
    """Share of the first that is right, minus that of the second."""
    one, other = (sum(it.predicted == it.gold for it in row) / len(row) for row in (first, second))
    return one - other


@dataclass(frozen=True)
class Case:
    """A test sentence, counted from 1, with its gold tags and those of each run."""

    number: int
    words: tuple[str, ...]
    gold: tuple[str, ...]
    predicted: tuple[tuple[str, ...], ...]

    @property
    def right(self) -> list[bool]:
        """Whether a run found all mentions and no other."""
        return [tags == self.gold for tags in self.predicted]

    def record(self) -> dict[str, Any]:
        return {
            "sentence": self.number,
            "words": self.words,
            "gold": self.gold,
            "predicted": self.predicted,
            "right": self.right,
        }


def of_runs(folders: Sequence[Path]) -> tuple[list[Case], int]:
    """What at least one run has right and one has wrong, the shortest first; and the number of sentences.

    ValueError for a run that is not finished, is damaged, or whose tags are no mentions, and for runs whose
    test sentences or gold tags differ.
    """
    runs = [open_run(folder) for folder in folders]
    for run in runs:
        if run.metrics["task"] != "mentions":
            raise ValueError(f"{run.folder}: cases are of mentions, and this run was scored tag by tag")
    predicted = [run.predicted() for run in runs]
    for folder, sentences in zip(folders[1:], predicted[1:], strict=True):
        check_same_sentences(folders[0], predicted[0], folder, sentences)
    found = [
        Case(number, same[0].words, same[0].gold, tuple(sentence.predicted for sentence in same))
        for number, same in enumerate(zip(*predicted, strict=True), start=1)
    ]
    mixed = [case for case in found if len(set(case.right)) == 2]
    return sorted(mixed, key=lambda case: len(case.words)), len(found)


def check_same_sentences(a: Path, first: Sequence[Predicted], b: Path, second: Sequence[Predicted]) -> None:
    if len(first) != len(second):
        raise ValueError(f"{a} has {len(first):,} test sentences, {b} has {len(second):,}")
    for number, (one, other) in enumerate(zip(first, second, strict=True), start=1):
        for what, left, right in (("words", one.words, other.words), ("gold tags", one.gold, other.gold)):
            if left != right:
                place = f"the {what} of test sentence {number}"
                raise ValueError(f"{a} and {b} differ in {place}: {left} and {right}")


def bracketed(words: Sequence[str], tags: Sequence[str]) -> str:
    """[Hassan Abbas]PER rose to ..."""
    pieces = list(words)
    for start, end, kind in spans(tags):
        pieces[start] = f"[{pieces[start]}"
        pieces[end - 1] = f"{pieces[end - 1]}]{kind}"
    return " ".join(pieces)
