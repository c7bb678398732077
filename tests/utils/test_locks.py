"""Locks where flock fails, and locks of processes that are gone."""

import errno
import fcntl
import logging
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ner_experiments.utils import locks
from ner_experiments.utils.locks import hold_lock, is_held

ERRORS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO)


@pytest.fixture(params=ERRORS, ids=[errno.errorcode[each] for each in ERRORS])
def without_flock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make flock fail as on a file system without locks; returns the error's text."""

    def failing(file: Any, operation: int) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", failing)
    return os.strerror(request.param)


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_without_flock_a_file_locks_the_folder_and_a_line_says_so(
    without_flock: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with hold_lock(tmp_path, wait=False) as ours:
        assert ours
        assert f"{tmp_path}: this file system does not support locks (flock: {without_flock})" in caplog.text
        assert is_held(tmp_path)
        with hold_lock(tmp_path, wait=False) as theirs:
            assert not theirs
        assert is_held(tmp_path)
    assert not is_held(tmp_path)


def test_without_flock_the_lock_of_a_killed_process_is_taken_over(without_flock: str, tmp_path: Path) -> None:
    (tmp_path / ".held").write_text(f"{ended_process()}\n{socket.gethostname()}\n")
    assert not is_held(tmp_path)
    with hold_lock(tmp_path, wait=False) as ours:
        assert ours


@pytest.mark.parametrize("flock", [True, False], ids=["flock", "without"])
def test_a_lock_of_another_host_says_whose_it_is_and_what_to_delete(
    flock: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = ".lock" if flock else ".held"
    (tmp_path / name).write_text("4711\nnode7\n")
    os.utime(tmp_path / name, (0, 0))
    if flock:
        held = (tmp_path / name).open("rb")
        fcntl.flock(held, fcntl.LOCK_EX)
        release = held.close
    else:
        monkeypatch.setattr(fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOLCK, "none")))
        release = (tmp_path / name).unlink
    assert is_held(tmp_path)
    taken: list[bool] = []

    def wait() -> None:
        with hold_lock(tmp_path, wait=True) as ours:
            taken.append(ours)

    other = threading.Thread(target=wait)
    with caplog.at_level(logging.INFO):
        other.start()
        while "waiting" not in caplog.text:
            other.join(0.01)
        release()
        other.join(10)
    assert "another process is working on it (process 4711 on node7 since 19" in caplog.text
    assert f"waiting. If it no longer runs there, delete {tmp_path / name}" in caplog.text
    assert taken == [True]


def test_a_wait_is_said_once_whoever_has_the_lock(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for process in (1, 2):
        (tmp_path / "lock").write_text(f"{process}\nnode7\n", encoding="utf-8")
        locks.announce_wait(f"{tmp_path}: work", tmp_path / "lock")
    (message,) = caplog.messages
    assert f"{tmp_path}: work (process 1 on node7 since" in message


@pytest.mark.parametrize("content", ["", "\n", "x\ny\n", "1", "9" * 30 + "\nhere", "\0\0\n"])
def test_a_lock_file_of_any_content_can_be_taken(content: str, tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text(content)
    with hold_lock(tmp_path, wait=False) as ours:
        assert ours
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n{socket.gethostname()}\n"


def test_who_asks_whether_a_folder_is_locked_is_not_taken_for_its_owner(tmp_path: Path) -> None:
    """By another process that asks at the same moment, such as a second `watch`."""
    with hold_lock(tmp_path, wait=False):
        assert is_held(tmp_path)
    with (tmp_path / ".lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert not is_held(tmp_path)
