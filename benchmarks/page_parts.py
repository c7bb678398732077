"""What the sections of the page are made of: tables, figures in writing, and bars that were set."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from timing import Times

TASKS = {
    "loss": "loss and gradient",
    "train": "forward and backward",
    "forward": "forward",
    "decode": "decoding",
}


class Bar(NamedTuple):
    what: str
    asked: str
    measured: str
    met: bool


class Section(NamedTuple):
    lines: list[str]
    bars: list[Bar]


def ratio_table(task: str, ratios: Mapping[str, Any]) -> list[str]:
    """A row for each peer that ran."""
    rows = []
    for name, found in ratios.items():
        if found:
            first, third = found["quartiles"]
            figures = (found["worst"], first, found["median"], third, found["best"])
            rows.append([name, *map(figure, figures)])
    head = [f"{TASKS[task]}: times ours", "worst", "first quartile", "median", "third quartile", "best"]
    return table(head, rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows)]


def at_least(what: str, least: float, measured: float) -> Bar:
    return Bar(what, f"at least {least} times", times_of(measured), measured >= least)


def under(what: str, most: float, times: Times) -> Bar:
    return Bar(what, f"under {most} s", f"{times['median']:.3g} s", times["median"] < most)


def times_of(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def milliseconds(times: Times) -> str:
    first, third = times["quartiles"]
    return seconds({"median": 1e3 * times["median"], "quartiles": [1e3 * first, 1e3 * third]})


def seconds(times: Times) -> str:
    """Any other unit, too."""
    first, third = times["quartiles"]
    return f"{figure(times['median'])} ({figure(first)}-{figure(third)})"


def figure(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
