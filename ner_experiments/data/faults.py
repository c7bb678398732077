"""Faults of files: all are counted, the first three are shown, with the settings that read the files nevertheless."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

SHOWN = 3
"""Number of faults that a message shows."""
SKIP = {"bad_lines": "skip"}
"""The setting that helps with a line for which there is no other."""

Settings = Sequence[tuple[str, str]]
"""Settings and their values, each of which is a way out of a fault, the best first."""


class FaultsError(ValueError):
    """Refusal of files with faults.

    remedies: settings of the corpus with which the faults that were found are none; a setting may uncover others.
    """

    def __init__(self, message: str, remedies: Mapping[str, Any] = {}) -> None:
        super().__init__(message)
        self.remedies = dict(remedies)


class Faults:
    """Collection of faults."""

    def __init__(self) -> None:
        self.count = 0
        self._shown: list[str] = []
        self._shared: Settings = ()
        self._remedies: dict[str, Any] = {}

    def add(self, message: str, settings: Settings = (), remedy: Mapping[str, Any] = {}) -> None:
        """Add a fault. message: place, rule and value.

        settings: ways out of which each alone will do, named in the message if all faults share it. remedy: the setting
        with which it is none, where `way_out` tries it before it is named.
        """
        self._shared = [it for it in self._shared if it in settings] if self.count else settings
        self.count += 1
        if self.count <= SHOWN:
            self._shown.append(message)
        self._remedies |= remedy

    @property
    def first(self) -> str:
        """The first fault: place, rule and value. Requires one."""
        return self._shown[0]

    def check(self) -> None:
        """Raise FaultsError, with the number of faults, if there is one."""
        if not self.count:
            return
        which = f", the first {SHOWN}" if self.count > SHOWN else ""
        number = f"{self.count:,} faults{which}: " if self.count > 1 else ""
        message = f"{number}{'; '.join(self._shown)}{_in_brackets(self._shared)}"
        raise FaultsError(message, self._remedies)


def _in_brackets(settings: Settings) -> str:
    """The settings as the end of a message: (data.tokens=characters; or data.misaligned=split or skip)."""
    ways = []
    for name, values in groupby(settings, key=lambda it: it[0]):
        *others, last = (value for _, value in values)
        ways.append(f"data.{name}={', '.join(others)}{' or ' if others else ''}{last}")
    return f" ({'; or '.join(ways)})" if ways else ""


def way_out(error: ValueError, read: Callable[[Mapping[str, Any]], object]) -> dict[str, Any]:
    """Settings with which the files can be read that raised `error`; empty if none is known.

    read: reads the files with further settings, or raises ValueError.
    """
    settings: dict[str, Any] = {}
    while isinstance(error, FaultsError) and not error.remedies.keys() <= settings.keys():
        settings |= error.remedies
        try:
            read(settings)
        except ValueError as other:
            error = other
        else:
            return settings
    try:
        read(SKIP)
    except ValueError:
        return {}
    return dict(SKIP)


def as_overrides(settings: Mapping[str, Any]) -> str:
    """Settings of a corpus as they are typed in a shell."""
    return " ".join(_override(name, value) for name, value in settings.items())


def _override(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        items = ", ".join(f"{key}: {item}" for key, item in value.items())
        return f"'data.{name}={{{items}}}'"
    plain = str(value).lower() if isinstance(value, bool) else str(value)
    return f"data.{name}={plain}" if re.fullmatch(r"[\w-]+", plain) else f"\"data.{name}='{plain}'\""
