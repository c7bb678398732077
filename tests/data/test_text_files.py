"""Text files are read in pieces: no sentence, line number or error depends on where a piece ends."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from read_files import read_columns

from ner_experiments.data import text_files
from ner_experiments.data.text_files import Line, read_blocks, read_lines, read_text

TEXTS = st.text(alphabet="a \t\n\r\0\ufeff中", max_size=40)


class InPieces(io.BytesIO):
    """A file of which few bytes can be read at once, as of a slow pipe."""

    name = "pipe"

    def __init__(self, content: bytes, size: int):
        super().__init__(content)
        self.size = size

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(self.size)


@given(text=TEXTS, size=st.integers(1, 9))
def test_lines_do_not_depend_on_the_pieces(text: str, size: int) -> None:
    read, error = outcome(read_lines(InPieces(text.encode(), size)))
    expected, expected_error = outcome(plain_lines(text))
    assert (read, error) == (expected, expected_error)


@given(text=TEXTS, size=st.integers(1, 9))
def test_line_ends_are_kept_in_text(text: str, size: int) -> None:
    read, error = outcome(read_text(InPieces(text.encode(), size)))
    whole = "".join(line for _, line in read)
    assert text.removeprefix("\ufeff").startswith(whole)
    assert [number for number, _ in read] == [*range(1, len(read) + 1)]
    assert all(line.count("\n") <= line.endswith("\n") for _, line in read)
    assert bool(error) == ("\0" in text)
    assert error or whole == text.removeprefix("\ufeff")


@given(text=TEXTS, size=st.integers(1, 9))
def test_blocks_are_runs_of_lines_between_blank_lines(text: str, size: int) -> None:
    read, error = outcome(block.lines for block in read_blocks(InPieces(text.encode(), size)))
    lines, expected_error = outcome(plain_lines(text))
    expected, block = [], []
    for line in lines:
        if line[1].strip(" \t"):
            block.append(line)
        elif block:
            expected.append(block)
            block = []
    if block and not expected_error:
        expected.append(block)
    assert error == expected_error
    assert read == expected or (error and read in (expected, [*expected, block]))


def plain_lines(text: str) -> Iterator[Line]:
    """The rules of `read_lines`, one line after the other."""
    for number, line in enumerate(io.StringIO(text, newline="\n"), 1):
        line = line.removeprefix("\ufeff") if number == 1 else line
        line = line.removesuffix("\n").removesuffix("\r")
        rule = "NUL byte" if "\0" in line else "carriage return inside a line" if "\r" in line else ""
        if rule:
            raise ValueError(f"pipe:{number}: {rule}")
        yield number, line


def outcome(items: Iterator[object]) -> tuple[list[object], str]:
    """The items of an iterator, and the start of its error, or "" without one."""
    found = []
    try:
        for item in items:
            found.append(item)  # noqa: PERF402  # what came before an error counts
    except ValueError as error:
        return found, str(error).partition(" (")[0].partition(": '")[0]
    return found, ""


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_the_first_error_of_a_file_is_reported(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "PIECE", size)
    file = io.BufferedReader(io.BytesIO(b"a O\nb O O\n\nc\xe9 O\n\0 O\n"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=":4: not UTF-8"):  # before a line of another width
        list(read_columns(named(file), columns={"word": 0, "tag": 1}))
    file = io.BufferedReader(io.BytesIO(b"a O\n\nc\xe9 O\n\0 O\n"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=":3: not UTF-8"):
        list(read_columns(named(file), columns={"word": 0, "tag": 1}))


def named(file: io.BufferedReader) -> io.BufferedReader:
    """The file with a name, as an open pipe has one."""

    class Named(io.BufferedReader):
        name = "pipe"

    return Named(file.detach())


class Terminal(io.BytesIO):
    """Input that is typed: whoever reads on after its end waits for more."""

    name = "terminal"
    ended = False

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.noted(super().read1(size))

    def readline(self, size: int | None = -1, /) -> bytes:
        return self.noted(super().readline(size))

    def noted(self, content: bytes) -> bytes:
        assert not self.ended
        self.ended = not content
        return content


@pytest.mark.parametrize("text", ["a\nb\n", ""])
def test_nothing_is_read_after_the_end_of_typed_input(text: str) -> None:
    assert [line for _, line in read_lines(Terminal(text.encode()))] == text.split()


def test_an_unbuffered_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a O\nb O\n\nc O")
    with open(path, "rb", buffering=0) as file:
        sentences = read_columns(file, columns={"word": 0, "tag": 1})  # type: ignore[arg-type]
        assert [it.words for it in sentences] == [("a", "b"), ("c",)]


def test_sentences_of_a_pipe_are_read_before_it_ends() -> None:
    source, sink = os.pipe()
    with open(source, "rb") as reader, open(sink, "wb", buffering=0) as writer:
        writer.write(b"a O\nb B-X\n\nc O\n")
        sentences = read_columns(reader, columns={"word": 0, "tag": 1})
        assert [it.words for it in islice(sentences, 1)] == [("a", "b")]
        writer.write(b"\nd O\n")
        assert next(sentences).words == ("c",)
        writer.close()
        assert [it.words for it in sentences] == [("d",)]
