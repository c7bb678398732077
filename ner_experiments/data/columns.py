"""Column files: one token per line, its word and tag in columns, and a blank line after each sentence.

The format of CoNLL-2000 and CoNLL-2003, WNUT, Weibo, MSRA and most others. From `read_blocks` on, the file
holds the line handling that all readers share: decoding, line ends, fields, and errors with file and line.
"""

from __future__ import annotations

import codecs
import gzip
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from io import StringIO
from itertools import chain, groupby
from typing import Any, AnyStr, BinaryIO, TypedDict, Unpack

from ner_experiments.data.remarks import Remarks, place_of
from ner_experiments.data.sentence import Sentence
from ner_experiments.utils.text import truncated_repr

PathOrFile = str | os.PathLike[str] | BinaryIO
"""A path, or an open binary file such as standard input, which error messages refer to by its `name`."""
Line = tuple[int, str]
"""1-based line number and the text without its line end."""

UTF_8 = "utf-8"
PIECE = 2**20
"""Most bytes that are read at once."""
GZIP = b"\x1f\x8b\x08"
"""The first bytes of a gzip file, which UTF-8 text cannot start with."""
HINTS = {
    "#": "if this is a comment line, set comments to what such lines start with, such as '#'",
    '{"': "if the file holds JSON Lines, its format is jsonl (data=jsonl)",
}
"""Start of a line or word that cannot be read -> a hint at what it may be."""

_DOCSTART = "-DOCSTART-"
_MENTION = re.compile("[BIMESLU]-.")
_BLANK = re.compile(r"^[ \t]+$", re.MULTILINE)
_COMMENT = ("# ", "#\t")
"""Starts of lines that are taken for comments where they cannot be tokens."""
AUTO = "auto"
_NUMBER = re.compile(r"-?\d{1,4}", re.ASCII)

Columns = Mapping[str, int | str]
"""Layer, such as "word" or "tag" -> its column: a number (0 is the first, -1 the last) or a name in the header line."""


@dataclass(slots=True)
class Block:
    """Consecutive lines as one text, joined by LF, and their numbers. Handling millions of lines one by one is slow."""

    numbers: Sequence[int]
    text: str

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Block:
        return cls([number for number, _ in lines], "\n".join(text for _, text in lines))

    @property
    def lines(self) -> list[Line]:
        return list(zip(self.numbers, self.text.split("\n"), strict=True))


class Layout(TypedDict, total=False):
    """How a column file is written; see `read_columns`."""

    first_character: bool
    empty_word: str | None
    comments: str | None
    encoding: str


def read_columns(
    path: PathOrFile,
    *,
    columns: Columns,
    empty_tag: str | None = None,
    remarks: Remarks | None = None,
    **layout: Unpack[Layout],
) -> Iterator[Sentence]:
    """Yield the sentences of a column file lazily.

    Fields are separated by single tabs in a line that has a tab, else by runs of spaces. No other character is a
    separator: U+00A0, U+200B and U+3000 belong to tokens. A line of only spaces and tabs ends a sentence. So does a
    `-DOCSTART-` line (`is_docstart`), which is not a token.

    columns: the column of "word" and "tag", and of further layers for `Sentence.columns`. If one is given by
        name, the first line is a header and no token.
    first_character: the word column holds a character and its position in its word, of one or two digits
        (Weibo, second version: `中0`, `国1`). The token is the first code point, as Weibo doubles a few characters.
    empty_tag: the tag that an empty field stands for (MSRA: "O").
    empty_word: the word that an empty field stands for.
    comments: what a comment line starts with; None if there are none. "auto": a line before a sentence's first token
        that starts with `#` and a space or tab, and has another number of fields than the file's tokens.
    remarks: counts comment lines and the empty fields that were filled.

    Tags may be of any scheme. Raises ValueError, with file and line, for lines of unequal width, an empty
    word or tag with no value to fill it, a file in which every tag is empty, a tag that `check_tags` refuses, a
    column that the file does not have, a comment line with the tag of a mention, and bytes that are not in the
    encoding.
    """
    remarks = remarks or Remarks()
    tokens = filled = 0
    first: Block | None = None
    checked = set[str]()
    strings: dict[str, str] = {}
    for block, layers in _layers(path, columns, remarks, **layout):
        words, tags = layers.pop("word"), layers.pop("tag")
        tokens += len(tags)
        if "" in tags:
            filled += tags.count("")
            tags = _fill(tags, empty_tag, "tag", path, block, remarks)
        if not checked.issuperset(tags):
            check_tags(tags, path, block.lines)
            checked.update(tags)
        first = first or block
        yield Sentence(
            tuple(map(strings.setdefault, words, words)),
            tuple(map(strings.setdefault, tags, tags)),
            {name: tuple(map(strings.setdefault, layer, layer)) for name, layer in layers.items()},
            line=block.numbers[0],
        )
    if first and tokens == filled:
        rule = f"every tag of the file is empty: the tags are not in column {columns['tag']}"
        raise malformed(path, first.lines[0], rule)


def read_untagged(path: PathOrFile, *, columns: Columns, **layout: Unpack[Layout]) -> Iterator[Sentence]:
    """Read as `read_columns` does, but without a tag column: every tag is O."""
    if "word" not in columns:
        raise ValueError(f"columns must name at least word, got {', '.join(columns) or 'none'}")
    for block, layers in _layers(path, columns, Remarks(), **layout):
        words = layers.pop("word")
        yield Sentence(words, ("O",) * len(words), layers, line=block.numbers[0])


def _layers(
    path: PathOrFile,
    named_columns: Columns,
    remarks: Remarks,
    *,
    first_character: bool = False,
    empty_word: str | None = None,
    comments: str | None = AUTO,
    encoding: str = UTF_8,
) -> Iterator[tuple[Block, dict[str, tuple[str, ...]]]]:
    """For each sentence, its lines and the values of its tokens by column."""
    columns, blocks = column_numbers(path, named_columns, read_blocks(path, encoding))
    blocks = split_blocks(blocks, lambda line: is_docstart(line, columns), _DOCSTART)
    if comments not in (None, AUTO):
        blocks = _without_comments(blocks, comments, columns, path, remarks)
    first, blocks = _first_token(blocks)
    if first is None:
        return
    first_fields = split_fields(first[1])
    width = _width_for(columns, first_fields, path, first)
    for block in blocks:
        if comments == AUTO and block.text.startswith(_COMMENT):
            block = _after_comments(block, first_fields, columns, path, remarks)
        if not block.text:
            continue
        values = _columns(block, width, path)
        layers = {name: values[index] for name, index in columns.items()}
        if "" in layers["word"]:
            layers["word"] = _fill(layers["word"], empty_word, "word", path, block, remarks)
        if first_character:
            words = zip(layers["word"], block.lines, strict=True)
            layers["word"] = tuple(_first_character(word, path, line) for word, line in words)
        yield block, layers


def _columns(block: Block, width: int, path: PathOrFile) -> list[tuple[str, ...]]:
    """The fields of the block's lines by column. Raises ValueError for a line without exactly `width` fields.

    All lines are split at once, with their ends as fields. If each end is in its place, every line has `width` fields.
    Blocks with more than one separator between fields are split line by line.
    """
    separator = "\t" if "\t" in block.text else " "
    fields = f"{block.text}\n".replace("\n", f"{separator}\n{separator}").split(separator)[:-1]
    line_ends = fields[width :: width + 1]
    if line_ends == ["\n"] * len(block.numbers) and (separator == "\t" or "" not in fields):
        return [tuple(fields[column :: width + 1]) for column in range(width)]
    lines = block.lines
    rows = [split_fields(text) for _, text in lines]
    check_width(rows, width, path, lines)
    return list(zip(*rows, strict=True))


def parse_columns(text: str) -> dict[str, int | str]:
    """Columns by number or name, parsed from a text such as `word=0,tag=NER`. Raises ValueError for any other text."""
    pairs = [part.partition("=") for part in text.split(",")]
    named = {name: int(value) if _NUMBER.fullmatch(value) else value for name, _, value in pairs}
    if len(named) != len(pairs) or not all(name and value != "" for name, value in named.items()):
        raise ValueError(f"expected word=COLUMN, then more such as tag=COLUMN, got {truncated_repr(text)}")
    return named


def column_numbers(
    path: PathOrFile, columns: Columns, blocks: Iterator[Block]
) -> tuple[dict[str, int], Iterator[Block]]:
    """The number of each column, and the blocks without the header line that a file has if a column is given by name.

    Raises ValueError for a name that the header does not have.
    """
    numbers = {name: column for name, column in columns.items() if not isinstance(column, str)}
    if len(numbers) == len(columns):
        return numbers, blocks
    header, *others = next(blocks, Block([1], "")).lines
    names = split_fields(header[1])
    for name, column in columns.items():
        if isinstance(column, str):
            if column not in names:
                raise malformed(
                    path, header, f"the first line, the header, has no column {column!r} for {name}"
                )
            numbers[name] = names.index(column)
    return numbers, chain([Block.of(others)] if others else [], blocks)


def _first_token(blocks: Iterator[Block]) -> tuple[Line | None, Iterator[Block]]:
    """The file's first token line, by which its width is known, and all blocks; None if there is no block.

    The first token line is the first that does not start with `#`. If all lines do, it is the first that does not
    look like a comment, or else the first line.
    """
    before: list[Block] = []
    for block in blocks:
        before.append(block)
        if first := next((line for line in block.lines if not line[1].startswith("#")), None):
            return first, chain(before, blocks)
    lines = [line for block in before for line in block.lines]
    first = next((line for line in lines if not line[1].startswith(_COMMENT)), None)
    return first or next(iter(lines), None), iter(before)


def _after_comments(
    block: Block,
    first: Sequence[str],
    columns: Mapping[str, int],
    path: PathOrFile,
    remarks: Remarks,
) -> Block:
    """The block without the lines at its start that can only be comments, which is judged by the first token's fields.

    They are of another width; or, if something else than the word is in the first column, they end in a tab, as those
    of GermEval do, and tokens do not.
    """
    lines = block.lines
    for place, (number, text) in enumerate(lines):
        fields = split_fields(text)
        ends_in_a_tab = columns["word"] % len(first) > 0 and first[-1] and not fields[-1]
        if not text.startswith(_COMMENT) or (len(fields) == len(first) and not ends_in_a_tab):
            return Block.of(lines[place:])
        remarks.add("lines skipped as comments", place_of(name_of(path), number), text)
    return Block([], "")


def _without_comments(
    blocks: Iterable[Block],
    start: str,
    columns: Mapping[str, int],
    path: PathOrFile,
    remarks: Remarks,
) -> Iterator[Block]:
    """The blocks without the lines that start with `start`. Raises ValueError if such a line has a mention's tag."""
    for block in blocks:
        if start not in block.text:
            yield block
            continue
        kept = []
        for line in block.lines:
            if not line[1].startswith(start):
                kept.append(line)
                continue
            fields = split_fields(line[1])
            tag = columns.get("tag", len(fields))
            if -len(fields) <= tag < len(fields) and _MENTION.match(fields[tag]):
                raise malformed(path, line, f"a line that starts with comments={start!r} has a mention")
            remarks.add("lines skipped as comments", place_of(name_of(path), line[0]), line[1])
        if kept:
            yield Block.of(kept)


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


def _fill(
    values: tuple[str, ...],
    filler: str | None,
    what: str,
    path: PathOrFile,
    block: Block,
    remarks: Remarks,
) -> tuple[str, ...]:
    """The values with `filler` in place of empty ones. Raises ValueError if `filler` is None."""
    if filler is None:
        line = block.lines[values.index("")]
        raise malformed(path, line, f"empty {what} (set empty_{what} to the {what} that it stands for)")
    for value, (number, text) in zip(values, block.lines, strict=True):
        if not value:
            remarks.add(f"empty {what}s read as {filler}", place_of(name_of(path), number), text)
    return tuple(value or filler for value in values)


def _first_character(word: str, path: PathOrFile, line: Line) -> str:
    if len(word) < 2 or word[-1] not in "0123456789":
        raise malformed(path, line, "first_character expects a character and its position, like 中0")
    return word[0]


def read_blocks(path: PathOrFile, encoding: str = UTF_8) -> Iterator[Block]:
    """Non-empty runs of lines between blank lines. Raises ValueError as `read_lines`."""
    number, begun = 1, [""]  # pieces of a block whose end has not been read yet
    for _, piece in _unix_pieces(path, encoding):
        if "\n " in piece or "\n\t" in piece or piece.startswith((" ", "\t")):
            piece = _BLANK.sub("", piece)
        begun.append(piece)
        if "\n\n" in piece or piece.startswith("\n"):
            *blocks, rest = "".join(begun).split("\n\n")
            for text in blocks:
                if lines := text.strip("\n"):
                    yield _numbered(lines, number + text.startswith("\n"))
                number += text.count("\n") + 2
            begun = [rest]
    text = "".join(begun)
    if lines := text.strip("\n"):
        yield _numbered(lines, number + text.startswith("\n"))


def _numbered(text: str, first: int) -> Block:
    return Block(range(first, first + text.count("\n") + 1), text)


def split_blocks(
    blocks: Iterable[Block], ends_sentence: Callable[[str], bool], marker: str
) -> Iterator[Block]:
    """The blocks, split further at lines that end a sentence, which are left out. All such lines contain `marker`."""
    for block in blocks:
        if marker not in block.text:
            yield block
            continue
        for ends, lines in groupby(block.lines, lambda line: ends_sentence(line[1])):
            if not ends:
                yield Block.of(list(lines))


def read_lines(path: PathOrFile, encoding: str = UTF_8) -> Iterator[Line]:
    """Lines of a file with LF or CRLF line ends, without a byte order mark at its start.

    Raises ValueError as `read_text` does, and for a carriage return elsewhere: a file whose lines end in CR
    would pass as a single line.
    """
    for number, piece in _unix_pieces(path, encoding):
        yield from enumerate(piece.removesuffix("\n").split("\n"), number)


def _unix_pieces(path: PathOrFile, encoding: str) -> Iterator[Line]:
    """Pieces as `_pieces`, with LF as line end. Raises ValueError as `read_lines`."""
    for number, piece in _pieces(path, encoding):
        piece = piece.replace("\r\n", "\n")
        if piece.endswith("\r"):  # the file ends within a CRLF
            piece = piece[:-1] + "\n"
        if "\r" in piece:
            before, line = _split_at_line(piece, piece.index("\r"), "\n")
            if before:
                yield number, before
            place = number + before.count("\n"), line.removesuffix("\n")
            raise malformed(path, place, "carriage return inside a line (lines end in LF or CRLF)")
        yield number, piece


def read_text(path: PathOrFile, encoding: str = UTF_8) -> Iterator[Line]:
    """Lines with their line ends, without a byte order mark at the file's start. A gzip file is decompressed.

    Raises ValueError for bytes that are not in the encoding, a damaged gzip file, and a NUL byte.
    """
    for number, piece in _pieces(path, encoding):
        yield from enumerate(StringIO(piece, newline="\n"), number)


def _pieces(path: PathOrFile, encoding: str) -> Iterator[Line]:
    """Pieces of whole lines of a file, as `read_text` describes them, with the number of their first line."""
    with open_binary(path) as file:  # text mode would also split at a lone CR, and splitlines at U+2028
        number = 1
        try:
            for piece in _decoded(file, path, encoding):
                piece = piece.removeprefix("\ufeff") if number == 1 else piece
                if "\0" in piece:
                    before, line = _split_at_line(piece, piece.index("\0"), "\n")
                    if before:
                        yield number, before
                    line = line.removesuffix("\n").removesuffix("\r")
                    raise malformed(path, (number + before.count("\n"), line), "NUL byte")
                yield number, piece
                number += piece.count("\n")
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{name_of(path)}: not a whole gzip file ({error})") from None


def _decoded(file: BinaryIO, path: PathOrFile, encoding: str) -> Iterator[str]:
    codec = codec_of(encoding)
    if codec not in (UTF_8, "utf-8-sig"):
        yield _decoded_whole(file.read(), path, codec)
        return
    number = 1
    while content := _whole_lines(file):
        try:
            yield content.decode()
        except UnicodeDecodeError as error:
            before, line = _split_at_line(content, error.start, b"\n")
            if before:
                yield before.decode()
            number += before.count(b"\n")
            place = error.start - len(before) + 1
            reason = f"not UTF-8 ({error.reason} at byte {place} of the line)"
            if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                reason += ", but UTF-16 by its byte order mark (encoding utf-16 reads it)"
            raise malformed(path, (number, line.decode(errors="replace").rstrip()), reason) from None
        number += content.count(b"\n")


def _whole_lines(file: BinaryIO) -> bytes:
    """The next whole lines of a file, as many as can be read at once; empty at its end."""
    # read1 does not wait for more lines of a pipe; an unbuffered file has none
    content: bytes = getattr(file, "read1", file.readline)(PIECE)
    # not at the end of input from a terminal, where another read would wait for more
    return content + file.readline() if content and not content.endswith(b"\n") else content


def _split_at_line(text: AnyStr, place: int, line_end: AnyStr) -> tuple[AnyStr, AnyStr]:
    """The lines before the line at a place, and this line."""
    start, end = text.rfind(line_end, 0, place) + 1, text.find(line_end, place) + 1
    return text[:start], text[start : end or len(text)]


def _decoded_whole(content: bytes, path: PathOrFile, codec: str) -> str:
    """Text of a file in an encoding such as UTF-16, where a byte 10 need not be a line end."""
    try:
        return content.decode(codec)
    except UnicodeDecodeError as error:
        lines = content[: error.start].decode(codec, errors="replace").split("\n")
        rule = f"not {codec} ({error.reason} at byte {error.start + 1} of the file)"
        raise malformed(path, (len(lines), lines[-1]), rule) from None
    except UnicodeError as error:  # UTF-16 without its byte order mark, in some versions of Python
        raise ValueError(f"{name_of(path)}: not {codec} ({error})") from None


def codec_of(encoding: str) -> str:
    """Python's name for a text encoding. Raises ValueError for an unknown one."""
    try:
        codec = codecs.lookup(encoding)
        "".encode(encoding)  # LookupError for codecs from bytes to bytes, such as base64
    except (LookupError, ValueError):
        known = "such as utf-8, utf-16, latin-1, cp1252, gb18030"
        raise ValueError(f"there is no encoding {truncated_repr(encoding)} ({known})") from None
    return codec.name


def open_binary(path: PathOrFile) -> AbstractContextManager[BinaryIO]:
    """Context manager of the file, decompressed if it is a gzip file. A file that was passed open is left open."""
    if isinstance(path, str | os.PathLike):
        file: BinaryIO = open(path, "rb")  # noqa: SIM115
        if file.peek(3)[:3] == GZIP:  # type: ignore[attr-defined]
            return _closing(gzip.GzipFile(fileobj=file), file)
        return file
    peek = getattr(path, "peek", None)
    return nullcontext(gzip.GzipFile(fileobj=path) if peek and peek(3)[:3] == GZIP else path)  # type: ignore[arg-type]


@contextmanager
def _closing(packed: gzip.GzipFile, file: BinaryIO) -> Iterator[Any]:
    with file, packed:
        yield packed


def split_fields(line: str) -> list[str]:
    """Fields between single tabs, possibly empty, if the line has a tab; else between runs of spaces."""
    if "\t" in line:
        return line.split("\t")
    fields = line.split(" ")
    return [field for field in fields if field] if "" in fields else fields


def check_width(rows: Sequence[Sequence[str]], width: int, path: PathOrFile, block: Sequence[Line]) -> None:
    """Raise ValueError at the first row without exactly `width` fields. Rows and lines correspond."""
    if {*map(len, rows)} == {width}:
        return
    for row, line in zip(rows, block, strict=True):
        if len(row) != width:
            hint = hint_for(line[1])
            rule = f"expected {width} columns, got {len(row)}"
            raise malformed(path, line, f"{rule} ({hint})" if hint else rule)


def hint_for(text: str) -> str:
    """The hint for a line or word that cannot be read, by its start; empty if there is none."""
    return next((hint for start, hint in HINTS.items() if text.startswith(start)), "")


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
    """The strings, interned to save memory: a corpus repeats a few thousand of them."""
    return tuple(map(sys.intern, strings))


def malformed(path: PathOrFile, line: Line, rule: str) -> ValueError:
    """ValueError with the file, the line number, the broken rule, and the line itself."""
    number, text = line
    return ValueError(f"{name_of(path)}:{number}: {rule}: {truncated_repr(text)}")


def name_of(path: PathOrFile) -> str:
    return os.fspath(path) if isinstance(path, str | os.PathLike) else path.name
