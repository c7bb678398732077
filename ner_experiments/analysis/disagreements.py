"""Disagreements of runs on one test set: gold mentions that only some find, sentences that only some tag correctly.

`agreements` compares two rows of runs mention by mention, by the `Outcomes` of each run. `cases` and `of_runs`
list the sentences, as table 14 of Yang & Xu (2020) does.
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
from ner_experiments.runs.predictions import Predicted, record
from ner_experiments.runs.run import Run


@dataclass(frozen=True, slots=True)
class Grouped:
    """The groups of a dimension that have a gold mention, and the index of each mention's group in `names`."""

    names: tuple[str, ...]
    of: Int[np.ndarray, " mentions"]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Whether each gold mention of the test set, in order, is predicted exactly, and its groups."""

    correct: Bool[np.ndarray, " mentions"]
    groups: Mapping[str, Grouped]

    def record(self) -> dict[str, Any]:
        """JSON content, compressed to a few hundred bytes per thousand mentions."""
        groups = {
            name: {"names": list(grouped.names), "of": packed(grouped.of.astype("<u2"))}
            for name, grouped in self.groups.items()
        }
        correct = packed(self.correct.astype(np.uint8))
        return {"mentions": len(self.correct), "correct": correct, "groups": groups}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Outcomes:
        """The outcomes that `record` wrote."""
        count = record["mentions"]
        groups = {
            name: Grouped(tuple(grouped["names"]), unpacked(grouped["of"], count, "<u2").astype(np.int64))
            for name, grouped in record["groups"].items()
        }
        return cls(unpacked(record["correct"], count, "u1").astype(bool), groups)


def outcomes(texts: Sequence[Marked], named: Mapping[str, Dimension]) -> Outcomes:
    """Outcomes of a test set, grouped by the dimensions of `breakdown.dimensions`."""
    gold = [(text, mention) for text in texts for mention in sorted(text.gold)]
    groups = {}
    for name, dimension in named.items():
        of = [text.group(dimension, mention) for text, mention in gold]
        names = dimension.ordered(set(of))
        number = {group: place for place, group in enumerate(names)}
        groups[name] = Grouped(tuple(names), np.array([number[group] for group in of], dtype=np.int64))
    return Outcomes(np.concatenate([correct(text) for text in texts]), groups)


def correct(text: Marked) -> Bool[np.ndarray, " mentions"]:
    """Whether each gold mention of a sentence, in order, is predicted exactly."""
    return np.array([mention in text.predicted for mention in sorted(text.gold)], dtype=bool)


def packed(numbers: np.ndarray) -> str:
    """The array's bytes as zlib in Base64."""
    return base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()


def unpacked(text: str, count: int, kind: str) -> np.ndarray:
    """The first `count` numbers of what `packed` wrote; the limit guards against decompression bombs."""
    size = count * np.dtype(kind).itemsize
    return np.frombuffer(zlib.decompressobj().decompress(base64.b64decode(text), size or 1), dtype=kind)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Numbers of gold mentions found by both rows, only by the first, only by the second, and by neither.

    They are means over pairs of runs, so not always integers. They sum to the number of gold mentions.
    """

    both: float
    first: float
    second: float
    neither: float


@dataclass(frozen=True)
class Agreements:
    """Agreement of two rows over `pairs` pairs of runs, in total and by dimension and group of `breakdown`."""

    pairs: int
    total: Agreement
    groups: dict[str, dict[str, Agreement]]


def agreements(first: Mapping[int, Outcomes], second: Mapping[int, Outcomes]) -> Agreements:
    """Agreement of two rows, given their outcomes by seed.

    If both rows have the same seeds, runs of equal seed are paired; otherwise every run of the first row is paired
    with every run of the second. Dimensions that a run lacks are left out. Raises ValueError if a row is empty, or if
    the rows' gold mentions differ.
    """
    check_same_mentions(first, second)
    a, b = (np.stack([row[seed].correct for seed in sorted(row)]) for row in (first, second))
    if first.keys() == second.keys():
        parts, pairs = np.mean([shares(*pair) for pair in zip(a, b, strict=True)], axis=0), len(a)
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


def shares(a: np.ndarray, b: np.ndarray) -> Float[np.ndarray, "4 mentions"]:
    """Shares of both, only a, only b and neither per mention, given the rates at which a and b find it."""
    a, b = a.astype(float), b.astype(float)
    return np.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)])


def agreement(parts: Float[np.ndarray, "4 mentions"]) -> Agreement:
    """Sums over mentions of the four shares."""
    return Agreement(*(float(part) for part in parts.sum(axis=1)))


def check_same_mentions(first: Mapping[int, Outcomes], second: Mapping[int, Outcomes]) -> None:
    """Raise ValueError unless all runs of two non-empty rows have the same gold mentions."""
    runs = [*first.values(), *second.values()]
    if not (first and second):
        raise ValueError("expected two rows with at least one run each, got a row without runs")
    sizes = {len(run.correct) for run in runs}
    if len(sizes) > 1:
        raise ValueError(
            f"rows on one test set: expected equal numbers of gold mentions, got {sorted(sizes)}"
        )
    for name, grouped in runs[0].groups.items():
        others = [run.groups[name] for run in runs if name in run.groups]
        if any(it.names != grouped.names or (it.of != grouped.of).any() for it in others):
            raise ValueError(f"rows on one test set: their gold mentions differ in {name}")


def cases(first: Sequence[Sequence[Predicted]], second: Sequence[Sequence[Predicted]]) -> list[Case]:
    """Sentences that a larger share of one row's runs tags correctly than of the other's.

    Sorted by the difference of these shares, the largest first, then by length. `Case.predicted` has the first
    row's runs, then the second's. All runs must have the same sentences.
    """
    gaps = []
    for case in same_sentences([*first, *second]):
        one, other = case.correct[: len(first)], case.correct[len(first) :]
        if gap := abs(sum(one) / len(one) - sum(other) / len(other)):
            gaps.append((gap, case))
    return [case for _, case in sorted(gaps, key=lambda it: (-it[0], len(it[1].words), it[1].number))]


def same_sentences(runs: Sequence[Sequence[Predicted]]) -> list[Case]:
    """Every test sentence with the tags of all runs."""
    return [
        Case(number, same[0].words, same[0].gold, tuple(sentence.predicted for sentence in same))
        for number, same in enumerate(zip(*runs, strict=True), start=1)
    ]


def is_correct(predicted: Sequence[str], gold: Sequence[str]) -> bool:
    """Whether a sentence is tagged correctly, so that no mention is missing or spurious."""
    return predicted == gold


def correct_sentences(
    counts: Int[np.ndarray, "*runs sentences counts"],
) -> Bool[np.ndarray, "*runs sentences"]:
    """Whether a run tags each sentence correctly, as `is_correct`; counts: as `runs.predictions.count`.

    An archived run has these counts, but no sentences.
    """
    return (counts == counts[..., :1]).all(axis=-1)


@dataclass(frozen=True)
class Case:
    """A test sentence, its number from 1, its gold tags, and the predicted tags of each run."""

    number: int
    words: tuple[str, ...]
    gold: tuple[str, ...]
    predicted: tuple[tuple[str, ...], ...]

    @property
    def tagged(self) -> list[Predicted]:
        """The sentence as each run tags it."""
        return [Predicted(self.words, self.gold, tags) for tags in self.predicted]

    @property
    def correct(self) -> list[bool]:
        """Whether each run tags the sentence correctly."""
        return [is_correct(tags, self.gold) for tags in self.predicted]

    def record(self) -> dict[str, Any]:
        """JSON content."""
        return {"sentence": self.number, **record(self.tagged), "correct": self.correct}


def of_runs(runs: Sequence[Run]) -> tuple[list[Case], int]:
    """Sentences that some runs tag correctly and others wrongly, the shortest first, and the test set's size.

    Of a single run, these are the sentences that it tags wrongly. Raises ValueError for a run that is archived or
    scored tag by tag, and for runs whose test sentences or gold tags differ.
    """
    for run in runs:
        if run.archived:
            raise ValueError(
                f"{run.folder}: an archived run has no sentences, for the license of its corpus: train it"
            )
        if run.metrics["task"] != "mentions":
            raise ValueError(f"{run.folder}: `cases` needs a corpus of mentions; this run tags tokens")
    predicted = [run.predicted() for run in runs]
    for run, sentences in zip(runs[1:], predicted[1:], strict=True):
        check_same_sentences(runs[0].folder, predicted[0], run.folder, sentences)
    wrong = [case for case in same_sentences(predicted) if not all(case.correct)]
    mixed = [case for case in wrong if len(runs) == 1 or any(case.correct)]
    return sorted(mixed, key=lambda case: len(case.words)), len(predicted[0])


def check_same_sentences(a: Path, first: Sequence[Predicted], b: Path, second: Sequence[Predicted]) -> None:
    """Raise ValueError unless two runs, in the folders a and b, have the same words and gold tags."""
    if len(first) != len(second):
        raise ValueError(f"{a} has {len(first):,} test sentences, {b} has {len(second):,}")
    for number, (one, other) in enumerate(zip(first, second, strict=True), start=1):
        for what, left, right in (("words", one.words, other.words), ("gold tags", one.gold, other.gold)):
            if left != right:
                place = f"the {what} of test sentence {number}"
                raise ValueError(f"{a} and {b} differ in {place}: {left} and {right}")
