"""Reading vector files: every format against what was written, and each error."""

import gzip
import random
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from ner_experiments.data.vectors import read_vectors

Table = dict[str, list[float]]


def random_table(words: list[str], width: int = 5) -> Table:
    """Numbers with few digits, which text and float32 keep alike."""
    draws = random.Random(1)
    return {word: [round(draws.uniform(-3, 3), 4) for _ in range(width)] for word in words}


def text(table: Table, *, header: bool = False, end: str = "\n") -> bytes:
    width = len(next(iter(table.values())))
    lines = [f"{len(table)} {width}"] if header else []
    lines += [" ".join([word, *map(str, numbers)]) for word, numbers in table.items()]
    return "".join(line + end for line in lines).encode()


def binary(table: Table, *, end: bytes = b"") -> bytes:
    width = len(next(iter(table.values())))
    body = [word.encode() + b" " + struct.pack(f"<{width}f", *v) + end for word, v in table.items()]
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


WORDS = ["the", "Straße", "云溪", "a\u00a0b", "x\u2028y", "#", "-0.5", "7", "naïve", ".", "\u200b", "\ufeff"]


@pytest.mark.parametrize(
    "encode",
    [
        text,
        lambda table: text(table, header=True),
        lambda table: text(table, end="\r\n"),
        lambda table: text(table, header=True, end="\r\n"),
        lambda table: text(table, header=True, end=" \n"),
        lambda table: text(table, header=True) + b"\n\n",
        lambda table: text(table).removesuffix(b"\n"),
        lambda table: b"\xef\xbb\xbf" + text(table, header=True),
        binary,
        lambda table: binary(table, end=b"\n"),
    ],
    ids=[
        "glove",
        "word2vec",
        "glove-crlf",
        "word2vec-crlf",
        "word2vec-trailing-space",
        "blank-lines-at-the-end",
        "no-newline-at-the-end",
        "byte-order-mark",
        "binary",
        "binary-newlines",
    ],
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_every_format_gives_the_table_that_was_written(tmp_path, encode, compress):
    table = random_table([f"word{n}" for n in range(200)] + WORDS)
    wanted = [*WORDS, *(f"word{n}" for n in range(0, 400, 3))]
    found = read(tmp_path, compress(encode(table)), wanted)
    assert found == float32({word: table[word] for word in wanted if word in table})


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


@pytest.mark.parametrize("numbers", [[0.1, 0.2], [2.4e-5, 10.0], [0.0, 0.0], [1.5, -7.25]])
@pytest.mark.parametrize("word", ["a", "云"])
def test_text_and_binary_of_a_single_short_vector_are_distinguished(tmp_path, numbers, word):
    for content in (
        text({word: numbers}, header=True),
        binary({word: numbers}),
        binary({word: numbers}, end=b"\n"),
    ):
        assert read(tmp_path, content, [word]) == float32({word: numbers})


def test_whole_numbers_and_keys_that_are_no_ascii_are_text(tmp_path):
    table = {word: [1.0, 0.0, 2.0] for word in ("云溪", "蓝鲸", "\U0001f600", "naïve")}
    content = text(table, header=True).replace(b".0", b"")
    assert read(tmp_path, content, list(table)) == table


def test_a_key_that_is_no_utf_8_matches_no_word(tmp_path):
    content = b"a 1 2\nna\xefve 3 4\n\xff 5 6\nb 7 8\n"
    words = ["naïve", "b", "na\ufffdve"]
    assert read(tmp_path, content, words) == {"b": [7.0, 8.0]}


GOOD = "a 1 2 3\nb 4 5 6\n"
ERRORS = {
    "empty": (b"", ": the file is empty"),
    "too-few": (b"a 1 2 3\nb 4 5\n", ":2: expected 3 numbers, got 2"),
    "too-few-header": (b"2 3\na 1 2 3\nb 4 5\n", ":3: expected 3 numbers, got 2"),
    "too-many": (b"a 1 2 3\nx 1\nb 4 5 6 7\n", ":3: expected 3 numbers, got 4"),
    "none": (b"a 1 2 3\nb\n", ":2: expected 3 numbers, got 0"),
    "no-number": (b"a 1 2 3\nb 4 5x 6\n", ":2: not a number: '5x'"),
    "no-number-no-text": (b"a 1 2 3\nb 4 \xff 6\n", ":2: not a number: '\ufffd'"),
    "nan": (b"a 1 2 3\nb 4 nan 6\n", ":2: not a finite float32 number: nan"),
    "infinite": (b"a 1 2 3\nb 4 5 -inf\n", ":2: not a finite float32 number: -inf"),
    "too-large": (b"a 1 2 3\nb 4 5 1e39\n", ":2: not a finite float32 number: inf"),
    "tabs": (
        b"a\t1\t2\n",
        ":1: expected a word and its numbers, separated by spaces, or a header 'count width', "
        "got b'a\\t1\\t2\\n'",
    ),
    "tab-then-spaces": (
        b"a\t1 2\n",
        ":1: expected a word and its numbers, separated by spaces, or a header 'count width', "
        "got b'a\\t1 2\\n'",
    ),
    "prose": (
        b"It was a quiet day in the harbour, " * 3,
        ":1: expected a word and its numbers, separated by spaces, or a header 'count width', "
        "got b'It was a quiet day in the harbour, It was a quiet day in the'",
    ),
    "blank-line": (
        b"\n" + GOOD.encode(),
        ":1: expected a word and its numbers, separated by spaces, or a header 'count width', got b'\\n'",
    ),
    "header-of-nothing": (b"0 50\n", ":1: expected a header of two positive numbers, got 0 50"),
    "width-of-nothing": (b"50 0\n", ":1: expected a header of two positive numbers, got 50 0"),
    "header-alone": (b"5 3\n", ": truncated in vector 1 of 5"),
    "cut-text": (b"5 3\na 1 2 3\nb 4 5 6\n", ": truncated: the header says 5 vectors, got 2"),
    "cut-gzip-text": (
        gzip.compress(b"5 3\na 1 2 3\nb 4 5 6\n"),
        ": truncated: the header says 5 vectors, got 2",
    ),
    "cut-binary": (binary({"a": [0.1, 0.2], "b": [0.3, 0.4]})[:-1], ": truncated in vector 2 of 2"),
    "cut-binary-key": (binary({"a": [0.1, 0.2], "bcd": [0.3, 0.4]})[:-10], ": truncated in vector 2 of 2"),
    "cut-binary-newline": (
        binary({"a": [0.1, 0.2]}, end=b"\n").replace(b"1 2", b"2 2", 1),
        ": truncated in vector 2 of 2",
    ),
    "nan-binary": (
        binary({"a": [0.1, 0.2], "b": [float("nan"), 0.4]}),
        ": vector 2: not a finite float32 number: nan",
    ),
    "cut-gzip": (
        gzip.compress(GOOD.encode())[:-5],
        ": damaged or truncated gzip data: Compressed file ended before the end-of-stream marker was reached",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_where_and_what(tmp_path, case):
    content, message = ERRORS[case]
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        read(tmp_path, content, ["b"])
    assert str(error.value) == f"{tmp_path / 'vectors'}{message}"


def test_gzip_with_damaged_content_is_an_error_with_the_path(tmp_path):
    content = bytearray(gzip.compress(text(random_table([f"w{n}" for n in range(500)]))))
    content[len(content) // 2] ^= 0xFF
    with pytest.raises(ValueError, match="damaged or truncated gzip data: ") as error:
        read(tmp_path, bytes(content), ["w1"])
    assert str(error.value).startswith(f"{tmp_path / 'vectors'}: ")


@pytest.mark.parametrize("content", [b"a 1\n-1", b"2 1\na 1\n-1", b"a 1\n-"])
def test_a_last_line_without_numbers_is_no_other_words_line(tmp_path, content):
    assert read(tmp_path, content, ["a", "-"]) == {"a": [1.0]}


def test_lines_of_other_words_are_not_looked_at(tmp_path):
    content = b"a 1 2 3\nbroken\nworse 1 x\n\nnan nan nan nan\nb 4 5 6\n"
    assert read(tmp_path, content, ["b", "c"]) == {"b": [4.0, 5.0, 6.0]}
