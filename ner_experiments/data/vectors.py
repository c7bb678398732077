"""Pre-trained word vectors for the words of a corpus: looked up with back-off, and cached."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ner_experiments.atomic import clear, replacing
from ner_experiments.data.checksum import sha256
from ner_experiments.data.vector_files import check_file, read_vectors

# Belongs to each cached result's name: to be raised when the same file and words come to give another one.
_VERSION = 2
_DIGIT = re.compile(r"\d")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """The vectors of some words. The arrays are read-only memory maps: torch is to be given a copy."""

    matrix: np.ndarray
    """float32 [vectors found, width]."""
    rows: np.ndarray
    """int64 [words]: the row of each word, -1 for unknown. Words that end at the same key share a row."""
    keys: list[str]
    """The key that each row has in the file."""
    steps: dict[str, int]
    """How many words were found as "exact", "lower", "digits", and how many are "unknown"."""
    checksum: str
    """SHA-256 over the above, keys apart: the same wherever the file lies and whatever else it holds."""


def load_vectors(path: Path, words: Sequence[str], *, cache: Path) -> Vectors:
    """The vector of each word in a file of any format of `read_vectors`; ValueError as there.

    A word is looked up as it is, then lower-cased, then with each digit as 0, then both; the first key that
    the file has counts. The rows are in the order of the words that first use them.

    Files in the folder `cache` keep the result for these words, in this order, and this file: its absolute
    path, size and time of change. The file is not opened again then. Damaged ones are replaced. Several
    processes may do this at once.
    """
    check_file(path)
    entry = cache / _cache_name(path, words)
    vectors = _load(entry)
    if vectors is None:
        _store(entry, path, *_look_up(path, words))
        vectors = _load(entry)
    assert vectors is not None, f"{entry}: what was just written cannot be read"
    return vectors


def coverage_line(vectors: Vectors) -> str:
    """One sentence on how many words have a vector, and how they were found."""
    total = len(vectors.rows)
    share = {step: f"{number:,} ({number / max(total, 1):.1%})" for step, number in vectors.steps.items()}
    known = total - vectors.steps["unknown"]
    return (
        f"{known:,} of {total:,} words ({known / max(total, 1):.1%}) have a pre-trained vector: "
        f"{share['exact']} as they are, {share['lower']} lower-cased, {share['digits']} with digits as 0; "
        f"{share['unknown']} are unknown."
    )


def _look_up(path: Path, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray, list[str], dict[str, int]]:
    found, width = read_vectors(path, {key for word in words for _, key in _keys(word)})
    order: dict[bytes, int] = {}
    rows = np.full(len(words), -1, dtype=np.int64)
    steps = {"exact": 0, "lower": 0, "digits": 0, "unknown": 0}
    for index, word in enumerate(words):
        step, key = next((pair for pair in _keys(word) if pair[1] in found), ("unknown", b""))
        steps[step] += 1
        if step != "unknown":
            rows[index] = order.setdefault(key, len(order))
    matrix = np.empty((len(order), width), dtype=np.float32)
    for key, row in order.items():
        matrix[row] = found[key]
    return matrix, rows, [key.decode() for key in order], steps


def back_off(word: str) -> list[tuple[str, str]]:
    """What to look a word up as, in order: the step that each form belongs to, and the form."""
    lower = word.lower()
    digits = [("digits", _DIGIT.sub("0", form)) for form in (word, lower)]
    return [("exact", word), ("lower", lower), *digits]


def _keys(word: str) -> list[tuple[str, bytes]]:
    return [(step, form.encode()) for step, form in back_off(word)]


def _cache_name(path: Path, words: Sequence[str]) -> str:
    status = path.stat()
    identity = [_VERSION, str(path.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns, *words]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]


def _files(entry: Path) -> tuple[Path, Path, Path]:
    return entry.with_suffix(".matrix.npy"), entry.with_suffix(".rows.npy"), entry.with_suffix(".json")


def _checksum(entry: Path, steps: dict[str, int]) -> str:
    matrix_file, rows_file, _ = _files(entry)
    return _digest([sha256(matrix_file), sha256(rows_file), steps])


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _load(entry: Path) -> Vectors | None:
    matrix_file, rows_file, summary_file = _files(entry)
    if not summary_file.exists():
        return None
    try:
        summary = json.loads(summary_file.read_bytes())
        keys, steps, checksum = summary["keys"], summary["steps"], summary["checksum"]
        if checksum == _checksum(entry, steps) and summary["keys_checksum"] == _digest(keys):
            matrix, rows = (
                np.load(file, mmap_mode="r", allow_pickle=False) for file in (matrix_file, rows_file)
            )
            return Vectors(matrix, rows, keys, steps, checksum)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    _log.warning("%s.*: damaged cache of word vectors, made again", entry)
    return None


def _store(
    entry: Path, path: Path, matrix: np.ndarray, rows: np.ndarray, keys: list[str], steps: dict[str, int]
) -> None:
    # The summary comes last: without it the arrays do not count. All processes write the same content.
    entry.parent.mkdir(parents=True, exist_ok=True)
    clear(entry.parent)
    matrix_file, rows_file, summary_file = _files(entry)
    for target, table in ((matrix_file, matrix), (rows_file, rows)):
        with replacing(target) as part, part.open("wb") as file:
            np.save(file, table)
    checksums = {"keys_checksum": _digest(keys), "checksum": _checksum(entry, steps)}
    summary = {"file": str(path), "keys": keys, "steps": steps, **checksums}
    with replacing(summary_file) as part:
        part.write_text(json.dumps(summary, ensure_ascii=False, indent=1), encoding="utf-8")
