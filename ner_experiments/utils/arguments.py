"""Checks of the arguments of a command that argparse cannot express."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def refuse(arguments: argparse.Namespace, *names: str, reason: str) -> None:
    """Raise ValueError, such as "--format is for --to files", for any of these that is given, as it changes nothing."""
    for name in names:
        if (value := getattr(arguments, name)) is not None and value is not False:
            raise ValueError(f"--{name} {reason}")


def at_least(least: int, **numbers: int) -> None:
    """Raise ValueError, such as "--seeds must be at least 1, got 0", for a number that is smaller."""
    for name, number in numbers.items():
        if number < least:
            raise ValueError(f"--{name} must be at least {least}, got {number}")


def argument(parse: Callable[[str], T]) -> Callable[[str], T]:
    """The parser as a type of argparse, which shows the text of an ArgumentTypeError, but not that of a ValueError."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


@argument
def interval(text: str) -> float:
    """Seconds to wait. Refuses anything that is not a number above 0 and at most a day."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:
        raise ValueError(f"expected seconds above 0 and at most 86400, got {text!r}")
    return seconds
