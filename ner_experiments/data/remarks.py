"""Counts of what a reader skipped, filled in or guessed, so that no such decision stays silent, and of faults."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from ner_experiments.data.faults import in_one_line
from ner_experiments.utils.text import truncated_repr

Settings = Sequence[tuple[str, str]]
"""Settings and their values, each of which is a way out of a fault, the best first."""


class Remarks:
    """Counts of each remark, such as on lines skipped as comments, and the first place of each.

    A reader adds remarks while it reads. `data check` prints them with their places; a run's notes have the counts
    alone.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._faults: list[tuple[str, Settings]] | None = None
        self._layouts: dict[str, tuple[str, str]] = {}

    def add(self, what: str, place: str, text: str = "") -> None:
        """Count one occurrence. place: such as train.conll:7; text: what is written there, if it helps."""
        self._counts[what] += 1
        self._first.setdefault(what, f"{place}: {truncated_repr(text)}" if text else place)

    def fault(self, message: str, settings: Settings = ()) -> None:
        """Raise ValueError; within `counting_faults`, count the fault, and let the reader go on without what has it."""
        if self._faults is None:
            raise ValueError(_with_settings(message, settings))
        self._faults.append((message, settings))

    @contextmanager
    def counting_faults(self) -> Iterator[None]:
        """At the end of the block, raise ValueError with the number of its faults, the first ones, and one way out."""
        if self._faults is not None:
            yield
            return
        found: list[tuple[str, Settings]] = []
        self._faults = found
        try:
            yield
        finally:
            self._faults = None
        if not found:
            return
        message = in_one_line([fault for fault, _ in found], len(found))
        shared = [it for it in found[0][1] if all(it in settings for _, settings in found)]
        raise ValueError(_with_settings(message, shared))

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


def _with_settings(message: str, settings: Settings) -> str:
    """The message, with the settings in brackets: (data.tokens=characters; or data.misaligned=split or skip)."""
    ways = []
    for name, values in groupby(settings, key=lambda it: it[0]):
        *others, last = (value for _, value in values)
        ways.append(f"data.{name}={', '.join(others)}{' or ' if others else ''}{last}")
    return f"{message} ({'; or '.join(ways)})" if ways else message


def place_of(name: str, line: int) -> str:
    """The place of a line: the file's name without its folder, and the line's number."""
    return f"{os.path.basename(name)}:{line}"
