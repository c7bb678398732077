"""Pre-trained word vectors for the words of a corpus: looked up with back-off, and cached.

`load_vectors` is the entry point. `read_vectors` reads the files in one pass: GloVe text, word2vec text or
binary, each also gzipped.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import numpy as np

from ner_experiments.data import cache_files
from ner_experiments.data.glove import PACKAGES
from ner_experiments.data.text_files import open_binary
from ner_experiments.utils.files import json_digest
from ner_experiments.utils.text import truncated_repr

# Part of each cache file's name. Increment it when the same file and words yield a different result.
_VERSION = 3
_DIGIT = re.compile(r"\d")

VectorsByKey = dict[bytes, np.ndarray]
"""Key -> float32 vector."""

_BLOCK = 1 << 20
_LONGEST_QUOTE = 60
_WIDEST = 100_000
"""Largest plausible width. A larger one means a damaged header, and would make the reader load the file at once."""
_DIGITS = 18
_HEADER = re.compile(rb"[ \t]*([0-9]+)[ \t]+([0-9]+)[ \t]*\r?\n?")


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """The vectors of some words."""

    matrix: np.ndarray
    """float32 [vectors found, width]."""
    rows: np.ndarray
    """int64 [words]: the row of each word, -1 if unknown. Words that resolve to the same key share a row."""
    keys: list[str]
    """The file's key for each row of `matrix`."""
    steps: dict[str, int]
    """Number of words found by each step of `back_off` ("exact", "lower", "digits"), and of "unknown" words."""

    @property
    def checksum(self) -> str:
        """SHA-256 over the above except `keys`: independent of the file's path and its other words."""
        digests = []
        for array in (self.matrix, self.rows):
            np.save(buffer := io.BytesIO(), array)
            digests.append(hashlib.sha256(buffer.getbuffer()).hexdigest())
        return json_digest([*digests, self.steps])


def load_vectors(path: Path, words: Sequence[str], *, cache: Path) -> Vectors:
    """Vectors of the words from a file in any format of `read_vectors`, which also lists the ValueErrors.

    A word is looked up as it is, then lower-cased, then with each digit as 0, then both; the first of these forms
    that the file has is used. Rows are in the order of the words that first use them.

    The folder `cache` stores the result for these words, in this order, and this file, identified by its
    absolute path, size and modification time. On a hit the file is not opened. Damaged cache entries are
    replaced. Several processes may call this at once.
    """
    check_file(path)
    status = path.stat()
    identity = [_VERSION, str(path.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns, *words]
    file = cache / f"{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]}.vectors.npz"
    if (vectors := cache_files.read(file, "word vectors", _from_cache)) is None:
        vectors = look_up(path, words)
        others = np.frombuffer(json.dumps([vectors.keys, vectors.steps]).encode(), np.uint8)
        with cache_files.new(file) as part, part.open("wb") as stream:
            np.savez(stream, matrix=vectors.matrix, rows=vectors.rows, others=others)
    return vectors


def _from_cache(content: np.ndarray) -> Vectors:
    arrays = np.load(io.BytesIO(content.tobytes()), allow_pickle=False)  # noqa: TID251
    return Vectors(arrays["matrix"], arrays["rows"], *json.loads(arrays["others"].tobytes()))


def coverage_line(vectors: Vectors) -> str:
    """A sentence on how many words have a vector, by the step that found it."""
    total = len(vectors.rows)
    share = {step: f"{number:,} ({number / max(total, 1):.1%})" for step, number in vectors.steps.items()}
    known = total - vectors.steps["unknown"]
    return (
        f"{known:,} of {total:,} words ({known / max(total, 1):.1%}) have a pre-trained vector: "
        f"{share['exact']} as they are, {share['lower']} lower-cased, {share['digits']} with digits as 0; "
        f"{share['unknown']} are unknown."
    )


def look_up(path: Path, words: Sequence[str]) -> Vectors:
    """As `load_vectors`, without a cache."""
    vectors, width = read_vectors(path, {key for word in words for _, key in _keys(word)})
    order: dict[bytes, int] = {}
    rows = np.full(len(words), -1, dtype=np.int64)
    steps = {"exact": 0, "lower": 0, "digits": 0, "unknown": 0}
    for index, word in enumerate(words):
        step, key = next((pair for pair in _keys(word) if pair[1] in vectors), ("unknown", b""))
        steps[step] += 1
        if step != "unknown":
            rows[index] = order.setdefault(key, len(order))
    matrix = np.empty((len(order), width), dtype=np.float32)
    for key, row in order.items():
        matrix[row] = vectors[key]
    return Vectors(matrix, rows, [key.decode() for key in order], steps)


def back_off(word: str) -> list[tuple[str, str]]:
    """Lookup order of a word: pairs of the back-off step and the form to look up."""
    lower = word.lower()
    digits = [("digits", _DIGIT.sub("0", form)) for form in (word, lower)]
    return [("exact", word), ("lower", lower), *digits]


def _keys(word: str) -> list[tuple[str, bytes]]:
    return [(step, form.encode()) for step, form in back_off(word)]


def check_file(path: Path) -> None:
    """Raise ValueError if there is no such file."""
    if not path.is_file():
        get = f"run `ner-experiments data get {path.stem}`, or " if path.stem in PACKAGES else ""
        raise ValueError(
            f"{path}: no such file of word vectors; {get}set its path (words.input.path=...) or NER_DATA_DIR, "
            "the folder that holds your copies"
        )


def read_vectors(path: Path, wanted: Set[bytes]) -> tuple[VectorsByKey, int]:
    """Vectors of the wanted keys (words in UTF-8), and the width of the file's vectors.

    The format is detected by content: gzip by its first bytes, word2vec by a first line `count width`, binary
    by a first vector that is not ASCII text. Binary numbers are little-endian float32. In text, a key may
    contain spaces (`. . .` in GloVe 840B): the last `width` fields are the numbers. Without a header, the
    first line determines the width, so its word must not contain spaces.

    The first vector of a repeated word counts, as in gensim. Keys are compared as bytes: one that is not
    UTF-8 matches no word. Lines of other words are neither parsed nor checked.

    Raises ValueError, with file and line (binary: number of the vector), for an empty or truncated file, a
    malformed first line, a word or first line of more than a MiB, and a wanted line with the wrong number of
    fields or one that is not a finite number.
    """
    with open_binary(path) as file, io.BufferedReader(cast(io.RawIOBase, file), _BLOCK) as stream:
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
    count, width = (int(field[:_DIGITS]) for field in fields)  # longer numbers are too large in any case
    if not (count and width):
        raise ValueError(f"{path}:1: expected a header of two positive numbers, got {count} {width}")
    if width > _WIDEST:
        raise ValueError(f"{path}:1: expected vectors of at most {_WIDEST:,} numbers, got {width:,}")
    return count, width


def _begins_text(sample: bytes, width: int) -> bool:
    """Whether the rest of the line after the first word can be `width` numbers written in ASCII."""
    rest = sample.partition(b"\n")[0].partition(b" ")[2]
    return len(rest) >= 2 * width - 1 and all(byte in b"\t\r" or 32 <= byte < 127 for byte in rest)


def _read_text(
    lines: Iterable[bytes], path: Path, wanted: Set[bytes], width: int, start: int, count: int | None
) -> VectorsByKey:
    beginnings = {key.partition(b" ")[0] for key in wanted}
    rows: VectorsByKey = {}
    number = start - 1
    for number, line in enumerate(lines, start):
        # Most lines are skipped after this one search: only wanted words are parsed.
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
        raise ValueError(f"{path}: truncated: the header says {count} vectors, got {number - start + 1}")
    return rows


def _parse(fields: list[bytes], place: str) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):
            vector = np.fromiter(map(float, fields), np.float32, len(fields))
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field)).decode(errors="replace")
        raise ValueError(f"{place}: not a number: {truncated_repr(wrong)}") from None
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


def _read_binary(stream: IO[bytes], path: Path, wanted: Set[bytes], count: int, width: int) -> VectorsByKey:
    rows: VectorsByKey = {}
    size = 4 * width
    buffer, start = b"", 0
    for number in range(1, count + 1):
        space = buffer.find(b" ", start)
        while space < 0 or len(buffer) <= space + size:
            if space < 0 and len(buffer) - start > _BLOCK:
                raise ValueError(f"{path}: vector {number}: its word has more than {_BLOCK:,} bytes")
            block = stream.read(_BLOCK)
            if not block:
                raise ValueError(f"{path}: truncated in vector {number} of {count}")
            buffer, start = buffer[start:] + block, 0
            space = buffer.find(b" ")
        # The original word2vec tool writes a newline after each vector, others do not.
        key = buffer[start:space].lstrip(b"\n")
        if key in wanted and key not in rows:
            vector = np.frombuffer(buffer, "<f4", width, space + 1).astype(np.float32)
            rows[key] = _finite(vector, f"{path}: vector {number}")
        start = space + 1 + size
    return rows
