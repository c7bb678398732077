"""Checks of values whose types are unknown, such as those from JSON, YAML and the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ner_experiments.utils.text import did_you_mean, truncated_repr


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


TEXT = (is_text, "a text")
TEXTS = (list_of(is_text), "a list of texts")


def checked(
    content: Any, rules: Mapping[str, tuple[Any, str]], place: str, required: Sequence[str]
) -> dict[str, Any]:
    """`content` unchanged, if all its keys are in `rules`, all values fit, and no required key is missing."""
    if not isinstance(content, dict):
        raise ValueError(f"{place}: expected {', '.join(rules)} by name, got {truncated_repr(content)}")
    for key, value in content.items():
        if key not in rules:
            raise ValueError(f"{place}: there is no {truncated_repr(key)}{did_you_mean(str(key), rules)}")
        fits, rule = rules[key]
        if not fits(value):
            raise ValueError(f"{place}: {key} must be {rule}, got {truncated_repr(value)}")
    for key in required:
        if key not in content:
            raise ValueError(f"{place}: {key} is missing")
    return content
