"""The sentences that some models tag right and others wrong: table 14 of Yang & Xu (2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ner_experiments.analysis.predictions import Predicted
from ner_experiments.data.tags import spans
from ner_experiments.runs import run_of


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
    runs = [run_of(folder) for folder in folders]
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
