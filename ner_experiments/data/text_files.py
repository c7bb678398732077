"""Text files as lines and blocks of lines: decoding, gzip, line ends, and errors with file and line."""

from __future__ import annotations

import codecs
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import StringIO
from itertools import chain, groupby
from pathlib import Path
from typing import BinaryIO

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
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""The byte order marks of UTF-16."""
CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""A character of Chinese or Japanese."""
_IN_LATIN = re.compile(f"[A-Za-z](?={CJK.pattern})|{CJK.pattern}(?=[A-Za-z])")
_BLANK = re.compile(r"^[ \t]+$", re.MULTILINE)


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
            rule = "carriage return inside a line (lines end in LF or CRLF)"
            yield from _up_to(piece.index("\r"), path, number, piece, rule)
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
        for number, piece in _decoded(file, path, codec_of(encoding)):
            if number == 1:
                piece = piece.removeprefix("\ufeff")
            if "\0" in piece:
                yield from _up_to(piece.index("\0"), path, number, piece, "NUL byte")
            yield number, piece


def _decoded(file: BinaryIO, path: PathOrFile, codec: str) -> Iterator[Line]:
    in_utf_8, number = codec in (UTF_8, "utf-8-sig"), 1
    codec = UTF_8 if in_utf_8 else codec
    # in an encoding such as UTF-16, a byte 10 need not be a line end
    while content := _whole_lines(file) if in_utf_8 else file.read():
        try:
            text = content.decode(codec)
        except UnicodeDecodeError as error:
            text = content.decode(codec, "replace")
            place = len(content[: error.start].decode(codec, "replace"))
            rule = f"not {codec} ({error.reason} at byte {error.start + 1} of the file)"
            if in_utf_8:
                byte = error.start - content.rfind(b"\n", 0, error.start)
                rule = f"not UTF-8 ({error.reason} at byte {byte} of the line)"
                if number == 1 and not place and content.startswith(UTF_16):
                    rule += ", but UTF-16 by its byte order mark (encoding utf-16 reads it)"
            yield from _up_to(place, path, number, text, rule)
        except UnicodeError as error:  # UTF-16 without its byte order mark, in some versions of Python
            raise ValueError(f"{name_of(path)}: not {codec} ({error})") from None
        yield number, text
        number += text.count("\n")


def _up_to(place: int, path: PathOrFile, number: int, text: str, rule: str) -> Iterator[Line]:
    """The lines of a text before the one with a fault at `place`, for which ValueError is raised then.

    number: of the first line.
    """
    start = text.rfind("\n", 0, place) + 1
    if start:
        yield number, text[:start]
    line = text[start:].partition("\n")[0]
    shown = line if text.startswith("\r", place) else line.removesuffix("\r")
    raise malformed(path, (number + text.count("\n", 0, start), shown), rule)


def _whole_lines(file: BinaryIO) -> bytes:
    """The next whole lines of a file, as many as can be read at once; empty at its end."""
    # read1 does not wait for more lines of a pipe; an unbuffered file has none
    content: bytes = getattr(file, "read1", file.readline)(PIECE)
    # not at the end of input from a terminal, where another read would wait for more
    return content + file.readline() if content and not content.endswith(b"\n") else content


def is_undecoded(error: BaseException | None) -> bool:
    """Whether bytes that are not in the encoding led to an error."""
    return error is not None and (isinstance(error, UnicodeError) or is_undecoded(error.__context__))


def codec_of(encoding: str) -> str:
    """Python's name for a text encoding. Raises ValueError for an unknown one."""
    try:
        codec = codecs.lookup(encoding)
        "".encode(encoding)  # LookupError for codecs from bytes to bytes, such as base64
    except (LookupError, ValueError):
        known = "such as utf-8, utf-16, latin-1, cp1252, gb18030"
        raise ValueError(f"there is no encoding {truncated_repr(encoding)} ({known})") from None
    return codec.name


def guessed_encoding(paths: Iterable[Path]) -> str:
    """The encoding of all files: by a byte order mark, UTF-8 if they are valid, else a guess at GB 18030 or cp1252."""
    contents = []
    for path in paths:
        with open_binary(path) as file:
            contents.append(file.read())
    if any(it.startswith(UTF_16) for it in contents):
        return "utf-16"
    for codec in ("utf-8", "gb18030", "cp1252"):
        try:
            texts = [it.decode(codec) for it in contents]
        except UnicodeDecodeError:
            continue
        if codec != "gb18030":
            return codec
        foreign = [c for c in chain.from_iterable(texts) if c > "\x7f"]
        chinese = sum(map(bool, map(CJK.match, foreign)))
        in_latin = sum(len(_IN_LATIN.findall(it)) for it in texts)  # as what the ö of Köln is read as
        if chinese > 0.8 * len(foreign) and in_latin < 0.5 * len(foreign):
            return codec
    return "latin-1"


@contextmanager
def open_binary(path: PathOrFile) -> Iterator[BinaryIO]:
    """Context manager of the file, decompressed if it is a gzip file. A file that was passed open is left open.

    Reading raises ValueError where a gzip file is damaged.
    """
    try:
        with ExitStack() as stack:
            file = stack.enter_context(open(path, "rb")) if isinstance(path, str | os.PathLike) else path
            peek = getattr(file, "peek", None)
            if peek and peek(3)[:3] == GZIP:
                file = stack.enter_context(gzip.GzipFile(fileobj=file))  # type: ignore[assignment]
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{name_of(path)}: not a whole gzip file ({error})") from None


def is_pipe(path: PathOrFile) -> bool:
    """Whether a file cannot be read twice and may never end, such as standard input from another program."""
    return not isinstance(path, str | os.PathLike) and not path.seekable()


def is_blank(line: str) -> bool:
    return not line.strip(" \t")


def malformed(path: PathOrFile, line: Line, rule: str) -> ValueError:
    """ValueError with the file, the line number, the broken rule, and the line itself."""
    number, text = line
    return ValueError(f"{name_of(path)}:{number}: {rule}: {truncated_repr(text)}")


def name_of(path: PathOrFile) -> str:
    return os.fspath(path) if isinstance(path, str | os.PathLike) else path.name
