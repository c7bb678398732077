"""Atomically written files, while other processes clean up."""

import fcntl
from pathlib import Path
from typing import Any

import pytest

from ner_experiments.utils.files import atomic_write, remove_partial_files


def test_cleaning_between_creation_and_lock_costs_a_writer_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process holds the lock first, and removes the file once its writer works on it."""
    others: list[Any] = []
    lock = fcntl.flock

    def locked(file: Any, operation: int) -> None:
        if not others:
            others.append(Path(file.name).open("rb"))  # noqa: SIM115  closed below
            lock(others[0], operation)
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", locked)
    with atomic_write(tmp_path / "file") as part:
        part.write_text("whole")
        Path(others[0].name).unlink()
        others[0].close()
    assert (tmp_path / "file").read_text() == "whole"
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_cleaning_before_the_lock_costs_a_writer_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned: list[Any] = []
    lock = fcntl.flock

    def locked(file: Any, operation: int) -> None:
        if not cleaned:
            cleaned.append(file)
            remove_partial_files(tmp_path)
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", locked)
    with atomic_write(tmp_path / "file") as part:
        part.write_text("whole")
        remove_partial_files(tmp_path)
    assert (tmp_path / "file").read_text() == "whole"


def test_only_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    left = tmp_path / "file.0123abcd.part"
    left.touch()
    with atomic_write(tmp_path / "file") as part:
        part.write_text("whole")
        remove_partial_files(tmp_path)
        assert sorted(tmp_path.iterdir()) == [part]
    assert [path.read_text() for path in tmp_path.iterdir()] == ["whole"]
