"""What a file of sweeps/ may say of a table, a row and a measure, and of which kind each is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ner_experiments.quote import quoted
from ner_experiments.settings import nearest


def is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e15  # not infinite, nor too long for a float


def are(kind: Any) -> Any:
    return lambda value: isinstance(value, list) and all(map(kind, value))


def is_figure(value: Any) -> bool:
    return is_number(value) or is_text(value) or (are(is_text)(value) and bool(value))


def are_figures(value: Any) -> bool:
    return isinstance(value, dict) and all(map(is_text, value)) and all(map(is_number, value.values()))


TEXTS = (are(is_text), "a list of texts")
TEXT = (is_text, "a text")
TABLE = {
    "title": TEXT,
    "source": TEXT,
    "rows": (lambda value: isinstance(value, list), "a list"),
    "extends": TEXT,
    "base": TEXTS,
    "seeds": (are(is_count), "a list of whole numbers from 0"),
    "analysis": TEXT,
    "command": TEXT,
    "notes": TEXTS,
}
ROW = {
    "label": TEXT,
    "published": (is_figure, "a number, a text or a list of texts"),
    "run": TEXTS,
    "cited": (lambda value: isinstance(value, bool), "true or false"),
    "sd": (is_number, "a number"),
    "runs": (is_count, "a whole number"),
    "also": (are_figures, "names with a number each"),
    "trial": TEXTS,
    "measure": (lambda value: isinstance(value, dict), "of, figure and key, and over or only, by name"),
    "note": TEXT,
}
MEASURE = dict.fromkeys(("of", "figure", "key", "over", "only"), TEXT)
REQUIRED = ("title", "source", "rows", "label", "of", "figure", "key")


def checked(content: Any, rules: Mapping[str, tuple[Any, str]], place: str) -> dict[str, Any]:
    """`content` as it is, if it holds nothing but what the rules name, and as they say."""
    if not isinstance(content, dict):
        raise ValueError(f"{place}: expected {', '.join(rules)} by name, got {quoted(content)}")
    for key, value in content.items():
        if key not in rules:
            raise ValueError(f"{place}: there is no {quoted(key)}{nearest(str(key), rules)}")
        fits, rule = rules[key]
        if not fits(value):
            raise ValueError(f"{place}: {key} must be {rule}, got {quoted(value)}")
    for key in REQUIRED:
        if key in rules and key not in content:
            raise ValueError(f"{place}: {key} is missing")
    return content
