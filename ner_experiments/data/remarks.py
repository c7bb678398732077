"""Counts of what a reader skipped, filled in or guessed, so that no such decision stays silent."""

from __future__ import annotations

import os
from collections import Counter

from ner_experiments.utils.text import truncated_repr


class Remarks:
    """Counts of each remark, such as on lines skipped as comments, and the first place of each.

    A reader adds remarks while it reads. `data check` prints them with their places; a run's notes have the counts
    alone.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def add(self, what: str, place: str, text: str = "") -> None:
        """Count one occurrence. place: such as train.conll:7; text: what is written there, if it helps."""
        self._counts[what] += 1
        self._first.setdefault(what, f"{place}: {truncated_repr(text)}" if text else place)

    def counts(self) -> list[str]:
        """A line per remark with its count."""
        return [f"{what}: {number:,}" for what, number in self._counts.items()]

    def with_places(self) -> list[str]:
        """As `counts`, with the first place of each."""
        return [f"{what}: {number:,} (first: {self._first[what]})" for what, number in self._counts.items()]


def place_of(name: str, line: int) -> str:
    """The place of a line: the file's name without its folder, and the line's number."""
    return f"{os.path.basename(name)}:{line}"
