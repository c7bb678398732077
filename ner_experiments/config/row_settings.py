"""Overrides as text, and the settings in which the rows of a sweep or a table differ.

A row is the overrides of one experiment: as a list of KEY=VALUE, or as a mapping of keys to values.
"""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

CORPUS = "data"
DISPLAY_NAMES = {
    "model.num_units": "parallel units",
    "model.unit_size": "size of a unit",
    "model.hidden_size": "hidden size",
    "model.dropout": "dropout",
}

Item = TypeVar("Item", bound=Hashable)


def compared(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The keys that the rows compare: those that vary and follow from no other.

    A setting follows from another one that determines it, unless it also determines that one. If each determines the
    other, it follows only from the corpus or, if it is a number, from a choice. The corpus follows from nothing. Paths
    of files are never compared.
    """
    keys = [key for key in varying(rows) if not any(is_place(row.get(key, "")) for row in rows)]
    columns = {key: [row.get(key) for row in rows] for key in keys}
    numbers = {key for key in keys if all(is_number(row[key]) for row in rows if key in row)}

    def follows(key: str, other: str) -> bool:
        if key in (CORPUS, other) or not determines(columns[other], columns[key]):
            return False
        mutual = determines(columns[key], columns[other])
        return not mutual or other == CORPUS or (key in numbers and other not in numbers)

    return [key for key in keys if not any(follows(key, other) for other in keys)]


def varying(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The keys that do not have the same value in all rows."""
    return list(dict.fromkeys(key for items in differing([row.items() for row in rows]) for key, _ in items))


def labels(rows: Sequence[Sequence[str]]) -> list[str]:
    """A label for each row of a sweep: the overrides that distinguish it, without the seed; or "all"."""
    unseeded = [[item for item in row if not item.startswith("seed=")] for row in rows]
    return [" ".join(items) or "all" for items in differing(unseeded)]


def differing(rows: Sequence[Iterable[Item]]) -> list[list[Item]]:
    """The items of each row that not all rows have."""
    rows = [list(row) for row in rows]
    common = set(shared(rows))
    return [[item for item in row if item not in common] for row in rows]


def shared(rows: Sequence[Iterable[Item]]) -> list[Item]:
    """The items that all rows have, in the order of the first."""
    first, *others = [list(row) for row in rows] or [[]]
    common = set(first).intersection(*others)
    return [item for item in first if item in common]


def distinguishing(columns: Mapping[str, Sequence[Hashable]], choices: Sequence[Hashable]) -> list[str]:
    """A minimal set of settings that distinguishes the choices as far as any settings do.

    columns: the values of each setting, row by row. choices: the choice of each row. Settings that do not follow from
    the choice are ignored; earlier ones are preferred.
    """
    columns = {name: column for name, column in columns.items() if determines(choices, column)}
    for name, column in columns.items():
        if determines(column, choices):
            return [name]
    names: list[str] = []
    values: list[tuple[Hashable, ...]] = [()] * len(choices)
    for name, column in columns.items():
        extended = [(*before, value) for before, value in zip(values, column, strict=True)]
        if not determines(values, extended):
            names.append(name)
            values = extended
    return names


def determines(one: Sequence[Hashable], other: Sequence[Hashable]) -> bool:
    """Whether rows with equal values in the first column have equal values in the other."""
    return len(set(zip(one, other, strict=True))) == len(set(one))


def numeric(rows: Sequence[Mapping[str, str]], keys: Sequence[str]) -> list[str]:
    """The keys that have a number in every row."""
    return [key for key in keys if all(is_number(row.get(key, "")) for row in rows)]


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_place(value: str) -> bool:
    """Whether a value is the path of a file. The name of a model on a hub is not: it is the same everywhere."""
    return "${" in value or Path(value).is_absolute()


def settings(overrides: Sequence[str]) -> dict[str, str]:
    """The values of overrides by their keys: `layers` for layers=2 and +layers=2."""
    return {key.lstrip("+"): value for key, _, value in (item.partition("=") for item in overrides)}


def display_name(key: str) -> str:
    return DISPLAY_NAMES.get(key, key)


def as_override(key: str, numbers: Iterable[int]) -> str:
    """The override that sets the seeds of a table or its looks, such as seeds=1,2,3."""
    values = ",".join(map(str, numbers))
    return f"{key}={values}" if "," in values else f"{key}=[{values}]"


def run_command(*settings: str) -> str:
    """The command that makes runs with these settings, for a shell."""
    return shlex.join(["python", "run.py", "-m", *settings])


def joined(*parts: Sequence[str]) -> tuple[str, ...]:
    """All overrides in order; the last of several with the same key replaces the others."""
    return tuple({key(item): item for part in parts for item in part}.values())


def key(override: str) -> str:
    """`layers` for layers=2, +layers=2 and ++layers=2."""
    return override.partition("=")[0].lstrip("+~")


def root(override: str) -> str:
    """`data` for data=weibo, data.max_sentences=80 and data/any=thing."""
    return key(override).replace("/", ".").partition(".")[0]


def flat(settings: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each setting by its dotted name: "model.num_layers" for {model: {num_layers: ...}}."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
