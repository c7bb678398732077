"""Text of measured numbers, and tables of them in Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any

TASKS = {
    "loss": "loss and gradient",
    "train": "forward and backward",
    "forward": "forward",
    "decode": "decoding",
}

Result = dict[str, Any]
Cells = Iterable[Sequence[str]]


def table(*head: str, rows: Cells) -> str:
    lines = (head, ["---", *["---:"] * (len(head) - 1)], *rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def figure(number: float) -> str:
    """The number with three significant digits, or as an integer from 100 on."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def spread(measured: Result, unit: float = 1) -> str:
    """Text of the median and, in parentheses, the quartiles."""
    first, third = (figure(unit * value) for value in measured["quartiles"])
    return f"{figure(unit * measured['median'])} ({first}-{third})"


def ms(measured: Result) -> str:
    return spread(measured, 1e3)


def ratio(one: Result, other: Result) -> str:
    return f"{one['median'] / other['median']:.2f}"
