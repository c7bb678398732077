"""Column files: one token per line, its word and tag in columns, and a blank line after each sentence.

The format of CoNLL-2000 and CoNLL-2003, WNUT, Weibo, MSRA and most others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypedDict, Unpack

from ner_experiments.data.remarks import Remarks, place_of
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tag_styles import is_of_mention
from ner_experiments.data.text_files import (
    UTF_8,
    Block,
    Line,
    PathOrFile,
    malformed,
    name_of,
    read_blocks,
    split_blocks,
)
from ner_experiments.utils.text import truncated_repr

HINTS = {
    "#": "if this is a comment line, set comments to what such lines start with, such as '#'",
    '{"': "if the file holds JSON Lines, its format is jsonl (data=jsonl)",
}
"""Start of a line or word that cannot be read -> a hint at what it may be."""

_DOCSTART = "-DOCSTART-"
_MENTION = re.compile("[BIMESLU]-.")
_COMMENT = ("# ", "#\t")
"""Starts of lines that are taken for comments where they cannot be tokens."""
AUTO = "auto"
_NUMBER = re.compile(r"-?\d{1,4}", re.ASCII)

Columns = Mapping[str, int | str]
"""Layer, such as "word" or "tag" -> its column: a number (0 is the first, -1 the last) or a name in the header line."""


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
    """The blocks without the lines that start with `start`. Raises ValueError if such a line has a mention's tag.

    A line with another number of fields than the file's tokens has one only if it is written as `B-ORG`: in other
    styles, many words such as e-mail could be tags.
    """
    width = 0
    for block in blocks:
        if not width:
            token = next((text for _, text in block.lines if not text.startswith(start)), None)
            width = 0 if token is None else len(split_fields(token))
        if start not in block.text:
            yield block
            continue
        kept = []
        for line in block.lines:
            if not line[1].startswith(start):
                kept.append(line)
                continue
            fields = split_fields(line[1])
            tag = _field(fields, columns.get("tag", len(fields)))
            if _MENTION.match(tag) or (width in (0, len(fields)) and is_of_mention(tag)):
                raise malformed(path, line, f"a line that starts with comments={start!r} has a mention")
            remarks.add("lines skipped as comments", place_of(name_of(path), line[0]), line[1])
        if kept:
            yield Block.of(kept)


def is_docstart(line: str, columns: Mapping[str, int]) -> bool:
    """Whether `-DOCSTART-` is the first field or the word, and the tag is not part of a mention."""
    if _DOCSTART not in line:
        return False
    fields = split_fields(line)
    word, tag = (_field(fields, column) for column in (columns["word"], columns.get("tag", len(fields))))
    return _DOCSTART in (fields[0], word) and not is_of_mention(tag)


def _field(fields: Sequence[str], column: int) -> str:
    return fields[column] if -len(fields) <= column < len(fields) else ""


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
