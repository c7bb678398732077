"""Locks on folders: one process at a time works on a run, and a process that dies releases its lock."""

from __future__ import annotations

import fcntl
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

log = logging.getLogger(__name__)

NAME = ".lock"
TIMEOUT = 0.5
"""Seconds to wait for a lock: longer than `is_held` ever holds it."""


@contextmanager
def hold_lock(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Context that takes the folder's lock and yields whether this process holds it.

    wait: whether to wait for a process that holds it now; if not, the context then yields False.

    The operating system keeps the lock (flock) and releases it when the process ends. On a network file system it
    works across machines if the file system supports locks.
    """
    lock = lock_of(folder)
    try:
        lock.acquire(timeout=TIMEOUT, poll_interval=TIMEOUT / 10)
    except Timeout:
        if wait:
            log.info("%s: another process is working on it; waiting", folder)
            lock.acquire()
    try:
        yield lock.is_locked
    finally:
        lock.release()


def wait_for_one(folders: Sequence[Path], *, seconds: float = 1.0) -> list[Path]:
    """Block until a folder is unlocked, and return all unlocked ones. Polls every `seconds`."""
    while not (free := [folder for folder in folders if not is_held(folder)]):
        time.sleep(seconds)
    return free


def is_held(folder: Path) -> bool:
    """Whether a process holds the folder's lock. Takes a shared lock itself, for microseconds."""
    try:
        with (folder / NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock file, or a file system without locks
        return False
    return False


def lock_of(folder: Path) -> FileLock:
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / NAME)
