"""Tables of results in the terminal, by rich."""

from __future__ import annotations

import sys
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


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
