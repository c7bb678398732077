"""A run's folder belongs to one process at a time: what a process that dies had claimed is free again."""

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
LOOK = 0.5
"""Seconds for which a claim waits: longer than anyone looks whether there is one."""


@contextmanager
def claim(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Whether the folder is ours while the `with` lasts; `wait`: until another process has left it.

    The claim is a lock that the operating system holds for the process (flock), so none outlives it. On a
    network file system it holds between machines if the file system does locks.
    """
    lock = lock_of(folder)
    try:
        lock.acquire(timeout=LOOK, poll_interval=LOOK / 10)
    except Timeout:
        if wait:
            log.info("%s: another process is working on it; waiting", folder)
            lock.acquire()
    try:
        yield lock.is_locked
    finally:
        lock.release()


def wait_for_one(folders: Sequence[Path], *, seconds: float = 1.0) -> list[Path]:
    """Those of the folders that nobody claims, as soon as there is one; looks so often."""
    while not (free := [folder for folder in folders if not is_held(folder)]):
        time.sleep(seconds)
    return free


def is_held(folder: Path) -> bool:
    """Whether a process has claimed the folder. Who looks holds a shared lock meanwhile, for microseconds."""
    try:
        with (folder / NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is no lock, or the file system has none
        return False
    return False


def lock_of(folder: Path) -> FileLock:
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / NAME)
