"""The sentences that some models tag right and others wrong: table 14 of Yang & Xu (2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ner_experiments.analysis.predictions import Predicted, metrics, read
from ner_experiments.data.tags import spans


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

    ValueError for a run that is not finished or whose tags are no mentions, and for runs whose test sentences
    or gold tags differ.
    """
    for folder in folders:
        if metrics(folder)["task"] != "mentions":
            raise ValueError(f"{folder}: cases are of mentions, and this run was scored tag by tag")
    runs = [read(folder) for folder in folders]
    for folder, run in zip(folders[1:], runs[1:], strict=True):
        check_same(folders[0], runs[0], folder, run)
    found = [
        Case(number, same[0].words, same[0].gold, tuple(sentence.predicted for sentence in same))
        for number, same in enumerate(zip(*runs, strict=True), start=1)
    ]
    return sorted((case for case in found if len(set(case.right)) == 2), key=lambda it: len(it.words)), len(
        found
    )


def check_same(a: Path, first: Sequence[Predicted], b: Path, second: Sequence[Predicted]) -> None:
    if len(first) != len(second):
        raise ValueError(f"{a} has {len(first):,} test sentences, {b} has {len(second):,}")
    for number, (one, other) in enumerate(zip(first, second, strict=True), start=1):
        if (one.words, one.gold) != (other.words, other.gold):
            raise ValueError(f"{a} and {b} differ in test sentence {number}: {one.words} and {other.words}")


def bracketed(words: Sequence[str], tags: Sequence[str]) -> str:
    """[Hassan Abbas]PER rose to ..."""
    pieces = list(words)
    for start, end, kind in spans(tags):
        pieces[start] = f"[{pieces[start]}"
        pieces[end - 1] = f"{pieces[end - 1]}]{kind}"
    return " ".join(pieces)
