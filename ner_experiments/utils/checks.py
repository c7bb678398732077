"""Checks of values whose types are unknown, such as those from JSON, YAML and the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e15  # not infinite, nor too long for a float


def list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def are_seeds(value: Any) -> bool:
    """Whether it is a list of different whole numbers from 0, at least one."""
    return list_of(is_count)(value) and 0 < len(value) == len(set(value))
