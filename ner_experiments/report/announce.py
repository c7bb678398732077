"""Progress of a report on standard error: a bar on a terminal, some ten lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def tracked(items: Sequence[Item], action: str, name: Callable[[Item], str]) -> Iterator[Item]:
    """The items, each announced by its name before it is yielded; outside a terminal, of many only some."""
    if len(items) == 1:
        yield items[0]
        return
    if sys.stderr.isatty():
        yield from with_bar(items, action, name)
        return
    step = max(1, len(items) // 10)
    for number, item in enumerate(items, start=1):
        if (number - 1) % step == 0:
            print(f"{action} {number} of {len(items)}: {name(item)}", file=sys.stderr, flush=True)
        yield item


def with_bar(items: Sequence[Item], action: str, name: Callable[[Item], str]) -> Iterator[Item]:
    from rich.markup import escape  # only needed on a terminal

    from ner_experiments.utils.terminal import progress_bar

    with progress_bar() as bar:
        task = bar.add_task("", total=len(items))
        for item in items:
            bar.update(task, description=escape(f"{action} {name(item)}"))
            yield item
            bar.advance(task)
