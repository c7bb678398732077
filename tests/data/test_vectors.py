"""Pretrained vectors: the back-off, the stored vectors, the cache, and real vectors."""

import os
from pathlib import Path

import numpy as np
import pytest

from ner_experiments.data import vectors as vectors_module
from ner_experiments.data.vectors import Vectors, coverage_line, load_vectors

Table = dict[str, list[float]]


def text(table: Table, *, header: bool = False) -> bytes:
    width = len(next(iter(table.values())))
    lines = [f"{len(table)} {width}"] if header else []
    lines += [" ".join([word, *map(str, numbers)]) for word, numbers in table.items()]
    return "".join(line + "\n" for line in lines).encode()


def load(tmp_path: Path, content: bytes, words: list[str]) -> Vectors:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    return load_vectors(path, words, cache=tmp_path / "cache")


def as_table(vectors: Vectors, words: list[str]) -> Table:
    """The vector of each known word, as a user sees it."""
    pairs = zip(words, vectors.rows, strict=True)
    return {word: vectors.matrix[row].tolist() for word, row in pairs if row >= 0}


def test_back_off_goes_exact_lower_digits_then_both(tmp_path):
    table = {"Ab": [1.0], "ab": [2.0], "cd": [3.0], "Mk0": [4.0], "mk0": [5.0], "mk7": [6.0], "b-00": [7.0]}
    cases = {
        "Ab": (1.0, "exact"),  # rather than ab
        "AB": (2.0, "lower"),
        "CD": (3.0, "lower"),
        "Mk7": (6.0, "lower"),  # rather than Mk0
        "Mk8": (4.0, "digits"),  # rather than mk0
        "MK8": (5.0, "digits"),
        "B-41": (7.0, "digits"),
        "b-４１": (7.0, "digits"),  # full-width digits, as Chinese text has them
        "zz": (None, "unknown"),
    }
    words = list(cases)
    vectors = load(tmp_path, text(table, header=True), words)
    assert as_table(vectors, words) == {word: [value] for word, (value, _) in cases.items() if value}
    steps = [step for _, step in cases.values()]
    assert vectors.steps == {step: steps.count(step) for step in ("exact", "lower", "digits", "unknown")}


def test_words_share_rows_and_only_used_vectors_are_loaded(tmp_path):
    table = {"THE": [1.0, 1.0], "the": [2.0, 2.0], "00": [3.0, 3.0], "x": [4.0, 4.0], "unused": [5.0, 5.0]}
    vectors = load(tmp_path, text(table), ["x", "12", "The", "THE", "the", "34", "tHE", "?", "x"])
    assert vectors.rows.tolist() == [0, 1, 2, 3, 2, 1, 2, -1, 0]
    assert vectors.keys == ["x", "00", "the", "THE"]
    assert vectors.matrix.tolist() == [[4.0, 4.0], [3.0, 3.0], [2.0, 2.0], [1.0, 1.0]]
    assert (vectors.matrix.dtype, vectors.rows.dtype) == (np.float32, np.int64)


def test_nothing_found_and_nothing_asked(tmp_path):
    vectors = load(tmp_path, text({"a": [1.0, 2.0, 3.0]}), ["b"])
    assert (vectors.matrix.shape, vectors.rows.tolist()) == ((0, 3), [-1])
    assert "0 of 1 words (0.0%)" in coverage_line(vectors)
    assert coverage_line(load(tmp_path, text({"a": [1.0, 2.0]}), [])).startswith("0 of 0 words (0.0%)")


def test_coverage_in_words(tmp_path):
    table = {"a": [1.0, 2.0], "b": [1.0, 3.0], "c0": [1.0, 4.0]}
    assert coverage_line(load(tmp_path, text(table), ["a", "A", "B", "c5", "d", "e", "f", "g"])) == (
        "4 of 8 words (50.0%) have a pre-trained vector: 1 (12.5%) as they are, 2 (25.0%) lower-cased, "
        "1 (12.5%) with digits as 0; 4 (50.0%) are unknown."
    )


def test_a_second_load_does_not_open_the_file_unless_the_cache_is_damaged(tmp_path, monkeypatch):
    words = ["a", "B", "x"]
    first = load(tmp_path, text({"a": [1.0, 2.0], "b": [3.0, 4.0]}), words)
    (file,) = (tmp_path / "cache").iterdir()
    content = file.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(vectors_module, "read_vectors", lambda *_: pytest.fail("the file was read again"))
        cached = load_vectors(tmp_path / "vectors", words, cache=tmp_path / "cache")
    file.write_bytes(b"x" + content[1:])
    again = load_vectors(tmp_path / "vectors", words, cache=tmp_path / "cache")
    assert file.read_bytes() == content
    assert as_table(first, words) == {"a": [1.0, 2.0], "B": [3.0, 4.0]}
    for it in (cached, again):
        assert as_table(it, words) == as_table(first, words)
        assert (it.keys, it.steps, it.checksum) == (first.keys, first.steps, first.checksum)


def test_a_changed_file_or_other_words_are_read_anew(tmp_path):
    words = ["a", "b"]
    first = load(tmp_path, text({"a": [1.0, 2.0], "b": [3.0, 4.0]}), words)
    changed = load(tmp_path, text({"a": [1.0, 2.0], "b": [3.0, 5.0]}), words)
    assert as_table(changed, words) == {"a": [1.0, 2.0], "b": [3.0, 5.0]}
    assert changed.checksum != first.checksum
    assert as_table(first, words)["b"] == [3.0, 4.0]
    for others in (["b", "a"], ["ab"], ["a", "b", "c"], []):
        vectors = load_vectors(tmp_path / "vectors", others, cache=tmp_path / "cache")
        assert as_table(vectors, others) == {w: v for w, v in as_table(changed, words).items() if w in others}


def test_two_files_share_a_cache_folder(tmp_path):
    for number in (1.0, 2.0):
        path = tmp_path / f"{number}"
        path.write_bytes(text({"a": [number, number]}))
        os.utime(path, ns=(10**18, 10**18))
    for number in (1.0, 2.0):
        vectors = load_vectors(tmp_path / f"{number}", ["a"], cache=tmp_path / "cache")
        assert vectors.matrix.tolist() == [[number, number]]


def test_the_checksum_depends_on_the_vectors_and_not_on_their_file(tmp_path):
    """It is part of the identity of runs, so it must stay what it is."""
    table = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    checksums = set()
    for name, content in {"x": text(table), "y": text({"c": [5.0, 6.0]} | table, header=True)}.items():
        (tmp_path / name).write_bytes(content)
        checksums.add(load_vectors(tmp_path / name, ["a", "b"], cache=tmp_path / "cache").checksum)
    assert checksums == {"8f709c5eabf0fba48fb783fe849586f4b01754768771b3d51ca98d1c0e2543eb"}


def test_a_file_with_an_error_leaves_no_cache(tmp_path):
    with pytest.raises(ValueError, match="vectors:2: expected 2 numbers, got 1"):
        load(tmp_path, b"a 1 2\nb 3\n", ["b"])
    assert not (tmp_path / "cache").exists()


def test_a_missing_file_is_reported_with_the_settings_to_change(tmp_path):
    path = tmp_path / "none.txt"
    with pytest.raises(ValueError, match="no such file") as error:
        load_vectors(path, ["a"], cache=tmp_path / "cache")
    assert str(error.value) == (
        f"{path}: no such file of word vectors; set its path (words.input.path=...) "
        "or NER_DATA_DIR, the folder that holds your copies"
    )
