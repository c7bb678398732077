"""Column files: one token per line, its word and tag in columns, and a blank line after each sentence.

The format of CoNLL-2000 and CoNLL-2003, WNUT, Weibo, MSRA and most others. `layout.py` decides how a file is laid out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal

from ner_experiments.data.formats.annotated import Annotated
from ner_experiments.data.formats.format import Format
from ner_experiments.data.formats.layout import AUTO, Columns, Layout, Survey, columns_of, decide, fields_of
from ner_experiments.data.formats.options import Options
from ner_experiments.data.remarks import FaultsError, Remarks, place_of
from ner_experiments.data.sentence import Sentence, Task
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

BadLines = Literal["refuse", "skip"]

SKIP: Mapping[str, Any] = {"bad_lines": "skip"}
"""The setting that helps with a line for which there is no other."""
USUAL = {"word": "_", "tag": "O"}
"""The usual meanings of an empty word and an empty tag."""
SKIPPED = "sentences skipped for a line that cannot be read (bad_lines)"

_DOCSTART = "-DOCSTART-"
_PLACEHOLDERS = frozenset({"-X-", "-", "_"})
_MENTION = re.compile("[BIMESLU]-.")
_NUMBER = re.compile(r"-?\d{1,4}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(Options):
    """Options of columns.

    columns: the column of "word" and "tag", and of further layers for `Sentence.columns`. If one is given by
        name, the first line is a header; "auto" detects that of the words and that of the tags.
    first_character: the word column holds a character and its position in its word, of one or two digits
        (Weibo, second version: `中0`, `国1`). The token is the first code point, as Weibo doubles a few characters.
    empty_tag: the tag that an empty field stands for (MSRA: "O").
    empty_word: the word that an empty field stands for.
    comments: what a comment line starts with; None if there are none; "auto" to detect them.
    bad_lines: what becomes of a line that cannot be read: refuse the file, or skip its sentence.
    """

    columns: Columns
    task: Task = "mentions"
    first_character: bool | Literal["auto"] = False
    empty_tag: str | None = None
    empty_word: str | None = None
    comments: str | None = AUTO
    encoding: str = UTF_8
    bad_lines: BadLines = "refuse"


def read_columns(path: PathOrFile, options: ColumnOptions, remarks: Remarks) -> Iterator[Sentence]:
    """Sentences of a column file, with tags of any scheme.

    The whole file decides whether fields are separated by single tabs, or by runs of spaces and tabs, and whether its
    first line is a header (`layout`). No other character is a separator: U+00A0, U+200B and U+3000 belong to tokens. A
    line of only spaces and tabs ends a sentence. So does a `-DOCSTART-` line (`is_docstart`), which is not a token.

    Raises ValueError, with file and line, for a column that the file does not have, a comment line with the tag of a
    mention, a file in which every tag is empty, and bytes that are not in the encoding. Faults, see `Remarks.fault`,
    are lines of unequal width, an empty word or tag with no value to fill it, and a tag with an invisible character.
    """
    (layout,) = layouts_of([path], options)
    return sentences_of(*layout, options, remarks)


def layouts_of(paths: Sequence[PathOrFile], options: ColumnOptions) -> list[tuple[Survey, Layout]]:
    """All lines of each of a corpus's files but those of `-DOCSTART-`, and how it is laid out."""
    surveys = [
        Survey(
            path,
            split_blocks(read_blocks(path, options.encoding), is_docstart, _DOCSTART),
            options.comments,
        )
        for path in paths
    ]
    columns = {name: it for name, it in options.columns.items() if name != "tag" or options.gold != "none"}
    task = "mentions" if options.gold == "none" else options.task
    return decide(surveys, columns, task=task, first_character=options.first_character)


def sentences_of(
    survey: Survey, layout: Layout, options: ColumnOptions, remarks: Remarks
) -> Iterator[Sentence]:
    """The sentences of a file that is laid out so; with O for every tag if the layout has no column of tags."""
    return _Reader(survey, layout, options, remarks).sentences()


class _Reader:
    """Reader of the sentences of one file, without those that have a fault."""

    def __init__(self, survey: Survey, layout: Layout, options: ColumnOptions, remarks: Remarks) -> None:
        self.survey, self.path, self.layout, self.remarks = survey, survey.path, layout, remarks
        self.name = name_of(survey.path)
        self.fillers = {"word": options.empty_word, "tag": options.empty_tag}
        self.skips = options.bad_lines == "skip"
        self.faults = Remarks() if self.skips else remarks
        self.further = [it for it in layout.columns.items() if it[0] not in ("word", "tag")]
        self.num_faults = self.tokens = self.empty = 0
        self.checked = set[str]()
        self.strings: dict[str, str] = {}
        self.first: Block | None = None
        self._note()

    def sentences(self) -> Iterator[Sentence]:
        """The sentences. Raises ValueError if every tag is empty."""
        for block in chain(self.survey.blocks, self.survey.rest or ()):
            if sentence := self._sentence(block):
                yield sentence
        if self.first and "tag" in self.layout.columns and self.tokens == self.empty and not self.num_faults:
            rule = f"every tag of the file is empty: the tags are not in column {self.layout.columns['tag']}"
            raise malformed(self.path, self.first.lines[0], rule)

    def _sentence(self, block: Block) -> Sentence | None:
        """The block's sentence; None if it has a fault, or of comments."""
        block, comments = self.survey.split(block, self.layout)
        if comments:
            self._count(comments)
        if not block.text:
            return None
        before = self.num_faults
        try:
            sentence = self._read(block)
        except FaultsError as error:
            if not self.skips:
                raise
            self.remarks.add(SKIPPED, str(error))
            return None
        return sentence if self.num_faults == before else None

    def _fault(self, line: Line, rule: str, remedy: Mapping[str, Any] = SKIP) -> None:
        self.faults.fault(str(malformed(self.path, line, rule)), remedy=remedy)
        self.num_faults += 1

    def _note(self) -> None:
        self.remarks.read_as(self.name, self.layout.described(), self.layout.described_others())

    def _count(self, comments: Sequence[Line]) -> None:
        stated = self.survey.comments
        if not self.layout.comments:
            self.layout = replace(self.layout, comments="#" if stated in (None, AUTO) else stated)
            self._note()
        for line in comments:
            if stated != AUTO and self._has_mention(line[1]):
                rule = f"a line that starts with comments={stated!r} has a mention"
                self.remarks.fault(str(malformed(self.path, line, rule)))
            self.remarks.add("lines skipped as comments", place_of(self.name, line[0]), line[1])

    def _has_mention(self, comment: str) -> bool:
        """Whether a line that starts as the stated comments has a mention's tag.

        A line with another number of fields than the file's tokens has one only if it is written as `B-ORG`: in other
        styles, many words such as e-mail could be tags.
        """
        fields = fields_of(comment, self.layout.separator)
        tag = (fields[self.layout.columns.get("tag", len(fields)) :] or [""])[0]
        return bool(_MENTION.match(tag)) or (len(fields) == self.layout.width and is_of_mention(tag))

    def _read(self, block: Block) -> Sentence | None:
        layout = self.layout
        values = columns_of(block, layout.separator, layout.width)
        if not values:
            self._add_widths(block)
            return None
        self.first = self.first or block
        words = values[layout.columns["word"]]
        if "" in words:
            words = self._filled(words, "word", block)
        if layout.first_character:
            for word, line in zip(words, block.lines, strict=True):
                if len(word) < 2 or word[-1] not in "0123456789":
                    rule = "first_character expects a character and its position, like 中0"
                    self._fault(line, rule, {"first_character": False})
            words = tuple(word[:1] for word in words)
        tags: tuple[str, ...] = ("O",) * len(words)
        if "tag" in layout.columns:
            tags = values[layout.columns["tag"]]
            self.tokens += len(tags)
            if "" in tags:
                self.empty += tags.count("")
                tags = self._filled(tags, "tag", block)
            if not self.checked.issuperset(tags):
                for tag, line in zip(tags, block.lines, strict=True):
                    if not is_visible(tag):
                        self._fault(line, invisible(tag))
                self.checked.update(filter(is_visible, tags))
        known = self.strings.setdefault
        return Sentence(
            tuple(map(known, words, words)),
            tuple(map(known, tags, tags)),
            {name: tuple(map(known, values[column], values[column])) for name, column in self.further},
            line=block.numbers[0],
            file=self.name,
        )

    def _add_widths(self, block: Block) -> None:
        for line in block.lines:
            width = len(fields_of(line[1], self.layout.separator))
            if width != self.layout.width:
                hint = hint_for(line[1])
                rule = f"expected {self.layout.width} columns, got {width}" + (f" ({hint})" if hint else "")
                is_comment = line[1].startswith("#") and not self._tokens_start_so
                self._fault(line, rule, {"comments": "#"} if is_comment else SKIP)

    @cached_property
    def _tokens_start_so(self) -> bool:
        """Whether lines of tokens start with # as well as comments."""
        lines = (text for block in self.survey.blocks if "#" in block.text for _, text in block.lines)
        width, separator = self.layout.width, self.layout.separator
        return any(it.startswith("#") and len(fields_of(it, separator)) == width for it in lines)

    def _filled(self, values: tuple[str, ...], what: Literal["word", "tag"], block: Block) -> tuple[str, ...]:
        """The values with the filler in place of empty ones, each of which is a fault if there is no filler."""
        filler = self.fillers[what]
        for value, line in zip(values, block.lines, strict=True):
            if not value and filler is None:
                rule = f"empty {what} (set empty_{what} to the {what} that it stands for)"
                self._fault(line, rule, {f"empty_{what}": USUAL[what]})
            elif not value:
                self.remarks.add(f"empty {what}s read as {filler}", place_of(self.name, line[0]), line[1])
        return tuple(value or filler or "" for value in values)


def lines(sentences: Iterable[Annotated]) -> Iterator[str]:
    """Word and IOB2 tag, separated by a tab. ValueError for nested mentions and a word with a tab or line end."""
    for sentence in sentences:
        for word, tag in zip(sentence.words, sentence.tags(), strict=True):
            yield f"{in_a_field(word, sentence, 'columns')}\t{tag}\n"
        yield "\n"


def in_a_field(word: str, sentence: Annotated, format: str) -> str:
    """The word. Raises ValueError for one that no field of the format can hold, as it has a tab or a line end."""
    if any(character in word for character in "\t\r\n"):
        raise ValueError(f"{sentence.place}: {format} cannot hold the word {truncated_repr(word)}")
    return word


FORMATS = {
    "conll": Format(
        about="columns, one token per line",
        config="conll",
        read=read_columns,
        lines=lines,
        options=ColumnOptions,
        suffixes=(".conll", ".tsv", ".txt", ".bio", ".iob", ".iob2", ".bioes"),
        streams=True,
    )
}


def is_docstart(line: str) -> bool:
    """Whether only numbers and placeholders such as -X- precede `-DOCSTART-`, and no field is a mention's tag."""
    if _DOCSTART not in line:
        return False
    fields = [field for field in line.replace("\t", " ").split(" ") if field]
    first = next((field for field in fields if not (field.isdecimal() or field in _PLACEHOLDERS)), "")
    return first == _DOCSTART and not any(map(is_of_mention, fields))


def parse_columns(text: str) -> dict[str, int | str]:
    """Columns by number or name, parsed from a text such as `word=0,tag=NER`. Raises ValueError for any other text."""
    pairs = [part.partition("=") for part in text.split(",")]
    named = {name: int(value) if _NUMBER.fullmatch(value) else value for name, _, value in pairs}
    if len(named) != len(pairs) or not all(name and value != "" for name, value in named.items()):
        raise ValueError(f"expected word=COLUMN, then more such as tag=COLUMN, got {truncated_repr(text)}")
    return named


def hint_for(text: str) -> str:
    """The hint for a line or word that cannot be read, by its start; empty if there is none."""
    return next((hint for start, hint in HINTS.items() if text.startswith(start)), "")


def check_tags(tags: Sequence[str], path: PathOrFile, lines: Sequence[Line]) -> None:
    """Raise ValueError at the first tag with an invisible character, or a space at either end."""
    for tag in dict.fromkeys(tags):
        if not is_visible(tag):
            raise malformed(path, lines[tags.index(tag)], invisible(tag))


def is_visible(tag: str) -> bool:
    """Whether a tag has no invisible character, and no space at either end.

    Such a tag looks like another one (`B-PER`, `B-PER\u200b`), but would be a type of its own.
    """
    return tag.isprintable() and tag == tag.strip(" ")


def invisible(tag: str) -> str:
    """The rule that a tag breaks which is not visible."""
    return f"tag {truncated_repr(tag)} contains an invisible character"
