"""CoNLL-U, the format of Universal Dependencies, read for its part-of-speech tags."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import Literal

from ner_experiments.data.columns import check_tags, check_width, check_words
from ner_experiments.data.sentence import Sentence, intern_all
from ner_experiments.data.text_files import Line, PathOrFile, malformed, read_blocks
from ner_experiments.utils.text import truncated_repr

_NUM_COLUMNS = 10
_ID, _FORM, _MISC = 0, 1, 9
_TAGS = {"upos": 3, "xpos": 4}
Tag = Literal["upos", "xpos"]
_RANGE = re.compile(r"[0-9]{1,9}-([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]{1,9}")
RANGE_OR_EMPTY_NODE = re.compile(r"[0-9]+[-.][0-9]+")


def read_conllu(path: PathOrFile, *, tag: Tag = "xpos") -> Iterator[Sentence]:
    """Sentences of syntactic words: of a range 1-2 its words 1 and 2, not the range itself; no empty nodes (8.1).

    The word is the column FORM. The tag column that was not chosen goes to `Sentence.columns` under its name. Raises
    ValueError, with file and line, for anything but 10 tab-separated columns, words not numbered 1, 2, 3 ...,
    an empty word, a word without a tag (`_`), a tag that `check_tags` refuses, and bytes that are not UTF-8.
    """
    (other,) = _TAGS.keys() - {tag}
    for block in read_blocks(path):
        lines, rows = _words(path, block.lines)
        if not rows:
            continue
        fields = (line.split("\t") for _, line in block.lines if not line.startswith("#"))
        spacing = gaps((row[_ID], row[_FORM], row[_MISC]) for row in fields)
        for line, row in zip(lines, rows, strict=True):
            if row[_TAGS[tag]] in ("", "_"):
                hint = f" (data.tag={other} reads the other column)" * (row[_TAGS[other]] not in ("", "_"))
                raise malformed(path, line, f"word without {tag}{hint}")
        words, tags, others = (
            intern_all(row[column] for row in rows) for column in (_FORM, _TAGS[tag], _TAGS[other])
        )
        check_tags(tags, path, lines)
        yield Sentence(words, tags, {other: others}, line=lines[0][0], gaps=spacing)


def read_untagged_conllu(path: PathOrFile) -> Iterator[Sentence]:
    """Read as `read_conllu` does, but with O for every tag and both tag columns in `Sentence.columns`."""
    for block in read_blocks(path):
        lines, rows = _words(path, block.lines)
        words = tuple(row[_FORM] for row in rows)
        if words:
            columns = {name: tuple(row[column] for row in rows) for name, column in _TAGS.items()}
            yield Sentence(words, ("O",) * len(words), columns, line=lines[0][0])


def gaps(rows: Iterable[tuple[str, str, str]]) -> tuple[str | None, ...]:
    """The gaps (see `Sentence`) of the syntactic words of a sentence, from ID, FORM and MISC of all its lines.

    The text has the form of a range 1-2 instead of the words 1 and 2, unless these spell it. Empty for a range that
    does not end.
    """
    found: list[str | None] = []
    words: list[str] = []  # of a range
    before = whole = after = ""
    last = 0
    for number, form, misc in rows:
        space = "" if "SpaceAfter=No" in misc.split("|") else " "
        if ends := _RANGE.fullmatch(number):
            last, whole, after = int(ends[1]), form, space
        elif not _NUMBER.fullmatch(number):
            continue
        elif int(number) > last:
            found.append(before)
            before = space
        else:
            words.append(form)
            if int(number) == last:
                spelled = "".join(words) == whole
                found += [before, *[""] * (len(words) - 1)] if spelled else [None] * len(words)
                before = after if spelled else before + whole + after
                words = []
    return () if words else (*(it and sys.intern(it) for it in found), before)


def _words(path: PathOrFile, block: list[Line]) -> tuple[list[Line], list[list[str]]]:
    """The lines of a sentence's syntactic words, and their fields."""
    lines = [(number, line) for number, line in block if not line.startswith("#")]
    rows = [line.split("\t") for _, line in lines]
    check_width(rows, _NUM_COLUMNS, path, lines)
    words = [i for i, row in enumerate(rows) if not RANGE_OR_EMPTY_NODE.fullmatch(row[_ID])]
    for expected, i in enumerate(words, 1):
        if rows[i][_ID] != str(expected):
            raise malformed(path, lines[i], f"expected word {expected}, got {truncated_repr(rows[i][_ID])}")
    lines, rows = [lines[i] for i in words], [rows[i] for i in words]
    check_words([row[_FORM] for row in rows], path, lines)
    return lines, rows
