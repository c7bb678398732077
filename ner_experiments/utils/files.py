"""Files and folders that are written completely or not at all, files even if the machine stops midway; checksums."""

from __future__ import annotations

import csv
import errno
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from ner_experiments.utils.text import as_json

SUFFIX = ".part"
RANDOM = "[0-9a-f]" * 8
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing, which Python raises without the file's name."""
State = tuple[int, int, int]
"""Modification time in nanoseconds, inode and size of a file."""


def sha256(path: Path) -> str:
    """SHA-256 of the file's bytes in hexadecimal, read as a stream."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def state(path: Path) -> State:
    """The state of a file, in which a new version of it differs. Zeros if there is none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0, 0
    return found.st_mtime_ns, found.st_ino, found.st_size


def json_digest(content: Any) -> str:
    """SHA-256 of the content as JSON with sorted keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which replaces `path` once its content is on the disk.

    After an error `path` is as it was before. OSErrors such as that of a full disk name it.
    """
    locked = _new_part(path)
    part = Path(locked.name)
    try:
        with locked:
            yield part
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(path)
    except OSError as error:
        _add_name(error, path)
        raise
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder to write to, which becomes `path` at the end; after an error `path` does not exist.

    An empty folder of that name is replaced; anything else is an OSError. OSErrors such as that of a full disk name it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as place:
            part = Path(place) / path.name
            part.mkdir()
            yield part
            part.rename(path)
    except OSError as error:
        _add_name(error, path)
        raise


def _add_name(error: OSError, path: Path) -> None:
    """Give an error of writing the name of what was written."""
    if error.errno in WRITE_ERRORS and error.filename is None:
        error.filename = str(path)


def _new_part(path: Path) -> BinaryIO:
    """A new temporary file beside `path`, open and locked.

    `remove_partial_files` of another process can win the race for the lock and remove the file: then another is made.
    """
    while True:
        try:
            file = path.with_name(f"{path.name}.{secrets.token_hex(4)}{SUFFIX}").open("xb")
        except OSError as error:  # such as a folder that is missing, or may not be written to
            error.filename = str(path)
            raise
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_nlink > 0:
                return file
        except BlockingIOError:
            pass
        except OSError:  # a file system without locks: no process can lock the file, so none removes it
            return file
        file.close()


@contextmanager
def as_file(stream: BinaryIO) -> Iterator[Path]:
    """A temporary file with the rest of a stream, such as standard input.

    A ValueError that is raised inside names the stream, without the temporary folder.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(getattr(stream, "name", "<stdin>")).name
        with path.open("wb") as file:
            copyfileobj(stream, file)
        try:
            yield path
        except ValueError as error:
            raise ValueError(str(error).replace(f"{folder}/", "")) from error


def remove_partial_files(folder: Path, name: str = "*") -> None:
    """Remove the temporary files that killed processes have left in the folder, of `name` or of any file.

    A process holds a lock on the file that it is writing, so those of running processes stay.
    """
    for part in folder.rglob(f"{name}.{RANDOM}{SUFFIX}"):
        with suppress(OSError), part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


def write_json(path: Path, content: Any) -> None:
    with atomic_write(path) as part:
        part.write_text(as_json(content) + "\n", encoding="utf-8")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=columns)
        writer.writeheader()
        writer.writerows(rows)
