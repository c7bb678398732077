"""Tables of results in the terminal, by rich."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.progress import Progress

GAP = 3
"""Columns between two columns of a table."""


def make_console(**options: Any) -> Console:
    """A console as wide as the terminal; wide enough for long rows if the output is a file."""
    return Console(width=None if sys.stdout.isatty() else 120, **options)


def progress_bar() -> Progress:
    """A bar on standard error with the number of items done, the time and a text, which is gone at its end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(file=sys.stderr), transient=True)


def new_table(
    first: str, *numbers: str, lines: Iterable[Sequence[str]] = (), title: str | None = None
) -> Table:
    """A table whose first column holds names, folded if they are long, and the others numbers.

    Cells are shown as they are, without markup.
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    table.add_column(first, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    for line in lines:
        table.add_row(*map(Text, line))
    return table


def print_markdown(text: str, console: Console | None = None) -> None:
    """Print Markdown, drawn on a terminal, and as it is in a file or a pipe."""
    if console is None and not sys.stdout.isatty():
        print(text, end="")
        return
    from rich.markdown import Markdown  # slow to import, and only needed on a terminal

    console = console or Console()
    for block in text.strip("\n").split("\n\n"):
        if block.startswith("|"):
            print_table(block, console)
        elif block.startswith("# "):
            console.print(Text(block.removeprefix("# "), style="bold"), "", sep="\n", soft_wrap=True)
        else:
            console.print(Markdown(block, hyperlinks=False), "", sep="\n")


def print_table(block: str, console: Console) -> None:
    """Draw a table of Markdown: where it is too wide, in parts below each other that repeat the first column.

    Headings are wrapped, and the first column where it takes more than half of the terminal.
    """
    columns = [*zip(*(cells_of(line) for line in block.splitlines()), strict=True)]
    widths = [max(map(len, [*heading.split(), *column])) for heading, _, *column in columns]
    widths[0] = min(widths[0], max(20, console.width // 2))
    parts: list[list[int]] = [[]]
    for number in range(1, len(columns)):
        if parts[-1] and sum(widths[it] + GAP for it in [0, *parts[-1], number]) > console.width:
            parts.append([])
        parts[-1].append(number)
    for part in parts:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for number in [0, *part]:
            justify: Literal["left", "right"] = "right" if columns[number][1].endswith(":") else "left"
            table.add_column(Text(columns[number][0]), justify=justify, width=widths[number])
        for line in zip(*(columns[number][2:] for number in [0, *part]), strict=True):
            table.add_row(*map(Text, line))
        needed = sum(widths[it] + GAP for it in [0, *part])
        Console(width=max(console.width, needed), file=console.file).print(table)


def cells_of(line: str) -> list[str]:
    """The cells of a line of a table, as `utils.text.markdown_table` writes it."""
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
