"""The settings in which a table's rows differ, read from the overrides that make them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

from hydra.core.override_parser.types import Quote, QuotedString

CORPUS = "data"
NAMES = {
    "model.num_units": "parallel units",
    "model.unit_size": "size of a unit",
    "model.hidden_size": "hidden size",
    "model.dropout": "dropout",
}


def named(key: str) -> str:
    return NAMES.get(key, key)


def settings(overrides: Sequence[str]) -> dict[str, str]:
    """By key."""
    return {key: value for key, _, value in (item.partition("=") for item in overrides)}


def varying(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Keys of which not all rows have the same value."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return [key for key in keys if len({row.get(key) for row in rows}) > 1]


def numeric(rows: Sequence[Mapping[str, str]], keys: Sequence[str]) -> list[str]:
    """Keys of which every row has a number."""
    return [key for key in keys if all(is_number(row.get(key, "")) for row in rows)]


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def compared(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Keys of what the rows are about: of those that vary, the ones that follow from no other.

    A setting follows from one that decides it and is not decided by it. Of two that decide each other,
    what goes with the corpus follows from it, and a number from a choice. The corpus follows from nothing,
    and where a file lies is not compared.
    """
    keys = [key for key in varying(rows) if not any(is_place(row.get(key, "")) for row in rows)]
    columns = {key: [row.get(key) for row in rows] for key in keys}
    numbers = {key for key in keys if all(is_number(row[key]) for row in rows if key in row)}

    def follows(key: str, other: str) -> bool:
        if key in (CORPUS, other) or not decides(columns[other], columns[key]):
            return False
        back = decides(columns[key], columns[other])
        return not back or other == CORPUS or (key in numbers and other not in numbers)

    return [key for key in keys if not any(follows(key, other) for other in keys)]


def decides(one: Sequence[Hashable], other: Sequence[Hashable]) -> bool:
    """Whether rows that are alike in the one are alike in the other."""
    return len(set(zip(one, other, strict=True))) == len(set(one))


def is_place(value: str) -> bool:
    """A name on a hub is none: it says what is read, wherever it lies."""
    return "${" in value or Path(value).is_absolute()


def as_value(text: str) -> str:
    """As one value in Hydra's grammar; what `${...}` stands for is left to whom it reaches."""
    return QuotedString(text.replace("${", "\\${"), Quote.double).with_quotes()
