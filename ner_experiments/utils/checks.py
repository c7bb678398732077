"""Checks of values whose types are unknown, such as those from JSON, YAML and the command line.

The keys of a file are the fields of a dataclass whose types are annotated with a rule: `label: Text`. A key is required
if its field has no default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from ner_experiments.utils.text import did_you_mean, truncated_repr

T = TypeVar("T")


class Rule(NamedTuple):
    """A condition on a value. text: the condition in words, to follow `must be`."""

    fits: Callable[[Any], bool]
    text: str


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
    return are_counts(value) and 0 < len(value) == len(set(value))


def are_counts(value: Any) -> bool:
    return list_of(is_count)(value)


def is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def is_list(value: Any) -> bool:
    return isinstance(value, list)


ANYTHING = Rule(lambda value: True, "")
"""The rule of a key whose value is checked by a schema of its own."""
Text = Annotated[str, Rule(is_text, "a text")]
String = Annotated[str, Rule(lambda value: isinstance(value, str), "a text or empty")]
Texts = Annotated[tuple[str, ...], Rule(list_of(is_text), "a list of texts")]
Counts = Annotated[tuple[int, ...], Rule(are_counts, "a list of whole numbers from 0")]
Seeds = Annotated[tuple[int, ...], Rule(are_seeds, "different whole numbers from 0, at least one")]
Count = Annotated[int, Rule(is_count, "a whole number from 0")]
Number = Annotated[float, Rule(is_number, "a number")]
Positive = Annotated[float, Rule(lambda value: is_number(value) and value > 0, "a number above 0")]
Flag = Annotated[bool, Rule(lambda value: isinstance(value, bool), "true or false")]


class Key(NamedTuple):
    """A key of a schema. schema: that of its value, or of each of its values, which is a dataclass, too; or None."""

    rule: Rule
    required: bool
    schema: Any = None


@cache
def keys(schema: Any) -> dict[str, Key]:
    """The keys of a schema: the fields whose type has a rule, is a Literal or a dataclass, or a tuple of such."""
    hints: dict[str, Any] = get_type_hints(schema, include_extras=True)
    found = {}
    for it in fields(schema):
        hint, required = hints[it.name], it.default is it.default_factory is MISSING
        parts = (hint, *get_args(hint))  # `Text`, `Text | None`, `tuple[Row, ...]`
        if rules := [rule for part in parts for rule in getattr(part, "__metadata__", ())]:
            found[it.name] = Key(rules[0], required)
        elif get_origin(hint) is Literal:
            names = get_args(hint)
            found[it.name] = Key(Rule(names.__contains__, f"one of {', '.join(names)}"), required)
        elif nested := next(filter(is_dataclass, parts), None):
            rule = Rule(is_list, "a list") if get_origin(hint) is tuple else ANYTHING
            found[it.name] = Key(rule, required, nested)
    return found


def checked(content: Any, schema: type, place: str) -> dict[str, Any]:
    """`content` unchanged, if it is a mapping of the schema's keys, all values fit, and no required key is missing."""
    known = keys(schema)
    if not isinstance(content, dict):
        raise ValueError(f"{place}: expected {', '.join(known)} by name, got {truncated_repr(content)}")
    for key, value in content.items():
        if key not in known:
            raise ValueError(f"{place}: there is no {truncated_repr(key)}{did_you_mean(str(key), known)}")
        if not known[key].rule.fits(value):
            raise ValueError(f"{place}: {key} must be {known[key].rule.text}, got {truncated_repr(value)}")
    for key, (_, required, _) in known.items():
        if required and key not in content:
            raise ValueError(f"{place}: {key} is missing")
    return content


def parsed(content: Any, schema: type[T], place: str, **others: Any) -> T:
    """The dataclass of a content that is checked first; see `built`."""
    return built(checked(content, schema, place), schema, place, **others)


def built(content: Mapping[str, Any], schema: type[T], place: str, **others: Any) -> T:
    """The dataclass of a `checked` content, with lists as tuples. others: fields that are no keys, or parsed before."""
    values = {}
    for key, value in content.items():
        nested = keys(schema)[key].schema  # type: ignore[arg-type]
        if key in others:
            continue
        if nested and isinstance(value, list):
            each = numbered(value, nested, f"{place}: {key.removesuffix('s')}")
            value = [parsed(entry, nested, where) for where, entry in each]
        elif nested:
            value = parsed(value, nested, f"{place}: {key}")
        values[key] = tuple(value) if isinstance(value, list) else value
    try:
        return schema(**values, **others)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def numbered(entries: Iterable[Any], schema: type, place: str) -> Iterator[tuple[str, Any]]:
    """Each entry after its place, such as `FILE: row 3 ('a')`: its number, and the text of its first key."""
    first = next(iter(keys(schema)))
    for number, entry in enumerate(entries, start=1):
        name = entry.get(first) if isinstance(entry, dict) else None
        yield f"{place} {number}{f' ({truncated_repr(name)})' if isinstance(name, str) else ''}", entry
