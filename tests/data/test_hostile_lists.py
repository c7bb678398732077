"""Hostile files of word vectors and gazetteers: read correctly, or refused in one line."""

from pathlib import Path

import pytest
from hostile_corpora import CUT, LONG

from ner_experiments.data.gazetteer import Gazetteer
from ner_experiments.data.indexed_text import IndexedText
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.vectors import read_vectors

VECTORS = {
    "a header of 5,000 digits": (
        b"9" * 5000 + b" 2\na 1 2\n",
        ": truncated: the header says 999999999999999999 vectors",
    ),
    "a width of 5,000 digits": (
        b"2 " + b"9" * 5000 + b"\na 1 2\n",
        ":1: expected vectors of at most 100,000 numbers",
    ),
    "a width that asks for terabytes": (
        b"1 999999999999\na \x00\x00",
        ":1: expected vectors of at most 100,000",
    ),
    "a first line without end": (b"a" + b" 1" * LONG, ":1: a line of more than 1,048,576 bytes: b'a 1 1 1"),
    "a disk's worth of zeros": (
        b"5 3\n" + bytes(4 * LONG),
        ": vector 1: its word has more than 1,048,576 bytes",
    ),
    "a number of a million letters": (b"a 1 " + b"x" * 1000 + b"\n", ":1: expected a word and its numbers"),
    "a later number of many letters": (b"b 1 2\na 1 " + b"x" * LONG, f":2: not a number: '{CUT}'"),
    "CR": (b"a 1 2\rb 1 2\r", ":1: expected a word and its numbers"),
    "UTF-16": ("a 1 2\n".encode("utf-16"), ":1: expected a word and its numbers"),
}


@pytest.mark.parametrize("case", VECTORS)
def test_vectors_are_refused_in_a_line(case: str, tmp_path: Path) -> None:
    content, message = VECTORS[case]
    path = tmp_path / "vectors"
    path.write_bytes(content)
    with pytest.raises(ValueError) as error:  # noqa: PT011  the whole of its beginning is compared
        read_vectors(path, {b"a"})
    assert type(error.value) is ValueError
    assert str(error.value).startswith(f"{path}{message}")
    assert len(str(error.value)) < 300 + len(str(path))


@pytest.mark.parametrize(
    "word", ["\x0b", "a\x0b5", "a\x0c", "\x1c", "\x85", "\u2028", "\u3000", "\u200b"], ids=ascii
)
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_only_spaces_separate_a_word_from_its_vector(word: str, first: bool, tmp_path: Path) -> None:
    lines = [f"{word} 1 2\n", "b 3 4\n"]
    path = tmp_path / "vectors"
    path.write_text("".join(lines if first else lines[::-1]), encoding="utf-8", newline="")
    found, _ = read_vectors(path, {word.encode(), b"b"})
    assert {key: row.tolist() for key, row in found.items()} == {word.encode(): [1, 2], b"b": [3, 4]}


@pytest.mark.parametrize("word", ["a\u00a0b", "\u3000", "a\u2028", "\x85", "\x1c", "a\x0cb"], ids=ascii)
def test_a_gazetteer_cuts_names_where_corpora_cut_tokens(word: str, tmp_path: Path) -> None:
    (tmp_path / "PER.txt").write_text(f"Mia {word}\n{word}\tRoe\n", encoding="utf-8", newline="")
    text = IndexedText.from_sentences([Sentence(("Mia", word, word, "Roe"), ("O",) * 4)])
    lists = Gazetteer(folder=str(tmp_path), lowercase=False)
    lists.fit(text, [])
    assert lists.encode(text).table.flatten().tolist() == [1, 3, 1, 3]


def test_a_name_without_end_takes_no_time_in_a_sentence_without_end(tmp_path: Path) -> None:
    """Each place was tried with each length up to the longest name's: 10^10 attempts here."""
    (tmp_path / "PER.txt").write_text("a " * 100_000 + "b\n" + "a a\n", encoding="utf-8")
    text = IndexedText.from_sentences([Sentence(("a",) * 100_000, ("O",) * 100_000)])
    lists = Gazetteer(folder=str(tmp_path), lowercase=False)
    lists.fit(text, [])
    assert lists.encode(text).table.flatten().tolist() == [1, 3] * 50_000
