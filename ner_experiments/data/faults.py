"""Faults of files: all are counted, the first three are shown, with the settings that read the files nevertheless."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

SHOWN = 3
"""Number of faults that a message shows."""


SKIP = {"bad_lines": "skip"}
"""The setting that helps with a line for which there is no other."""


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
        self._remedies: dict[str, Any] = {}

    def add(self, message: str, **remedy: Any) -> None:
        """Add a fault. message: place, rule and value. remedy: the setting with which it is none."""
        self.count += 1
        if self.count <= SHOWN:
            self._shown.append(message)
        self._remedies |= remedy

    def check(self) -> None:
        """Raise FaultsError if there is a fault."""
        if self.count:
            raise FaultsError(in_one_line(self._shown, self.count), self._remedies)


def in_one_line(shown: Sequence[str], count: int) -> str:
    """The number of faults, and the messages of the first ones."""
    if count == 1:
        return shown[0]
    which = f", the first {SHOWN}" if count > SHOWN else ""
    return f"{count:,} faults{which}: {'; '.join(shown[:SHOWN])}"


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
