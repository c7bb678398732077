"""Tables of results in the terminal, by rich."""

from __future__ import annotations

import re
import sys
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text


def make_console(**options: Any) -> Console:
    """A console as wide as the terminal; wide enough for long rows if the output is a file."""
    return Console(width=None if sys.stdout.isatty() else 120, **options)


def new_table(first: str, *numbers: str, title: str | None = None, caption: str | None = None) -> Table:
    """A table whose first column holds names, folded if they are long, and the others numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", caption=caption)
    table.caption_justify = "left"
    table.add_column(first, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
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
    """Draw a table of Markdown. Only headings are wrapped; where it is too wide, the terminal breaks its lines."""
    headings, rules, *lines = (cells_of(line) for line in block.splitlines())
    table, needed = Table(box=SIMPLE_HEAD, pad_edge=False), 0
    for heading, rule, *column in zip(headings, rules, *lines, strict=True):
        width = max(map(len, [*heading.split(), *column]), default=0)
        table.add_column(Text(heading), justify="right" if rule.endswith(":") else "left", width=width)
        needed += width + 3  # a space on either side, and one between columns
    for line in lines:
        table.add_row(*map(Text, line))
    Console(width=max(console.width, needed), file=console.file).print(table)


def cells_of(line: str) -> list[str]:
    """The cells of a line of a table, as `utils.text.markdown_table` writes it."""
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
