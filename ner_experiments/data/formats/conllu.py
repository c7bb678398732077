"""CoNLL-U, the format of Universal Dependencies, and CoNLL-U Plus: parts of speech, or mentions.

Mentions are tags of the words: in the column MISC (`NER=B-PER`, `name=B-PER`), or in a column of CoNLL-U Plus.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ner_experiments.data.formats.annotated import Annotated, Tagged, of_tokens
from ner_experiments.data.formats.columns import check_tags, hint_for, in_a_field
from ner_experiments.data.formats.format import Claim, Format
from ner_experiments.data.formats.layout import AUTO
from ner_experiments.data.formats.options import Options, TextOptions
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.sentence import Sentence, intern_all
from ner_experiments.data.tag_styles import LETTERED, detect_style, labels
from ner_experiments.data.text_files import UTF_8, Block, Line, PathOrFile, malformed, name_of, read_blocks
from ner_experiments.utils.text import truncated_repr

Tag = Literal["upos", "xpos"]
_POS: tuple[Tag, Tag] = ("upos", "xpos")
_CONLLU = ["ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"]
_KEY = "NER"
_USUAL = ("NER", "NE")
"""Names of layers whose tags may be without letters, or without types."""
_NONE = ("_", "*")
"""Values that stand for no tag."""
_MOST_VALUES = 500
"""Number of distinct values from which a layer does not have tags."""
_PLUS = ("# global.columns", "#global.columns")
_HEADER = re.compile(r"# *global\.columns *= *(.+)")
_RANGE = re.compile(r"[0-9]{1,9}-([0-9]{1,9})")
_NUMBER = re.compile(r"[0-9]{1,9}")
_RANGE_OR_EMPTY_NODE = re.compile(r"[0-9]+[-.][0-9]+")


# Rows


def _words(
    path: PathOrFile, block: Block, names: Sequence[str], remarks: Remarks, *, numbered: bool = False
) -> tuple[list[str], list[tuple[Line, list[str]]], tuple[str | None, ...]]:
    """Comments of a sentence; line and fields of each of its syntactic words; its gaps, see `Sentence`.

    Of a range 1-2 these are its words 1 and 2, not the range itself, and no empty nodes (8.1). Lines of another width
    and empty words are faults. numbered: whether words must be numbered 1, 2, 3 ...
    """
    where = {name: column for column, name in enumerate(names)}
    comments: list[str] = []
    words: list[tuple[Line, list[str]]] = []
    for line in block.lines:
        row = line[1].split("\t")
        if _is_comment(line[1], names):
            comments.append(line[1])
        elif len(row) == len(names):
            words.append((line, row))
        else:
            hint = f" ({hint})" if (hint := hint_for(line[1])) else ""
            remarks.fault(str(malformed(path, line, f"expected {len(names)} columns, got {len(row)}{hint}")))
    if words and "FORM" not in where:
        raise malformed(path, words[0][0], "there is no column FORM")
    spelled = [where.get(name) for name in ("ID", "FORM", "MISC")]
    spacing = gaps(["" if column is None else row[column] for column in spelled] for _, row in words)
    if "ID" in where:
        words = [it for it in words if not _RANGE_OR_EMPTY_NODE.fullmatch(it[1][where["ID"]])]
    for expected, (line, row) in enumerate(words if numbered else (), 1):
        if row[where["ID"]] != str(expected):
            raise malformed(path, line, f"expected word {expected}, got {truncated_repr(row[where['ID']])}")
    for line, row in words:
        if not row[where["FORM"]]:
            remarks.fault(str(malformed(path, line, "empty word")))
    words = [it for it in words if it[1][where["FORM"]]]
    return comments, words, spacing if len(spacing) == len(words) + 1 else ()


def _is_comment(text: str, names: Sequence[str]) -> bool:
    """Whether a line is a comment. Where the first of several columns is not ID, a token may start with #, too."""
    fields = text.count("\t") + 1
    return text.startswith("#") and (names[0] == "ID" or fields == 1 or fields != len(names))


def gaps(rows: Iterable[Sequence[str]]) -> tuple[str | None, ...]:
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


# Parts of speech


@dataclass(frozen=True, kw_only=True)
class PosOptions(Options):
    """tag: the column of the tags. The other one goes to `Sentence.columns` under its name."""

    tag: Tag = "xpos"


def read_pos(path: PathOrFile, options: PosOptions, remarks: Remarks) -> Iterator[Sentence]:
    """Sentences with parts of speech. If gold is "none", both columns go to `Sentence.columns`.

    Raises ValueError, with file and line, for anything but 10 tab-separated columns, words not numbered 1, 2, 3 ...,
    an empty word, a word without a tag (`_`), a tag with an invisible character, and bytes that are not UTF-8.
    """
    tag, (other,) = options.tag, {*_POS} - {options.tag}
    where = {name: _CONLLU.index(name.upper()) for name in _POS}
    for block in read_blocks(path):
        _, found, spacing = _words(path, block, _CONLLU, Remarks(), numbered=True)
        if not found:
            continue
        lines, rows = zip(*found, strict=True)
        words = intern_all(row[1] for row in rows)
        layers: dict[str, tuple[str, ...]] = {
            name: intern_all(row[column] for row in rows) for name, column in where.items()
        }
        if options.gold == "none":
            yield Sentence(words, ("O",) * len(words), layers, line=lines[0][0])
            continue
        for line, own, another in zip(lines, layers[tag], layers[other], strict=True):
            if own in ("", "_"):
                hint = f" (data.tag={other} reads the other column)" * (another not in ("", "_"))
                raise malformed(path, line, f"word without {tag}{hint}")
        check_tags(layers[tag], path, lines)
        yield Sentence(words, layers[tag], {other: layers[other]}, line=lines[0][0], gaps=spacing)


# Mentions


def read(path: Path, options: TextOptions, remarks: Remarks) -> Iterator[Tagged]:
    """Sentences of syntactic words. Comments such as `sent_id` go to `Annotated.keys`.

    The tag is in the column of the header, or else in the key of MISC, that `options.columns["tag"]` names; "auto"
    finds it (`tag_layers`). A word without a tag is O. Lines of another width and empty words are faults, see
    `Remarks.fault`. Raises ValueError, unless gold is "none", for a file in which no word has a tag.
    """
    names = _CONLLU
    key = options.columns.get("tag", AUTO)
    if key == AUTO:
        key, *others = tag_layers(path) or [_KEY]
        further = f"; {others[0]} has tags, too: data.columns.tag={others[0]} takes them" if others else ""
        if options.gold != "none":
            remarks.read_as(path.name, f"CoNLL-U, tag {key}", further)
    tagged, first = False, None
    for block in read_blocks(path):
        names = _names(block, names)
        comments, words, spacing = _words(path, block, names, remarks)
        if not words:
            continue
        lines, rows = zip(*words, strict=True)
        first = first or lines[0]
        form, misc = (names.index(name) if name in names else None for name in ("FORM", "MISC"))
        if key in names:
            found: list[str | None] = [row[names.index(key)] for row in rows]
        else:
            items = ([] if misc is None else map(_pair, row[misc].split("|")) for row in rows)
            found = [next((value for name, value in it if name == key), None) for it in items]
        tagged |= any(tag is not None for tag in found)
        tags = ["O" if tag is None or tag in _NONE else tag for tag in found]
        pairs = (line[1:].partition("=") for line in comments)
        keys = {name.strip(): value.strip() for name, joint, value in pairs if joint}
        keys.pop("global.columns", None)
        at = [f"{name_of(path)}:{number}" for number, _ in lines]
        forms = [row[form or 0] for row in rows]
        yield of_tokens(forms, tags, at, line=lines[0][0], keys=keys, gaps=spacing)
    if first is not None and not tagged and options.gold != "none":
        rule = f"no word has a tag: neither a column {key} nor {key}= in MISC"
        raise malformed(path, first, f"{rule} (data.columns.tag=NAME states another)")


def tag_layers(path: PathOrFile, encoding: str = UTF_8) -> list[str]:
    """The names of the columns and the keys of MISC that have the tags of mentions, the one to be read first.

    These are NER and NE whatever the style of their tags, then others whose tags all have letters and types, with the
    most frequent ones first.
    """
    found = {}
    for name, tags in _layers(path, encoding).items():
        style = detect_style({"O", *(labels(tag)[0] for tag in tags)}) if tags else None
        usual = name.rpartition(":")[2].upper() in _USUAL
        if style in LETTERED or (usual and style):
            found[name] = (usual, sum(tag not in ("O", "o") for tag in tags.elements()))
    return sorted(found, key=found.__getitem__, reverse=True)


def _layers(path: PathOrFile, encoding: str) -> dict[str, Counter[str]]:
    """The values of each key of MISC and of each column of the header that CoNLL-U does not have, with their counts."""
    names = _CONLLU
    found: dict[str, Counter[str]] = {}
    for block in read_blocks(path, encoding):
        names = _names(block, names)
        own = [column for column, name in enumerate(names) if name not in _CONLLU]
        misc = names.index("MISC") if "MISC" in names else len(names)
        for _, text in block.lines:
            row = text.split("\t")
            if len(row) != len(names) or _is_comment(text, names):
                continue
            pairs = [(names[column], row[column]) for column in own]
            if misc < len(row) and "=" in row[misc]:
                pairs += map(_pair, row[misc].split("|"))
            for name, value in pairs:
                tags = found.setdefault(name, Counter())
                if value and value not in _NONE and len(tags) < _MOST_VALUES:
                    tags[value] += 1
    return {name: tags for name, tags in found.items() if len(tags) < _MOST_VALUES}


def _names(block: Block, before: list[str]) -> list[str]:
    """The names of the columns, by the block's own header or the one before it."""
    if "global.columns" not in block.text:
        return before
    header = next(filter(None, (_HEADER.fullmatch(text) for _, text in block.lines)), None)
    return header[1].split() if header else before


def _pair(item: str) -> tuple[str, str]:
    """Key and value of an item of MISC."""
    key, _, value = item.partition("=")
    return key, value


def chosen(path: Path, first: str, encoding: str) -> tuple[str, str]:
    """Parts of speech are read where nothing has the tags of mentions, and no header names columns."""
    if first.startswith(_PLUS) or tag_layers(path, encoding):
        return "conllu_ner", "its name and lines"
    why = "no column and no key of MISC has the tags of mentions"
    if any(tag.startswith("(") for tag in _layers(path, encoding).get("Entity", ())):
        why += "; the key Entity has brackets of coreference, which are not read"
    return "conllu", f"its name and lines: parts of speech, as {why}"


def claims(first: str) -> Claim:
    return "claimed" if first.startswith(_PLUS) else ""


def lines(sentences: Iterable[Annotated]) -> Iterator[str]:
    """CoNLL-U with the tag in MISC. Keys whose values are strings or integers become comments.

    Raises ValueError for nested mentions, and for a word with a tab or a line end.
    """
    for sentence in sentences:
        for key, value in sentence.keys.items():
            if isinstance(value, str | int) and "\n" not in f"{key}{value}":
                yield f"# {key} = {value}\n"
        for number, (word, tag) in enumerate(zip(sentence.words, sentence.tags(), strict=True), 1):
            fields = (str(number), in_a_field(word, sentence, "CoNLL-U"), *"_" * 7, f"{_KEY}={tag}")
            yield "\t".join(fields) + "\n"
        yield "\n"


FORMATS = {
    "conllu": Format(
        about="CoNLL-U, parts of speech",
        config="conllu",
        read=read_pos,
        options=PosOptions,
        streams=True,
        encodings=False,
    ),
    "conllu_ner": Format(
        about="CoNLL-U with tags of mentions in MISC, or in a column of CoNLL-U Plus",
        config="conllu_ner",
        read=read,
        lines=lines,
        suffixes=(".conllu", ".conllup"),
        claims=claims,
        chosen=chosen,
        encodings=False,
    ),
}
