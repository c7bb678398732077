"""Records of all that a reader skipped, filled in or guessed, so that no such decision stays silent, and of faults."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from ner_experiments.utils.text import truncated_repr

SHOWN = 3
"""Number of faults that a message shows."""

Settings = Sequence[tuple[str, str]]
"""Settings and their values, each of which is a way out of a fault, the best first."""


class FaultsError(ValueError):
    """Refusal of files with faults.

    remedies: settings of the corpus with which the faults that were found are none; a setting may uncover others.
    """

    def __init__(self, message: str, remedies: Mapping[str, Any] = {}) -> None:
        super().__init__(message)
        self.remedies = dict(remedies)


class _Faults:
    """Faults, of which all are counted and the first are shown, and the settings that are a way out of each."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._counts: Counter[tuple[tuple[str, str], ...]] = Counter()
        self._shown: dict[bool, list[str]] = {True: [], False: []}
        """The first of those with settings, and the first of those without."""
        self._remedies: dict[str, Any] = {}

    def add(self, message: str, settings: Settings, remedy: Mapping[str, Any]) -> None:
        self._counts[(*settings,)] += 1
        self.files.add(os.path.basename(message.partition(":")[0]))
        if len(shown := self._shown[bool(settings)]) < SHOWN:
            shown.append(message)
        self._remedies |= remedy

    def error(self, layouts: Sequence[str] = ()) -> FaultsError:
        """The refusal, with settings such as (data.tokens=characters; or data.misaligned=split or skip).

        layouts: how the files were read, without which a fault of theirs and a wrong layout look alike.
        """
        settings = [*filter(None, self._counts)]
        other = self._counts[()]
        passed = self._counts.total() - other
        parts = []
        if passed:
            start = f"{_number(passed)}: " if passed > 1 else ""
            parts += [f"{start}{'; '.join(self._shown[True])} ({'; and '.join(_ways_out(settings))})"]
        if other:
            start = f"{_number(other)}: " if other > 1 else ""
            if passed:
                start = f"and {_number(other, ' that this does not pass')}: "
            parts += [f"{start}{'; '.join(self._shown[False])}"]
        return FaultsError("; ".join([*parts, *layouts]), self._remedies)


def _number(count: int, which: str = "") -> str:
    return f"{count:,} fault{'s' * (count > 1)}{which}{f', the first {SHOWN}' * (count > SHOWN)}"


def _ways_out(every: Sequence[Settings]) -> list[str]:
    """The settings that pass all faults, each with the values of which one will do. every: of each kind of fault."""
    if shared := [it for it in every[0] if all(it in settings for settings in every)]:
        ways = []
        for name, pairs in groupby(shared, key=lambda it: it[0]):
            *others, last = (value for _, value in pairs)
            ways.append(f"data.{name}={', '.join(others)}{' or ' if others else ''}{last}")
        return ["; or ".join(ways)]
    name, _ = Counter(name for settings in every for name in dict(settings)).most_common(1)[0]
    by_name = [[it for it in settings if it[0] == name] for settings in every]
    rest = [settings for settings, of_name in zip(every, by_name, strict=True) if not of_name]
    assert rest  # faults that one setting passes share a value of it
    return [*_ways_out([*filter(None, by_name)]), *_ways_out(rest)]


class Remarks:
    """Counts of each remark, such as on lines skipped as comments, and the first place of each.

    A reader adds remarks while it reads. `data check` prints them with their places; a run's notes have the counts
    alone.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._faults: _Faults | None = None
        self._layouts: dict[str, tuple[str, str]] = {}

    def add(self, what: str, place: str, text: str = "") -> None:
        """Count one occurrence. place: such as train.conll:7; text: what is written there, if it helps."""
        self._counts[what] += 1
        self._first.setdefault(what, f"{place}: {truncated_repr(text)}" if text else place)

    def fault(self, message: str, settings: Settings = (), remedy: Mapping[str, Any] = {}) -> None:
        """Raise FaultsError; within `counting_faults`, count the fault, and let the reader go on without what has it.

        message: place, rule and value. settings: ways out of which each alone will do. remedy: the setting with which
        it is none, where the corpus tries it before it is named.
        """
        faults = self._faults or _Faults()
        faults.add(message, settings, remedy)
        if self._faults is None:
            raise faults.error()

    @contextmanager
    def counting_faults(self) -> Iterator[None]:
        """At the end of the outermost block, raise FaultsError with the number of its faults, the first ones, and ways
        out."""
        if self._faults is not None:
            yield
            return
        self._faults = found = _Faults()
        try:
            yield
        finally:
            self._faults = None
        if found.files:
            raise found.error(self.layouts(files=found.files))

    def read_as(self, name: str, layout: str, others: str = "") -> None:
        """Note how a file is laid out, if any of this was detected.

        name: of the file. layout: in one line, or empty. others: what follows it in the line.
        """
        if layout:
            self._layouts[os.path.basename(name)] = (layout, others)

    def layouts(self, scheme: str = "", files: Collection[str] | None = None) -> list[str]:
        """At most one line: how the files are read. scheme: that of their tags. files: these alone, by name."""
        joint = f", {scheme}" if scheme else ""
        lines = {
            name: f"{layout}{joint}{others}"
            for name, (layout, others) in self._layouts.items()
            if files is None or name in files
        }
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
