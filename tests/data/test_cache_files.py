"""Files of caches: whole, or made again; one writer at a time, or many."""

import logging
import threading
from pathlib import Path

import numpy as np
import pytest

from ner_experiments.data import cache_files

CONTENT = b"content" * 30


def write(file: Path, content: bytes = CONTENT) -> None:
    with cache_files.new(file) as part:
        part.write_bytes(content)


def read(file: Path) -> bytes | None:
    return cache_files.read(file, "numbers", np.ndarray.tobytes)


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "shorter than a digest": lambda content: content[-9:],
    "one bit": lambda content: content[:30] + bytes([content[30] ^ 1]) + content[31:],
    "one bit of the digest": lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
    "text": lambda content: b"x" * 900,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_does_not_count(damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "new" / "a.npz"
    with caplog.at_level(logging.WARNING):
        assert read(file) is None
        write(file)
        assert read(file) == CONTENT
        assert not caplog.messages
        file.write_bytes(DAMAGES[damage](file.read_bytes()))
        assert read(file) is None
    assert caplog.messages == [f"{file}: damaged cache of numbers, computed again"]


def test_many_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    start = threading.Barrier(6)

    def work() -> None:
        start.wait()
        write(tmp_path / "a.npz")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [*tmp_path.iterdir()] == [tmp_path / "a.npz"]
    assert read(tmp_path / "a.npz") == CONTENT


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path) -> str:
        raise OSError("no space left")

    monkeypatch.setattr(cache_files, "sha256", full)
    with pytest.raises(OSError, match="no space left"):
        write(tmp_path / "a.npz")
    assert [*tmp_path.iterdir()] == []
