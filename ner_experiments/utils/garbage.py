"""Python's cyclic garbage collector."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def paused_garbage_collection(*, keeps: bool = False) -> Iterator[None]:
    """Context in which the collector does not run: it would search millions of new objects again and again.

    keeps: whether the objects are kept. They are then moved to the oldest generation, which is searched rarely.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if keeps and not program_freezes():
                gc.freeze()  # moves every object out of the young generations
                gc.unfreeze()  # and from there to the oldest
            gc.enable()


def exit_without_collecting() -> None:
    """Let this process end without a last search for garbage, which takes over a second once PyTorch is loaded.

    Objects in reference cycles are then not finalized, so files have to be closed, not left to the collector.
    """
    atexit.unregister(gc.freeze)  # by an earlier call
    atexit.register(gc.freeze)


@cache  # counting walks through all frozen objects
def program_freezes() -> bool:
    """Whether the program has exempted objects from the collector, which `unfreeze` would undo."""
    return gc.get_freeze_count() > 0
