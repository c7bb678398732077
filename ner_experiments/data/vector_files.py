"""Some words' vectors out of a large file, in one pass: GloVe text, word2vec text or binary, also gzipped."""

from __future__ import annotations

import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterable, Set
from pathlib import Path
from typing import IO, cast

import numpy as np

from ner_experiments.quote import quoted

Rows = dict[bytes, np.ndarray]
"""The vector, in float32, of each key that was found."""

_BLOCK = 1 << 20
_LONGEST_QUOTE = 60
_WIDEST = 100_000
"""Numbers of a vector. A header that says more is damaged, and would have the whole file read at once."""
_DIGITS = 18
_HEADER = re.compile(rb"[ \t]*([0-9]+)[ \t]+([0-9]+)[ \t]*\r?\n?")
_GZIP = b"\x1f\x8b"


def check_file(path: Path) -> None:
    """ValueError if it is not there."""
    if not path.is_file():
        raise ValueError(
            f"{path}: no such file of word vectors; give the path of yours (words.input.path=...) "
            "or set NER_DATA_DIR to the folder that holds your copies"
        )


def read_vectors(path: Path, wanted: Set[bytes]) -> tuple[Rows, int]:
    """The vectors of the wanted keys (words in UTF-8), and the width of the file's vectors.

    The format is known by content: gzip by its first bytes, word2vec by a first line `count width`, binary
    by a first vector that is not written in ASCII. Binary numbers are little-endian float32. In text a key
    may hold spaces (`. . .` in GloVe 840B): the last `width` fields are the numbers. Without a header the
    first line gives the width, so its word must not hold spaces.

    Of a word that comes twice the first vector counts, as in gensim. Keys are compared as bytes: one that is
    not UTF-8 matches no word. Other words' lines are neither parsed nor checked.

    ValueError, with file and line (binary: the vector's number): an empty or cut-off file, a first line that
    is none, and in a wanted line a wrong number of numbers, or one that is none or not finite. No word or
    first line may have more than a MiB.
    """
    with open(path, "rb", buffering=0) as file:
        compressed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        raw = cast(io.RawIOBase, gzip.GzipFile(fileobj=file)) if compressed else file
        try:
            with io.BufferedReader(raw, _BLOCK) as stream:
                return _read(stream, path, wanted)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: damaged or cut-off gzip data: {error}") from None


def _read(stream: io.BufferedReader[io.RawIOBase], path: Path, wanted: Set[bytes]) -> tuple[Rows, int]:
    first = stream.readline(_BLOCK).removeprefix(b"\xef\xbb\xbf")
    if not first:
        raise ValueError(f"{path}: the file is empty")
    if len(first) == _BLOCK and not first.endswith(b"\n"):
        raise ValueError(f"{path}:1: a line of more than {_BLOCK:,} bytes: {first[:_LONGEST_QUOTE]!r}")
    if header := _HEADER.fullmatch(first):
        count, width = _header(header.groups(), path)
        if _begins_text(stream.peek(), width):
            return _read_text(stream, path, wanted, width, 2, count), width
        return _read_binary(stream, path, wanted, count, width), width
    word, _, numbers = first.partition(b" ")
    width = len(numbers.split())
    if not (word and width) or b"\t" in word or not all(map(_is_number, numbers.split())):
        raise ValueError(
            f"{path}:1: expected a word and its numbers, separated by spaces, or a header 'count width', "
            f"got {first[:_LONGEST_QUOTE]!r}"
        )
    return _read_text(itertools.chain([first], stream), path, wanted, width, 1, None), width


def _header(fields: Iterable[bytes], path: Path) -> tuple[int, int]:
    count, width = (int(field[:_DIGITS]) for field in fields)  # with more digits too large as well
    if not (count and width):
        raise ValueError(f"{path}:1: expected a header of two positive numbers, got {count} {width}")
    if width > _WIDEST:
        raise ValueError(f"{path}:1: expected vectors of at most {_WIDEST:,} numbers, got {width:,}")
    return count, width


def _begins_text(sample: bytes, width: int) -> bool:
    """Whether what follows the first word, to the end of its line, can be that many numbers in writing."""
    rest = sample.partition(b"\n")[0].partition(b" ")[2]
    return len(rest) >= 2 * width - 1 and all(byte in b"\t\r" or 32 <= byte < 127 for byte in rest)


def _read_text(
    lines: Iterable[bytes], path: Path, wanted: Set[bytes], width: int, start: int, count: int | None
) -> Rows:
    beginnings = {key.partition(b" ")[0] for key in wanted}
    rows: Rows = {}
    number = start - 1
    for number, line in enumerate(lines, start):
        # Most lines end here, at the price of one search: only a corpus' words are parsed.
        space = line.find(b" ")
        if line[:space] in beginnings and (space >= 0 or line.endswith(b"\n")):
            fields = line[space:].split()
            inner = fields[:-width]
            key = b" ".join([line[:space], *inner])
            if len(fields) < width or (key not in wanted and inner and all(map(_is_number, inner))):
                raise ValueError(f"{path}:{number}: expected {width} numbers, got {len(fields)}")
            if key in wanted and key not in rows:
                rows[key] = _parse(fields[-width:], f"{path}:{number}")
    if count is not None and number - start + 1 < count:
        raise ValueError(f"{path}: cut off: the header says {count} vectors, found {number - start + 1}")
    return rows


def _parse(fields: list[bytes], place: str) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):
            vector = np.fromiter(map(float, fields), np.float32, len(fields))
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field)).decode(errors="replace")
        raise ValueError(f"{place}: not a number: {quoted(wrong)}") from None
    return _finite(vector, place)


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _finite(vector: np.ndarray, place: str) -> np.ndarray:
    if not np.isfinite(vector).all():
        worst = vector[~np.isfinite(vector)][0]
        raise ValueError(f"{place}: not a finite float32 number: {worst}")
    return vector


def _read_binary(stream: IO[bytes], path: Path, wanted: Set[bytes], count: int, width: int) -> Rows:
    rows: Rows = {}
    size = 4 * width
    buffer, start = b"", 0
    for number in range(1, count + 1):
        space = buffer.find(b" ", start)
        while space < 0 or len(buffer) <= space + size:
            if space < 0 and len(buffer) - start > _BLOCK:
                raise ValueError(f"{path}: vector {number}: its word has more than {_BLOCK:,} bytes")
            block = stream.read(_BLOCK)
            if not block:
                raise ValueError(f"{path}: cut off in vector {number} of {count}")
            buffer, start = buffer[start:] + block, 0
            space = buffer.find(b" ")
        # The original tool ends each vector with a newline, others do not.
        key = buffer[start:space].lstrip(b"\n")
        if key in wanted and key not in rows:
            vector = np.frombuffer(buffer, "<f4", width, space + 1).astype(np.float32)
            rows[key] = _finite(vector, f"{path}: vector {number}")
        start = space + 1 + size
    return rows
