"""The architectures as tools/diagrams.py draws them: their blocks, and who reads whom."""

import importlib
from functools import cache
from typing import Any

import pytest
from places import ROOT

from ner_experiments.config.compose import architectures

MODELS = architectures()


@cache
def tool(name: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        return importlib.import_module(name)


@cache
def blocks(name: str) -> list[Any]:
    return tool("diagrams").blocks(name)


def kinds(name: str, *wanted: str) -> list[int]:
    return [number for number, block in enumerate(blocks(name)) if block.kind in wanted]


def plain(name: str) -> list[tuple[str, tuple[int, ...]]]:
    """Kinds and what they read, without dropout: who reads it reads what it reads."""
    found, at = [], {}
    for number, block in enumerate(blocks(name)):
        reads = tuple(at[read] for read in block.reads)
        if block.kind == "dropout":
            (at[number],) = reads
        else:
            at[number] = len(found)
            found.append((block.kind, reads))
    return found


def below(name: str, number: int) -> set[int]:
    """The blocks that a block reads, directly or not."""
    reads = {*blocks(name)[number].reads}
    return reads.union(*(below(name, read) for read in reads))
