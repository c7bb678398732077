"""Column files: one token a line, its word and tag in columns, and a blank line after each sentence.

The formats of CoNLL-2000 and CoNLL-2003, WNUT, Weibo, MSRA and most others. From `read_blocks` on, the
work on lines that all readers share: decoding, line ends, fields, errors with their place.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO

from ner_experiments.data.sentence import Sentence
from ner_experiments.utils.text import quoted

PathOrFile = str | os.PathLike[str] | BinaryIO
"""A file's, or an open file such as standard input: then its name is `file.name`."""
Line = tuple[int, str]
"""A line's number in its file, from 1, and its text without the line end."""

_DOCSTART = "-DOCSTART-"
_MENTION = re.compile("[BIMES]-.")


def read_columns(
    path: PathOrFile,
    *,
    columns: Mapping[str, int],
    first_character: bool = False,
    empty_tag: str | None = None,
) -> Iterator[Sentence]:
    """Sentences of a column file, read as they are asked for.

    Fields are separated by single tabs in a line that has one, else by runs of spaces. No other character
    separates (U+00A0, U+200B, U+3000 belong to tokens), and none begins a comment. A line of only spaces and
    tabs ends a sentence, and so does a `-DOCSTART-` line (`is_docstart`), which is no token.

    columns: the index of "word" and "tag", and of what else goes to `Sentence.columns`; -1 is the last.
    first_character: the word column is a character and its position in its word, of one or two digits
        (Weibo, second version: `中0`, `国1`). Its first code point is the token: a few are doubled there.
    empty_tag: what an empty tag means (MSRA: "O").

    Tags may be of any scheme. ValueError, with file and line: lines of unequal width, an empty word, an empty
    tag without `empty_tag`, a tag that `check_tags` refuses, columns that the file does not have, bytes that
    are no UTF-8 text.
    """
    for block, layers in _layers(path, columns, first_character=first_character):
        words, tags = layers.pop("word"), _filled(layers.pop("tag"), empty_tag, path, block)
        check_tags(tags, path, block)
        yield Sentence(
            intern_all(words),
            intern_all(tags),
            {name: intern_all(layer) for name, layer in layers.items()},
            line=block[0][0],
        )


def read_untagged(
    path: PathOrFile, *, columns: Mapping[str, int], first_character: bool = False
) -> Iterator[Sentence]:
    """As `read_columns` but for the tags: `columns` names none, and every token is given O."""
    if "word" not in columns:
        raise ValueError(f"columns must name at least word, got {', '.join(columns) or 'none'}")
    for block, layers in _layers(path, columns, first_character=first_character):
        words = tuple(layers.pop("word"))
        others = {name: tuple(layer) for name, layer in layers.items()}
        yield Sentence(words, ("O",) * len(words), others, line=block[0][0])


def _layers(
    path: PathOrFile, columns: Mapping[str, int], *, first_character: bool
) -> Iterator[tuple[list[Line], dict[str, list[str]]]]:
    """The lines of each sentence, and what its tokens have in each column."""
    columns = dict(columns)  # a config's mapping takes longer to look into than all else here
    width: int | None = None
    for block in read_blocks(path, lambda line: is_blank(line) or is_docstart(line, columns)):
        rows = [split_fields(line) for _, line in block]
        if width is None:
            width = _width_for(columns, rows[0], path, block[0])
        check_width(rows, width, path, block)
        layers = {name: [row[index] for row in rows] for name, index in columns.items()}
        check_words(layers["word"], path, block)
        if first_character:
            words = zip(layers["word"], block, strict=True)
            layers["word"] = [_first_character(word, path, line) for word, line in words]
        yield block, layers


def is_docstart(line: str, columns: Mapping[str, int]) -> bool:
    """Whether `-DOCSTART-` is the first field, or the word, and the tag is no mention's: none is dropped."""
    if _DOCSTART not in line:
        return False
    fields = split_fields(line)
    word, tag = (
        fields[index] if -len(fields) <= index < len(fields) else ""
        for index in (columns["word"], columns.get("tag", len(fields)))
    )
    return _DOCSTART in (fields[0], word) and not _MENTION.match(tag)


def _width_for(columns: Mapping[str, int], fields: Sequence[str], path: PathOrFile, line: Line) -> int:
    width = len(fields)
    for name, index in columns.items():
        if not -width <= index < width:
            raise malformed(path, line, f"no column {index} for {name} among {width} columns")
    word, tag = columns["word"] % width, columns.get("tag", -1) % width
    if word == tag and "tag" in columns:  # a file without tags, and tag: -1
        raise malformed(path, line, f"word and tag are both column {word} of {width}")
    return width


def _filled(tags: list[str], empty_tag: str | None, path: PathOrFile, block: Sequence[Line]) -> list[str]:
    if "" not in tags:
        return tags
    if empty_tag is None:
        raise malformed(path, block[tags.index("")], "empty tag (set empty_tag to what it means)")
    return [tag or empty_tag for tag in tags]


def _first_character(word: str, path: PathOrFile, line: Line) -> str:
    if len(word) < 2 or word[-1] not in "0123456789":
        raise malformed(path, line, "first_character expects a character and its position, like 中0")
    return word[0]


def read_blocks(path: PathOrFile, ends_sentence: Callable[[str], bool]) -> Iterator[list[Line]]:
    """Runs of lines between those that end a sentence; none is empty."""
    block: list[Line] = []
    for number, line in read_lines(path):
        if not ends_sentence(line):
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


def read_lines(path: PathOrFile) -> Iterator[Line]:
    """Lines that end in LF or CRLF, without a byte order mark at the file's start.

    ValueError as `read_text`, and for a carriage return elsewhere: a file whose lines end in CR would pass
    for a single line.
    """
    for number, line in read_text(path):
        line = line.removesuffix("\n").removesuffix("\r")
        if "\r" in line:
            rule = "carriage return inside a line (lines end in LF or CRLF)"
            raise malformed(path, (number, line), rule)
        yield number, line


def read_text(path: PathOrFile) -> Iterator[Line]:
    """Lines as they stand, with their ends, but for a byte order mark at the file's start.

    ValueError for bytes that are not UTF-8, and for a NUL.
    """
    with opened(path) as file:  # in text a lone CR, or with splitlines U+2028, would end a line too
        for number, raw in enumerate(file, 1):
            try:
                line = raw.decode()
            except UnicodeDecodeError as error:
                reason = f"not UTF-8 ({error.reason} at byte {error.start + 1} of the line)"
                raise malformed(path, (number, raw.decode(errors="replace").rstrip()), reason) from None
            if number == 1:
                line = line.removeprefix("\ufeff")
            if "\0" in line:
                raise malformed(path, (number, line.removesuffix("\n").removesuffix("\r")), "NUL byte")
            yield number, line


def opened(path: PathOrFile) -> AbstractContextManager[BinaryIO]:
    """An open file stays open behind it."""
    return open(path, "rb") if isinstance(path, str | os.PathLike) else nullcontext(path)


def split_fields(line: str) -> list[str]:
    """Fields between single tabs, possibly empty, if there is a tab; else between runs of spaces."""
    if "\t" in line:
        return line.split("\t")
    fields = line.split(" ")
    return [field for field in fields if field] if "" in fields else fields


def check_width(rows: Sequence[Sequence[str]], width: int, path: PathOrFile, block: Sequence[Line]) -> None:
    """ValueError at the first row that has not `width` fields; the rows are the block's, line by line."""
    for row, line in zip(rows, block, strict=True):
        if len(row) != width:
            raise malformed(path, line, f"expected {width} columns, got {len(row)}")


def check_words(words: Sequence[str], path: PathOrFile, lines: Sequence[Line]) -> None:
    """ValueError at the first word that is empty."""
    if "" in words:
        raise malformed(path, lines[words.index("")], "empty word")


def check_tags(tags: Sequence[str], path: PathOrFile, lines: Sequence[Line]) -> None:
    """ValueError at the first tag with a character that nobody sees, or a space at an end.

    Such a tag looks like another one (`B-PER`, `B-PER\u200b`), and would be a type of its own.
    """
    for tag in dict.fromkeys(tags):
        if not tag.isprintable() or tag != tag.strip(" "):
            rule = f"tag {quoted(tag)} has a character that cannot be seen"
            raise malformed(path, lines[tags.index(tag)], rule)


def is_blank(line: str) -> bool:
    return not line.strip(" \t")


def intern_all(strings: Iterable[str]) -> tuple[str, ...]:
    """One copy in memory of each different string: a corpus repeats a few thousand of them."""
    return tuple(map(sys.intern, strings))


def malformed(path: PathOrFile, line: Line, rule: str) -> ValueError:
    """The error that says where, which rule, and what stands there."""
    number, text = line
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else path.name
    return ValueError(f"{name}:{number}: {rule}: {quoted(text)}")
