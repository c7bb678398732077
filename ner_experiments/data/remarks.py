"""Counts of what a reader skipped, filled in or guessed, so that no such decision stays silent, and of faults."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ner_experiments.data.faults import Faults, Settings
from ner_experiments.utils.text import truncated_repr


class Remarks:
    """Counts of each remark, such as on lines skipped as comments, and the first place of each.

    A reader adds remarks while it reads. `data check` prints them with their places; a run's notes have the counts
    alone.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._faults: Faults | None = None
        self._layouts: dict[str, tuple[str, str]] = {}

    def add(self, what: str, place: str, text: str = "") -> None:
        """Count one occurrence. place: such as train.conll:7; text: what is written there, if it helps."""
        self._counts[what] += 1
        self._first.setdefault(what, f"{place}: {truncated_repr(text)}" if text else place)

    def fault(self, message: str, settings: Settings = (), remedy: Mapping[str, Any] = {}) -> None:
        """Raise FaultsError; within `counting_faults`, count the fault, and let the reader go on without what has it.

        settings, remedy: see `Faults.add`.
        """
        faults = self._faults or Faults()
        faults.add(message, settings, remedy)
        if self._faults is None:
            faults.check()

    @contextmanager
    def counting_faults(self) -> Iterator[None]:
        """At the end of the outermost block, raise FaultsError with the number of its faults, the first ones, and ways
        out."""
        if self._faults is not None:
            yield
            return
        self._faults = found = Faults()
        try:
            yield
        finally:
            self._faults = None
        found.check()

    def read_as(self, name: str, layout: str, others: str = "") -> None:
        """Note how a file is laid out, if any of this was detected.

        name: of the file. layout: in one line, or empty. others: what follows it in the line.
        """
        if layout:
            self._layouts[os.path.basename(name)] = (layout, others)

    def layouts(self, scheme: str = "") -> list[str]:
        """At most one line: how the files are read. scheme: that of their tags."""
        joint = f", {scheme}" if scheme else ""
        lines = {name: f"{layout}{joint}{others}" for name, (layout, others) in self._layouts.items()}
        if len({*lines.values()}) <= 1:
            return [f"read as: {line}" for line in {*lines.values()}]
        return [f"read as: {'; '.join(f'{name}: {line}' for name, line in lines.items())}"]

    def counts(self) -> list[str]:
        """A line per remark with its count."""
        return [f"{what}: {number:,}" for what, number in self._counts.items()]

    def with_places(self) -> list[str]:
        """As `counts`, with the first place of each."""
        return [f"{what}: {number:,} (first: {self._first[what]})" for what, number in self._counts.items()]


def place_of(name: str, line: int) -> str:
    """The place of a line: the file's name without its folder, and the line's number."""
    return f"{os.path.basename(name)}:{line}"
