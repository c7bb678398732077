"""Files that appear whole or not at all, wherever the machine stops in between."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUFFIX = ".part"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Another path to write to, which takes the place of `path` when it is written and on the disk.

    After an error there is only what was there before.
    """
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}{SUFFIX}")
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Removes what a process that was killed had begun to write; no other may be at work in the folder."""
    for part in folder.rglob(f"*{SUFFIX}"):
        part.unlink(missing_ok=True)
