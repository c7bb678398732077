"""Column files: one token per line, its word and tag in columns, and a blank line after each sentence.

The format of CoNLL-2000 and CoNLL-2003, WNUT, Weibo, MSRA and most others. From `read_blocks` on, the file
holds the line handling that all readers share: decoding, line ends, fields, and errors with file and line.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO

from ner_experiments.data.sentence import Sentence
from ner_experiments.utils.text import truncated_repr

PathOrFile = str | os.PathLike[str] | BinaryIO
"""A path, or an open file such as standard input, which errors call by its `name`."""
Line = tuple[int, str]
"""1-based line number and the text without its line end."""

_DOCSTART = "-DOCSTART-"
_MENTION = re.compile("[BIMES]-.")


def read_columns(
    path: PathOrFile,
    *,
    columns: Mapping[str, int],
    first_character: bool = False,
    empty_tag: str | None = None,
) -> Iterator[Sentence]:
    """Yield the sentences of a column file lazily.

    Fields are separated by single tabs in a line that has one, else by runs of spaces. No other character
    separates (U+00A0, U+200B, U+3000 belong to tokens), and none starts a comment. A line of only spaces and
    tabs ends a sentence, and so does a `-DOCSTART-` line (`is_docstart`), which is no token.

    columns: the index of "word" and "tag", and of further layers for `Sentence.columns`; -1 is the last.
    first_character: the word column holds a character and its position in its word, of one or two digits
        (Weibo, second version: `中0`, `国1`). The first code point is the token: a few are doubled there.
    empty_tag: the tag that an empty field stands for (MSRA: "O").

    Tags may be of any scheme. Raises ValueError, with file and line, for lines of unequal width, an empty
    word, an empty tag without `empty_tag`, a tag that `check_tags` refuses, a column outside the file, and
    bytes that are not UTF-8.
    """
    for block, layers in _layers(path, columns, first_character=first_character):
        words, tags = layers.pop("word"), _fill_empty_tags(layers.pop("tag"), empty_tag, path, block)
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
    """Read as `read_columns` does, but without a tag column: every tag is O."""
    if "word" not in columns:
        raise ValueError(f"columns must name at least word, got {', '.join(columns) or 'none'}")
    for block, layers in _layers(path, columns, first_character=first_character):
        words = tuple(layers.pop("word"))
        others = {name: tuple(layer) for name, layer in layers.items()}
        yield Sentence(words, ("O",) * len(words), others, line=block[0][0])


def _layers(
    path: PathOrFile, columns: Mapping[str, int], *, first_character: bool
) -> Iterator[tuple[list[Line], dict[str, list[str]]]]:
    """The lines of each sentence and, for each column, the values of its tokens."""
    columns = dict(columns)  # lookups in an OmegaConf mapping would dominate the run time
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
    """Whether `-DOCSTART-` is the first field or the word, and the tag is not part of a mention."""
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
    if word == tag and "tag" in columns:  # tag: -1 in a file without tags
        raise malformed(path, line, f"word and tag are both column {word} of {width}")
    return width


def _fill_empty_tags(
    tags: list[str], empty_tag: str | None, path: PathOrFile, block: Sequence[Line]
) -> list[str]:
    if "" not in tags:
        return tags
    if empty_tag is None:
        raise malformed(
            path, block[tags.index("")], "empty tag (set empty_tag to the tag that it stands for)"
        )
    return [tag or empty_tag for tag in tags]


def _first_character(word: str, path: PathOrFile, line: Line) -> str:
    if len(word) < 2 or word[-1] not in "0123456789":
        raise malformed(path, line, "first_character expects a character and its position, like 中0")
    return word[0]


def read_blocks(path: PathOrFile, ends_sentence: Callable[[str], bool]) -> Iterator[list[Line]]:
    """Non-empty runs of lines between the lines that end a sentence."""
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
    """Lines of a file with LF or CRLF line ends, without a byte order mark at its start.

    Raises ValueError as `read_text` does, and for a carriage return elsewhere: a file whose lines end in CR
    would pass as a single line.
    """
    for number, line in read_text(path):
        line = line.removesuffix("\n").removesuffix("\r")
        if "\r" in line:
            rule = "carriage return inside a line (lines end in LF or CRLF)"
            raise malformed(path, (number, line), rule)
        yield number, line


def read_text(path: PathOrFile) -> Iterator[Line]:
    """Lines with their line ends, without a byte order mark at the file's start.

    Raises ValueError for bytes that are not UTF-8, and for a NUL.
    """
    with open_binary(path) as file:  # text mode would also split at a lone CR, and splitlines at U+2028
        for number, content in enumerate(file, 1):
            try:
                line = content.decode()
            except UnicodeDecodeError as error:
                reason = f"not UTF-8 ({error.reason} at byte {error.start + 1} of the line)"
                raise malformed(path, (number, content.decode(errors="replace").rstrip()), reason) from None
            if number == 1:
                line = line.removeprefix("\ufeff")
            if "\0" in line:
                raise malformed(path, (number, line.removesuffix("\n").removesuffix("\r")), "NUL byte")
            yield number, line


def open_binary(path: PathOrFile) -> AbstractContextManager[BinaryIO]:
    """Context manager of the file. A file that was passed open stays open afterwards."""
    return open(path, "rb") if isinstance(path, str | os.PathLike) else nullcontext(path)


def split_fields(line: str) -> list[str]:
    """Fields between single tabs, possibly empty, if the line has a tab; else between runs of spaces."""
    if "\t" in line:
        return line.split("\t")
    fields = line.split(" ")
    return [field for field in fields if field] if "" in fields else fields


def check_width(rows: Sequence[Sequence[str]], width: int, path: PathOrFile, block: Sequence[Line]) -> None:
    """Raise ValueError at the first row without exactly `width` fields. Rows and lines correspond."""
    for row, line in zip(rows, block, strict=True):
        if len(row) != width:
            raise malformed(path, line, f"expected {width} columns, got {len(row)}")


def check_words(words: Sequence[str], path: PathOrFile, lines: Sequence[Line]) -> None:
    """Raise ValueError at the first empty word."""
    if "" in words:
        raise malformed(path, lines[words.index("")], "empty word")


def check_tags(tags: Sequence[str], path: PathOrFile, lines: Sequence[Line]) -> None:
    """Raise ValueError at the first tag with an invisible character, or a space at either end.

    Such a tag looks like another one (`B-PER`, `B-PER\u200b`), but would be a type of its own.
    """
    for tag in dict.fromkeys(tags):
        if not tag.isprintable() or tag != tag.strip(" "):
            rule = f"tag {truncated_repr(tag)} contains an invisible character"
            raise malformed(path, lines[tags.index(tag)], rule)


def is_blank(line: str) -> bool:
    return not line.strip(" \t")


def intern_all(strings: Iterable[str]) -> tuple[str, ...]:
    """The strings, interned: a corpus repeats a few thousand of them."""
    return tuple(map(sys.intern, strings))


def malformed(path: PathOrFile, line: Line, rule: str) -> ValueError:
    """ValueError with the file, the line number, the broken rule, and the line itself."""
    number, text = line
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else path.name
    return ValueError(f"{name}:{number}: {rule}: {truncated_repr(text)}")
