"""Python's cyclic garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Context in which the collector does not run.

    While millions of objects are created and kept, it would search them for garbage again and again. They are then
    moved to the oldest generation, which is searched rarely.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():  # else `unfreeze` would thaw what was frozen before
                gc.freeze()  # moves every object out of the young generations
                gc.unfreeze()  # and from there to the oldest
            gc.enable()
