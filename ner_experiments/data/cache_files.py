"""Files of caches, which end in the SHA-256 of their other bytes. Several processes may read and write one at once."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from ner_experiments.utils.files import atomic_write, remove_partial_files, sha256

T = TypeVar("T")
_DIGEST = hashlib.sha256().digest_size

_log = logging.getLogger(__name__)


def read(file: Path, what: str, parse: Callable[[np.ndarray], T]) -> T | None:
    """The result of `parse` on the bytes before the digest, which are memory-mapped; None if there is no such file.

    None, too, if the file is damaged or `parse` raises a ValueError; a warning then names `what` is cached.
    """
    if not file.exists():
        return None
    try:
        content = np.memmap(file, mode="r")
        if hashlib.sha256(content[:-_DIGEST].data).digest() == content[-_DIGEST:].tobytes():
            return parse(content[:-_DIGEST])
    except (OSError, EOFError, ValueError) as error:
        _log.debug("%s: %s", file, error)
    _log.warning("%s: damaged cache of %s, computed again", file, what)
    return None


@contextmanager
def new(file: Path) -> Iterator[Path]:
    """A temporary path to write the content to, which then replaces `file` with its digest."""
    file.parent.mkdir(parents=True, exist_ok=True)
    remove_partial_files(file.parent)
    with atomic_write(file) as part:
        yield part
        digest = bytes.fromhex(sha256(part))
        with part.open("ab") as stream:
            stream.write(digest)
