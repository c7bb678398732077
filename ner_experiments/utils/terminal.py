"""Tables of results in the terminal, by rich."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
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
    """Draw a table of Markdown as `draw` does, its numbers to the right."""
    draw([*map(cells_of, block.splitlines())], console)


def draw(lines: Sequence[Sequence[str]], console: Console) -> None:
    """Draw a table, given as lines of cells: the headings, their rules in Markdown (`--:` for numbers) and others.

    One that is too wide has its headings wrapped; then narrower gaps and a first column wrapped between words; then it
    is drawn in parts below each other that repeat the first column. No number is cut.
    """
    columns = [*zip(*lines, strict=True)]
    width, spaces = console.width - 2, len(columns) - 1  # without the edges
    widths = [max(map(len, [heading, *cells])) for heading, _, *cells in columns]
    if sum(widths) + GAP * spaces > width:
        widths = [max(map(len, [*heading.split(), *cells])) for heading, _, *cells in columns]
    gap = GAP if sum(widths) + GAP * spaces <= width else GAP - 1
    longest = max(len(word) for _, _, *cells in columns[:1] for cell in cells for word in [*cell.split(), ""])
    room = width - sum(widths[1:]) - gap * spaces
    whole, widths[0] = widths[0], room if room >= longest else max(longest, min(20, width // 3))
    parts: list[list[int]] = [[0]]
    for number in range(1, len(columns)):
        if parts[-1][1:] and sum(widths[it] + gap for it in [*parts[-1], number]) - gap > width:
            parts.append([0])
        parts[-1].append(number)
    spare = min(width - sum(widths[it] + gap for it in part) + gap for part in parts)
    widths[0] = min(whole, widths[0] + max(0, spare))
    for part in parts:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, gap - 2))
        for number in part:
            justify: Literal["left", "right"] = "right" if columns[number][1].endswith(":") else "left"
            table.add_column(Text(columns[number][0]), justify=justify, width=widths[number])
        for line in zip(*(columns[number][2:] for number in part), strict=True):
            table.add_row(*map(Text, line))
        needed = sum(widths[it] + gap for it in part) - gap + 2
        Console(width=max(console.width, needed), file=console.file).print(table)


def cells_of(line: str) -> list[str]:
    """The cells of a line of a table, as `utils.text.markdown_table` writes it."""
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
