"""Locks on folders: one process at a time works on a run, and a process that dies releases its lock."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

log = logging.getLogger(__name__)

LOCK_FILE = ".lock"
"""The file that flock locks. Whoever holds it writes process and host into it."""
MARKER = ".held"
"""On a file system without flock the lock is the existence of this file, which has the same content."""
WITHOUT_FLOCK = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO)
"""Errors of flock on a file system that does not support it, or whose lock service does not answer."""
TIMEOUT = 0.5
"""Seconds to wait for a lock: longer than `is_held` ever holds it."""


@contextmanager
def hold_lock(folder: Path, *, wait: bool, work: str = "", quiet: float = TIMEOUT) -> Iterator[bool]:
    """Context that takes the folder's lock and yields whether this process holds it.

    wait: whether to wait for a process that holds it now; if not, the context then yields False. work: the work of that
    process, for the line that this one logs after `quiet` seconds of waiting; by default the line names the folder.

    The operating system keeps the lock (flock) and releases it when the process ends. On a network file system it
    works across machines if the file system supports locks. If it does not, a warning says so, and a file marks the
    folder as held: that of a process that was killed is taken over on the same machine, and named on another one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    work = work or f"{folder}: another process is working on it"
    lock: BaseFileLock = FileLock(folder / LOCK_FILE, fallback_to_soft=False)
    try:
        acquire(lock, work, wait=wait, quiet=quiet)
        if lock.is_locked:
            with suppress(OSError):  # such as a full disk: the record only names the owner
                (folder / LOCK_FILE).write_text(f"{os.getpid()}\n{socket.gethostname()}\n", encoding="utf-8")
    except OSError as error:
        if error.errno not in WITHOUT_FLOCK:
            raise
        log.warning(
            "%s: this file system does not support locks (flock: %s); %s marks it as held instead. "
            "Do not start the same run on two machines there, or choose another output_dir",
            *(folder, os.strerror(error.errno), MARKER),
        )
        lock = SoftFileLock(folder / MARKER)
        acquire(lock, work, wait=wait, quiet=quiet)
    try:
        yield lock.is_locked
    finally:
        lock.release()


def acquire(lock: BaseFileLock, work: str, *, wait: bool, quiet: float) -> None:
    """Take the lock; if another process holds it, say so after `quiet` seconds and wait, or return without it."""
    try:
        lock.acquire(timeout=quiet if wait else TIMEOUT, poll_interval=TIMEOUT / 10)
    except Timeout:
        if wait:
            announce_wait(work, Path(lock.lock_file))
            lock.acquire()


announced: set[str] = set()
"""The work that this process has said to wait for."""


def announce_wait(work: str, lock: Path) -> None:
    """Log that this process waits for a lock, and for whom; once, since each kernel is compiled under one."""
    if work not in announced:
        announced.add(work)
        log.info("%s%s", work, waiting_for(lock))


def wait_for_one(folders: Sequence[Path], *, seconds: float = 1.0) -> list[Path]:
    """Block until a folder is unlocked, and return all unlocked ones. Polls every `seconds`."""
    while not (free := [folder for folder in folders if not is_held(folder)]):
        time.sleep(seconds)
    return free


def is_held(folder: Path) -> bool:
    """Whether a process holds the folder's lock. Takes a shared lock itself, for microseconds."""
    try:
        with (folder / LOCK_FILE).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock file, or a file system without locks
        pass
    marker = folder / MARKER
    process, host = owner(marker)
    return marker.exists() and not (host == socket.gethostname() and not is_running(process))


def waiting_for(path: Path) -> str:
    """The end of the message that a process waits for a lock: whose it is, since when, what to delete if stale."""
    process, host = owner(path)
    if not process:
        return "; waiting"
    with suppress(OSError):
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(path.stat().st_mtime))
        elsewhere = f" If it no longer runs there, delete {path}" if host != socket.gethostname() else ""
        return f" (process {process} on {host} since {since}); waiting{elsewhere and '.'}{elsewhere}"
    return "; waiting"


def owner(path: Path) -> tuple[int, str]:
    """Process and host that a lock file names; 0 and "" if it names none."""
    try:
        process, host, *_ = path.read_text(encoding="utf-8", errors="replace").split("\n")
        return int(process), host.partition("?")[0]  # filelock adds a container's name space after a ?
    except (OSError, ValueError):
        return 0, ""


def is_running(process: int) -> bool:
    """Whether this machine has the process."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
