"""How a column file is laid out: separator, header, comments and columns, decided once from all of its lines.

The lines that do not start with `#` decide, as nearly all of them are lines of tokens:

- Fields are separated by single tabs if every line has one, else by single tabs or by runs of spaces and tabs: by what
  makes more lines of one width.
- A column of tags has nothing but tags of mentions. Of several, the tags are in the one with the most mentions. One
  that covers most of the tokens, such as chunks, does not count beside one with other types.
- The words are in the first other column that does not number the tokens, or in the one that the header calls so.
- The first line is a header if it has names such as `token` and `ner`, and its tag is none.
- A line that starts with `#` and a space or tab is a comment if it has another width, or if its tag is none. It stands
  before the first token of a sentence, unless tabs separate the columns and it has none.

Of a pipe, which may never end, only the lines up to the end of the first sentence decide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Literal

from ner_experiments.data.sentence import Task
from ner_experiments.data.tag_styles import (
    BARE,
    LETTERED,
    NO_TYPE,
    TagStyle,
    detect_style,
    follows,
    labels,
    to_standard,
)
from ner_experiments.data.text_files import CJK, Block, Line, PathOrFile, is_pipe, malformed

AUTO = "auto"
Separator = Literal["tabs", "spaces"]
Columns = Mapping[str, int | str]
"""Layer, such as "word" or "tag" -> its column: a number (0 is the first, -1 the last), a name in the header line, or
"auto"."""

_COMMENT = ("# ", "#\t")
"""Starts of lines that are taken for comments where they cannot be tokens."""
_WORD_HEADINGS = frozenset({"token", "tokens", "word", "words", "form", "text"})
_HEADINGS = _WORD_HEADINGS | {
    *("tag", "tags", "label", "labels", "ner", "ne", "entity", "iob", "bio"),
    *("id", "pos", "lemma", "chunk", "sentence", "misc"),
}
_MOST_VALUES = 500
"""Number of distinct values from which a column is not one of tags."""
_DENSE = 0.6
"""Share of tokens in mentions from which a column may be one of chunks."""
_NEARLY = 0.5
"""Share of tags from which a column is one of tags with faults, where no column has none."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a column file is laid out.

    columns: layer -> the number of its column. header: the line with the names of the columns.
    others: further columns with tags of mentions -> their types; none if all of their tags are O.
    commented: whether there are comments. detected: whether a column was detected.
    """

    separator: Separator
    width: int
    columns: Mapping[str, int]
    header: Line | None = None
    comments: str = ""
    others: Mapping[int, Sequence[str]] = field(default_factory=dict)
    first_character: bool = False
    task: Task = "mentions"
    detected: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the columns; empty without a header."""
        return fields_of(self.header[1], self.separator) if self.header else []

    def described(self) -> str:
        """Separator, header, comments and columns in a line; empty if nothing was detected but the separator."""
        if not (self.detected or self.header or self.comments):
            return ""
        parts = ["tab-separated" if self.separator == "tabs" else "space-separated"]
        if self.header:
            parts.append(f"header in line {self.header[0]}")
        if self.comments:
            parts.append(f"comments {self.comments}")
        parts.append(f"{self.width} column{'s' * (self.width > 1)}")
        parts += [f"{layer} {self._named(column)}" for layer, column in self.columns.items()]
        if self.first_character:
            parts.append("the first character of each word (first_character)")
        return ", ".join(parts)

    def described_others(self) -> str:
        """Further layers of tags in other columns, and the setting that reads them."""
        said = ""
        for column, types in self.others.items():
            said += f"; column {self._named(column)} "
            if types:
                shown = ", ".join(types[:4]) + ", ..." * (len(types) > 4)
                said += f"has tags, too ({shown}): data.columns.tag={column} takes them"
            else:
                said += "has no mentions"
        return said

    def _named(self, column: int) -> str:
        return f"{column} ({self.names[column]})" if self.header else str(column)


@dataclass(slots=True)
class Values:
    """The values of a column in the lines of tokens.

    distinct: None from `_MOST_VALUES` on. outside: how many are O. numbers: whether all are numbers. positioned:
    whether all end in a digit, and most start with a character of Chinese or Japanese, as in Weibo.
    """

    distinct: set[str] | None = field(default_factory=set)
    count: int = 0
    outside: int = 0
    numbers: bool = True
    digits: bool = True
    cjk: int = 0

    def add(self, values: Sequence[str]) -> None:
        self.count += len(values)
        if self.numbers:
            self.numbers = all(map(str.isdecimal, values))
        if self.digits:
            self.digits = all(len(it) > 1 and it[-1] in "0123456789" for it in values)
            self.cjk += sum(map(bool, map(CJK.match, values)))
        if self.distinct is not None:
            self.outside += values.count("O") + values.count("o")
            self.distinct.update(values)
            if len(self.distinct) >= _MOST_VALUES:
                self.distinct = None

    def merge(self, other: Values) -> None:
        known = self.distinct is not None and other.distinct is not None
        self.distinct = self.distinct | other.distinct if known else None  # type: ignore[operator]
        self.count += other.count
        self.outside += other.outside
        self.numbers &= other.numbers
        self.digits &= other.digits
        self.cjk += other.cjk

    @property
    def positioned(self) -> bool:
        return self.digits and 2 * self.cjk > self.count

    @property
    def style(self) -> TagStyle | None:
        """The style of the tags; None for a column of anything else."""
        tags = {labels(tag)[0] for tag in self.distinct or () if tag}
        return detect_style(tags) if tags else None

    @property
    def types(self) -> set[str]:
        """The types of mentions; empty for a column of anything else."""
        style = self.style
        tags = {labels(tag)[0] for tag in self.distinct or () if tag} - {"O", "o"}
        return {to_standard(tag, style)[2:] for tag in tags} if style else set()

    def has_tag(self, value: str) -> bool:
        """Whether a value may be a tag of this column. Any value may be, where no style explains the tags."""
        style, known = self.style, self.distinct or set()
        if style is None or not value or value in known:
            return True
        return style != BARE and Values({*known, value}).style == style

    @property
    def coverage(self) -> float:
        """Share of the tokens that are in mentions, if this is a column of tags."""
        return 1 - self.outside / self.count


class Survey:
    """A column file, of which all lines have been seen.

    blocks: its lines without those of `-DOCSTART-`. rest: those of a pipe that have not been read yet.
    comments: what comment lines start with, None, or "auto".
    """

    def __init__(
        self,
        path: PathOrFile,
        blocks: Iterable[Block],
        comments: str | None = AUTO,
        separator: Separator | None = None,
    ) -> None:
        self.path, self.comments = path, comments
        self.blocks: list[Block] = []
        self.rest: Iterator[Block] | None = None
        if is_pipe(path):
            self.rest = iter(blocks)
            for block in self.rest:
                self.blocks.append(block)
                if _without(block, ("#",)).text:
                    break
        else:
            self.blocks += blocks
        self._values: dict[bool, list[Values]] = {}
        self.separator, self.width = self._separator_and_width(separator)

    def _separator_and_width(self, given: Separator | None) -> tuple[Separator, int]:
        if not self.plain:
            return "spaces", 0
        widths = {it: _widths(self.plain, it) for it in ((given,) if given else ("tabs",))}
        if not given and {*widths["tabs"]} == {1}:
            widths = {"spaces": _widths(self.plain, "spaces")}
        elif not given and 1 in widths["tabs"]:
            widths["spaces"] = _widths(self.plain, "spaces")
        found = {it: max(counts, key=counts.__getitem__) for it, counts in widths.items()}
        best = max(found, key=lambda it: (found[it] > 1, widths[it][found[it]]))
        return best, found[best]

    @cached_property
    def plain(self) -> list[Block]:
        """The lines that can be no comments; if there is none, those that do not look like comments, or all."""
        stated = self.comments if self.comments not in (None, AUTO) else "#"
        for starts in ((stated,), _COMMENT, ()):
            if found := [it for block in self.blocks if (it := _without(block, starts)).text]:
                return found
        return []

    @property
    def first(self) -> Line:
        """The first line that can be no comment."""
        return self.plain[0].lines[0]

    def values(self, *, header: bool) -> list[Values]:
        """The values of each column. header: whether the first line has the names of the columns."""
        if header not in self._values:
            found = [Values() for _ in range(self.width)]
            first = Block.of(self.plain[0].lines[1:]) if header else self.plain[0]
            for block in (first, *self.plain[1:]):
                for values, column in zip(found, rows_of(block, self.separator, self.width), strict=False):
                    values.add(column)
            self._values[header] = found
        return self._values[header]

    def has_header(self, tag: int | None) -> bool:
        """Whether the first line has the names of the columns. tag: the column of the tags, None if not yet known."""
        heading = fields_of(self.first[1], self.separator) if self.width else []
        named = sum(not _HEADINGS.isdisjoint(_name_parts(field)) for field in heading)
        if not named or len(heading) != self.width or not (values := self.values(header=True))[0].count:
            return False
        tags = tag_columns(values) if tag is None else {tag: values[tag]}
        if styles := {column: it.style for column, it in tags.items() if it.style}:
            unlike = [column for column in styles if not values[column].has_tag(heading[column])]
            return bool(unlike) and (named > 1 or any(styles[it] not in (BARE, NO_TYPE) for it in unlike))
        others = zip(heading, values, strict=True)
        return named > 1 and all(it.distinct is None or name not in it.distinct for name, it in others)

    def split(self, block: Block, layout: Layout) -> tuple[Block, list[Line]]:
        """The lines of a block without the header and the comments, and the comments."""
        starts = _COMMENT if self.comments == AUTO else (self.comments,) if self.comments else ()
        header = layout.header[0] if layout.header else 0
        if not _has(block, starts) and not (header and header in block.numbers):
            return block, []
        tokens: list[Line] = []
        comments: list[Line] = []
        for line in block.lines:
            if line[0] == header:
                continue
            is_comment = line[1].startswith(starts) and (
                self.comments != AUTO or self._is_comment(line[1], layout, first=not tokens)
            )
            (comments if is_comment else tokens).append(line)
        return Block.of(tokens), comments

    def _is_comment(self, text: str, layout: Layout, *, first: bool) -> bool:
        """Whether a line that starts as a comment is one. first: whether no token of its sentence precedes it."""
        fields = fields_of(text, self.separator)
        if not first:
            return self.separator == "tabs" and len(fields) == 1 < self.width
        if len(fields) != self.width or self.rest or layout.task == "tags":
            return len(fields) != self.width
        values = self.values(header=layout.header is not None)
        tags = {layout.columns["tag"]: values[layout.columns["tag"]]} if "tag" in layout.columns else None
        return not all(it.has_tag(fields[column]) for column, it in (tags or tag_columns(values)).items())


def _has(block: Block, starts: tuple[str, ...]) -> bool:
    """Whether a line of the block has one of these starts, which have their first character in common."""
    text = block.text
    if not starts or starts[0][0] not in text:  # quick, and true of nearly all blocks
        return False
    return text.startswith(starts) or any(f"\n{start}" in text for start in starts)


def _without(block: Block, starts: tuple[str, ...]) -> Block:
    if not starts or not _has(block, starts):
        return block
    return Block.of([line for line in block.lines if not line[1].startswith(starts)])


def _name_parts(field: str) -> list[str]:
    return re.split("[^a-z]+", field.lower())


def _widths(blocks: Iterable[Block], separator: Separator) -> Counter[int]:
    """Number of lines with each number of fields. A block is taken for even if its first and last
    lines have the average number."""
    widths: Counter[int] = Counter()
    character = "\t" if separator == "tabs" else " "
    for block in blocks:
        text = block.text if separator == "tabs" else block.text.replace("\t", " ")
        first, last = text.partition("\n")[0], text.rpartition("\n")[2]
        even = first.count(character)
        if separator == "spaces" and ("  " in text or " " in (first[0], first[-1], last[0], last[-1])):
            even = -1
        if even == last.count(character) and even * len(block.numbers) == text.count(character):
            widths[even + 1] += len(block.numbers)
        else:
            widths.update(len(fields_of(line, separator)) for line in text.split("\n"))
    return widths


def fields_of(line: str, separator: Separator) -> list[str]:
    """Fields between single tabs, possibly empty; or between runs of spaces and tabs."""
    if separator == "tabs":
        return line.split("\t")
    return [field for field in line.replace("\t", " ").split(" ") if field]


def columns_of(block: Block, separator: Separator, width: int) -> list[tuple[str, ...]]:
    """The fields of the block's lines by column; empty unless every line has exactly `width` fields.

    All lines are split at once, with their ends as fields. If each end is in its place, every line has `width` fields.
    Blocks with more than one space between fields are split line by line.
    """
    text, character = block.text, "\t"
    if separator == "spaces":
        text, character = text.replace("\t", " "), " "
    fields = f"{text}\n".replace("\n", f"{character}\n{character}").split(character)[:-1]
    line_ends = fields[width :: width + 1]
    if line_ends == ["\n"] * len(block.numbers) and (separator == "tabs" or "" not in fields):
        return [tuple(fields[column :: width + 1]) for column in range(width)]
    rows = [fields_of(line, separator) for line in text.split("\n")]
    return list(zip(*rows, strict=True)) if {*map(len, rows)} == {width} else []


def rows_of(block: Block, separator: Separator, width: int) -> list[tuple[str, ...]]:
    """As `columns_of`, of the lines with `width` fields alone."""
    if not block.text or (found := columns_of(block, separator, width)):
        return found if block.text else []
    rows = [fields for _, text in block.lines if len(fields := fields_of(text, separator)) == width]
    return list(zip(*rows, strict=True))


def tag_columns(values: Sequence[Values]) -> dict[int, Values]:
    """The columns that have nothing but tags of mentions."""
    found = {column: it for column, it in enumerate(values) if it.count and it.style}
    for style in (BARE, NO_TYPE):  # they may be something else where another column has letters and types
        unsure = {column for column, it in found.items() if it.style == style}
        found = {
            column: it for column, it in found.items() if column not in unsure or len(unsure) == len(found)
        }
    return found


def decide(
    surveys: Sequence[Survey],
    columns: Columns,
    *,
    task: Task = "mentions",
    first_character: bool | Literal["auto"] = False,
) -> list[tuple[Survey, Layout]]:
    """The layout of each of a corpus's files. What is detected is the same for all files of one width.

    Raises ValueError for a column that a file does not have, or for which none is found.
    """
    tagged = task == "mentions" and columns.get("tag") == AUTO
    if task == "mentions" and AUTO in columns.values():
        surveys = [_split_at_spaces(it) for it in surveys]
    stated = [{name: _number(it, name, column) for name, column in columns.items()} for it in surveys]
    by_name = any(isinstance(it, str) and it != AUTO for it in columns.values())
    headers = [
        it.width > 0 and (by_name or it.has_header(numbers.get("tag")))
        for it, numbers in zip(surveys, stated, strict=True)
    ]
    detects = AUTO in (*columns.values(), first_character)
    found = []
    for survey, numbers, header in zip(surveys, stated, headers, strict=True):
        names = fields_of(survey.first[1], survey.separator) if header else []
        others: dict[int, list[str]] = {}
        positioned = first_character is True
        if detects and survey.width:
            alike = [(it, has) for it, has in zip(surveys, headers, strict=True) if it.width == survey.width]
            values = _merged([it.values(header=has) for it, has in alike])
            if tagged:
                numbers["tag"], others = _tag_column(alike, values)
            elif columns.get("tag") == AUTO:
                numbers["tag"] = survey.width - 1
            if columns["word"] == AUTO:
                numbers["word"] = _word_column(values, names, numbers.get("tag"))
            if first_character == AUTO:
                positioned = values[numbers["word"] or 0].positioned and not header
        layout = Layout(
            separator=survey.separator,
            width=survey.width,
            columns={name: number or 0 for name, number in numbers.items()},
            header=survey.first if header else None,
            others=others,
            first_character=positioned,
            task=task,
            detected=detects,
        )
        if survey.width:
            _check(survey, layout)
        found.append((survey, layout))
    return found


def _split_at_spaces(survey: Survey) -> Survey:
    """The file as it is, or split at spaces, too, if only then a column has tags."""
    if survey.separator == "spaces" or not survey.width or " " not in survey.first[1]:
        return survey
    if tag_columns(survey.values(header=False)) or survey.has_header(None):
        return survey
    other = Survey(survey.path, survey.blocks, survey.comments, "spaces")
    return other if other.width >= survey.width and tag_columns(other.values(header=False)) else survey


def _number(survey: Survey, layer: str, column: int | str) -> int | None:
    """The number of a column; None if it is to be detected. Raises ValueError for one that the file does not have."""
    if column == AUTO or not survey.width:
        return None
    if isinstance(column, int):
        if -survey.width <= column < survey.width:
            return column % survey.width
        rule = f"no column {column} for {layer} among {survey.width} columns"
        raise malformed(survey.path, survey.first, rule)
    names = fields_of(survey.first[1], survey.separator)
    if column not in names:
        rule = f"the first line, the header, has no column {column!r} for {layer}"
        raise malformed(survey.path, survey.first, rule)
    return names.index(column)


def _check(survey: Survey, layout: Layout) -> None:
    """Raise ValueError if the words and the tags are one column."""
    word, width = layout.columns["word"], layout.width
    if word == layout.columns.get("tag"):
        rule = f"word and tag are both column {word} of {width}"
        if width == 1:
            rule += " (columns are split at tabs and spaces)"
        raise malformed(survey.path, survey.first, rule)


def _merged(files: Sequence[Sequence[Values]]) -> list[Values]:
    found = [replace(it) for it in files[0]]
    for values in files[1:]:
        for it, other in zip(found, values, strict=True):
            it.merge(other)
    return found


def _tag_column(
    files: Sequence[tuple[Survey, bool]], values: Sequence[Values]
) -> tuple[int, dict[int, list[str]]]:
    """The column of the tags of files of one width, and the types in other columns of tags.

    Raises ValueError if there is none.
    """
    candidates = tag_columns(values) or _nearly(files)
    types = {column: it.types for column, it in candidates.items()}
    having = [column for column in candidates if types[column]]
    survey = files[0][0]
    if not candidates and survey.width > 1:
        rule = f"none of its {survey.width} columns has the tags of mentions (columns are split at "
        rule += "tabs" if survey.separator == "tabs" else "spaces and tabs"
        raise malformed(survey.path, survey.first, f"{rule}; data.columns.tag=NUMBER states one)")
    if not having:
        return max(candidates, default=0), {}
    dense = {
        column
        for column in having
        if candidates[column].coverage > _DENSE
        and any(
            candidates[it].coverage < candidates[column].coverage
            and _roots(types[it]).isdisjoint(_roots(types[column]))
            for it in having
        )
    }
    tag = max((it for it in having if it not in dense), key=lambda it: candidates[it].coverage)
    return tag, {column: sorted(types[column]) for column in candidates if column != tag}


def _roots(types: Iterable[str]) -> set[str]:
    """The types without their subtypes: `loc` of `loc.adm.town`."""
    return {re.split(r"[.:/_-]", it.lower())[0] for it in types}


def _nearly(files: Sequence[tuple[Survey, bool]]) -> dict[int, Values]:
    """The columns most of whose values are O, or tags with a letter and a type."""
    found = {}
    for column in range(files[0][0].width):
        counts: Counter[str] = Counter()
        for survey, header in files:
            for block in survey.plain:
                counts.update(chain(*rows_of(block, survey.separator, survey.width)[column : column + 1]))
            counts -= Counter(fields_of(survey.first[1], survey.separator)[column : column + 1] * header)
        for style in LETTERED:
            tags = {it for it in counts if it in ("O", "o") or follows(labels(it)[0], style)}
            total = sum(counts[it] for it in tags)
            if tags - {"O", "o"} and total >= _NEARLY * counts.total():
                found[column] = Values(tags, counts.total(), counts["O"])
    return found


def _word_column(values: Sequence[Values], names: Sequence[str], tag: int | None) -> int:
    """The column of the words: no tags, no numbers of tokens. Without `tag`, bare types are taken for words."""
    tags = tag_columns(values)
    free = [
        column
        for column in range(len(values))
        if column != tag and (column not in tags or (tag is None and tags[column].style == BARE))
    ]
    named = [it for it in free if names and not _WORD_HEADINGS.isdisjoint(_name_parts(names[it]))]
    others = [column for column in range(len(values)) if column != tag]
    return [*named, *(it for it in free if not values[it].numbers), *free, *others, 0][0]
