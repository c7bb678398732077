"""Reading vector files: sizes, repetitions and errors; campaigns/test_fuzz.py reads every layout."""

import gzip
import random
import re
import struct
from pathlib import Path

import numpy as np
import pytest
import yaml
from hostile_corpora import CUT, LONG

from ner_experiments.data.gazetteer import Gazetteer
from ner_experiments.data.indexed_text import IndexedText
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.vectors import read_vectors

Table = dict[str, list[float]]


def random_table(words: list[str], width: int = 5) -> Table:
    """Numbers with few digits, which text and float32 keep alike."""
    draws = random.Random(1)
    return {word: [round(draws.uniform(-3, 3), 4) for _ in range(width)] for word in words}


def text(table: Table) -> bytes:
    return "".join(" ".join([word, *map(str, numbers)]) + "\n" for word, numbers in table.items()).encode()


def binary(table: Table) -> bytes:
    width = len(next(iter(table.values())))
    body = [word.encode() + b" " + struct.pack(f"<{width}f", *v) for word, v in table.items()]
    return f"{len(table)} {width}\n".encode() + b"".join(body)


def plain_parser(content: str, width: int) -> Table:
    """The oracle: the whole text table, a word being all that stands before the last `width` numbers."""
    table: Table = {}
    for line in content.split("\n"):
        fields = line.strip("\r ").split(" ")
        if len(fields) > width:
            table.setdefault(" ".join(fields[:-width]), [float(field) for field in fields[-width:]])
    return table


def read(tmp_path: Path, content: bytes, words: list[str]) -> Table:
    path = tmp_path / "vectors"
    path.write_bytes(content)
    rows, width = read_vectors(path, {word.encode() for word in words})
    assert {row.shape for row in rows.values()} <= {(width,)}
    return {key.decode(): row.tolist() for key, row in rows.items()}


def float32(table: Table) -> Table:
    return {word: np.float32(numbers).tolist() for word, numbers in table.items()}


def test_text_with_spaces_in_words_agrees_with_a_plain_parser(tmp_path):
    table = random_table(["first", ". . .", ".", "at name@domain.com", "at", "New York", "new", "York"], 4)
    wanted = ["at", ".", ". . .", "New York", "York", "name@domain.com", "name"]
    parsed = plain_parser(text(table).decode(), 4)
    assert parsed == table
    found = read(tmp_path, text(table), wanted)
    assert found == float32({word: parsed[word] for word in wanted if word in parsed})
    assert set(found) == {"at", ".", ". . .", "New York", "York"}


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("encode", [text, binary])
def test_a_file_of_many_blocks_loses_nothing_at_their_edges(tmp_path, encode, compress, monkeypatch):
    monkeypatch.setattr("ner_experiments.data.vectors._BLOCK", 1000)
    table = random_table([f"{'long' * (n % 7)}{n}" for n in range(3000)], 20)
    wanted = list(table)
    assert read(tmp_path, compress(encode(table)), wanted) == float32(table)


@pytest.mark.parametrize("encode", [text, binary])
def test_of_a_word_that_comes_twice_the_first_vector_counts(tmp_path, encode):
    first, second = {"a": [1.5, 2.0], "b": [3.0, 4.0]}, {"b": [5.0, 6.0], "c": [7.0, 8.0]}
    body = encode(first) + (encode(second) if encode is text else encode(second).partition(b"\n")[2])
    content = body if encode is text else body.replace(b"2 2\n", b"4 2\n", 1)
    assert read(tmp_path, content, ["b", "c"]) == {"b": [3.0, 4.0], "c": [7.0, 8.0]}


def test_a_key_that_is_no_utf_8_matches_no_word(tmp_path):
    content = b"a 1 2\nna\xefve 3 4\n\xff 5 6\nb 7 8\n"
    words = ["naïve", "b", "na\ufffdve"]
    assert read(tmp_path, content, words) == {"b": [7.0, 8.0]}


ERRORS = yaml.safe_load(Path(__file__).with_name("refused_vectors.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_where_and_what(tmp_path, case):
    content, message = ERRORS[case]
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        read(tmp_path, content if isinstance(content, bytes) else content.encode(), ["b"])
    assert str(error.value) == f"{tmp_path / 'vectors'}{message}"


def test_gzip_with_damaged_content_is_an_error_with_the_path(tmp_path):
    content = bytearray(gzip.compress(text(random_table([f"w{n}" for n in range(500)]))))
    content[len(content) // 2] ^= 0xFF
    with pytest.raises(ValueError, match="not a whole gzip file ") as error:
        read(tmp_path, bytes(content), ["w1"])
    assert str(error.value).startswith(f"{tmp_path / 'vectors'}: ")


@pytest.mark.parametrize("content", [b"a 1\n-1", b"2 1\na 1\n-1", b"a 1\n-"])
def test_a_last_line_without_numbers_is_no_other_words_line(tmp_path, content):
    assert read(tmp_path, content, ["a", "-"]) == {"a": [1.0]}


def test_lines_of_other_words_are_not_looked_at(tmp_path):
    content = b"a 1 2 3\nbroken\nworse 1 x\n\nnan nan nan nan\nb 4 5 6\n"
    assert read(tmp_path, content, ["b", "c"]) == {"b": [4.0, 5.0, 6.0]}


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
