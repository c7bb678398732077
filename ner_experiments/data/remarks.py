"""What a reader skipped, filled in or guessed, counted, so that nothing about a file is decided in silence."""

from __future__ import annotations

import os
from collections import Counter

from ner_experiments.utils.text import truncated_repr


class Remarks:
    """Counts of what was done to the lines of files that are not plain data, and the first place of each.

    A reader adds to it as it goes; `data check` prints it with places, a run's notes have it without.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def add(self, what: str, place: str, text: str = "") -> None:
        """Count one occurrence. place: such as train.conll:7; text: what is written there, if it helps."""
        self._counts[what] += 1
        self._first.setdefault(what, f"{place}: {truncated_repr(text)}" if text else place)

    def counts(self) -> list[str]:
        """A line per remark with its number."""
        return [f"{what}: {number:,}" for what, number in self._counts.items()]

    def with_places(self) -> list[str]:
        """As `counts`, with the first place of each."""
        return [f"{what}: {number:,} (first: {self._first[what]})" for what, number in self._counts.items()]


def place_of(name: str, line: int) -> str:
    """The place of a line by the file's name without its folder."""
    return f"{os.path.basename(name)}:{line}"
