"""CoNLL-U with a tag per word in its MISC column (`NER=B-PER`, `name=B-PER`), and CoNLL-U Plus with a column for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ner_experiments.data.conllu import RANGE_OR_EMPTY_NODE, gaps
from ner_experiments.data.formats.annotated import Annotated, Options, Tagged, of_tags
from ner_experiments.data.layout import AUTO
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.tag_styles import LETTERED, detect_style, labels
from ner_experiments.data.text_files import UTF_8, Block, PathOrFile, malformed, name_of, read_blocks
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.text import truncated_repr

_HEADER = re.compile(r"# *global\.columns *= *(.+)")
_CONLLU = ["ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"]
_KEY = "NER"
_USUAL = ("NER", "NE")
"""Names of layers whose tags may be without letters, or without types."""
_NONE = ("_", "*")
"""Values that stand for no tag."""
_MOST_VALUES = 500
"""Number of distinct values from which a layer does not have tags."""


def read(path: Path, options: Options, remarks: Remarks) -> Iterator[Annotated]:
    """Sentences of syntactic words. Comments such as `sent_id` go to `Annotated.keys`.

    The tag is in the column of the header, or else in the key of MISC, that `options.columns["tag"]` names; "auto"
    finds it (`tag_layers`). A word without a tag is O. Rows of another width and empty words are faults,
    see `Remarks.fault`. Raises ValueError, unless `options.all_texts`, for a file in which no word has a tag.
    """
    return of_tags(_tagged(path, options, remarks), options, remarks)


def tag_layers(path: PathOrFile, encoding: str = UTF_8) -> list[str]:
    """The names of the columns and the keys of MISC that have the tags of mentions, the one to be read first.

    These are NER and NE whatever the style of their tags, then others whose tags all have letters and types, with the
    most frequent ones first.
    """
    layers = _layers(read_blocks(path, encoding))
    found = {}
    for name, tags in layers.items():
        style = detect_style({"O", *(labels(tag)[0] for tag in tags)}) if tags else None
        usual = name.rpartition(":")[2].upper() in _USUAL
        if style in LETTERED or (usual and style):
            found[name] = (usual, sum(tag not in ("O", "o") for tag in tags.elements()))
    return sorted(found, key=found.__getitem__, reverse=True)


def has_brackets(path: PathOrFile, encoding: str = UTF_8) -> bool:
    """Whether the key Entity has mentions in the brackets of coreference, such as `(person-1`, which are not read."""
    return any(tag.startswith("(") for tag in _layers(read_blocks(path, encoding)).get("Entity", ()))


def _layers(blocks: Iterable[Block]) -> dict[str, Counter[str]]:
    """The values of each key of MISC and of each column of the header that CoNLL-U does not have, with their counts."""
    names = _CONLLU
    found: dict[str, Counter[str]] = {}
    for block in blocks:
        names = _names(block, names)
        own = [column for column, name in enumerate(names) if name not in _CONLLU]
        misc = names.index("MISC") if "MISC" in names else len(names)
        for _, text in block.lines:
            row = text.split("\t")
            if len(row) != len(names) or _is_comment(text, names):
                continue
            pairs = [(names[column], row[column]) for column in own]
            if misc < len(row) and "=" in row[misc]:
                pairs += [(key, value) for key, _, value in map(_pair, row[misc].split("|"))]
            for name, value in pairs:
                tags = found.setdefault(name, Counter())
                if value and value not in _NONE and len(tags) < _MOST_VALUES:
                    tags[value] += 1
    return {name: tags for name, tags in found.items() if len(tags) < _MOST_VALUES}


def _pair(item: str) -> tuple[str, str, str]:
    return item.partition("=")


def _names(block: Block, before: list[str]) -> list[str]:
    """The names of the columns, by the block's own header or the one before it."""
    if "global.columns" not in block.text:
        return before
    header = next(filter(None, (_HEADER.fullmatch(text) for _, text in block.lines)), None)
    return header[1].split() if header else before


def _tagged(path: Path, options: Options, remarks: Remarks) -> Iterator[Tagged]:
    names = _CONLLU
    key = options.columns.get("tag", AUTO)
    if key == AUTO:
        key, *others = tag_layers(path) or [_KEY]
        further = f"; {others[0]} has tags, too: data.columns.tag={others[0]} takes them" if others else ""
        remarks.read_as(path.name, f"CoNLL-U, tag {key}", further)
    tagged, first = 0, None
    for block in read_blocks(path):
        names = _names(block, names)
        comments, words, tags, at, rows = [], [], [], [], []
        for line in block.lines:
            if _is_comment(line[1], names):
                comments.append(line[1])
                continue
            first = first or line
            row = line[1].split("\t")
            if len(row) != len(names):
                remarks.fault(str(malformed(path, line, f"expected {len(names)} columns, got {len(row)}")))
                continue
            of = dict(zip(names, row, strict=True))
            rows.append((of.get("ID", ""), of.get("FORM", ""), of.get("MISC", "")))
            if RANGE_OR_EMPTY_NODE.fullmatch(of.get("ID", "")):
                continue
            if not of.get("FORM"):
                remarks.fault(
                    str(malformed(path, line, "empty word" if "FORM" in of else "there is no column FORM"))
                )
                continue
            tag = of[key] if key in of else _in_misc(of.get("MISC", "_"), key)
            tagged += tag is not None
            words.append(of["FORM"])
            tags.append("O" if tag is None or tag in _NONE else tag)
            at.append(f"{name_of(path)}:{line[0]}")
        if words:
            pairs = (line[1:].partition("=") for line in comments)
            keys = {name.strip(): value.strip() for name, joint, value in pairs if joint}
            keys.pop("global.columns", None)
            spacing = gaps(rows)
            about = {
                "place": at[0],
                "line": int(at[0].rsplit(":", 1)[1]),
                "keys": keys,
                "gaps": spacing if len(spacing) == len(words) + 1 else (),
            }
            yield Tagged(words=words, tags=tags, at=at, about=about)
    if first is not None and not tagged and not options.all_texts:
        rule = f"no word has a tag: neither a column {key} nor {key}= in MISC"
        raise malformed(path, first, f"{rule} (data.columns.tag=NAME states another)")


def _is_comment(text: str, names: Sequence[str]) -> bool:
    """Whether a line is a comment. Where the first of several columns is not ID, a token may start with #, too."""
    fields = text.count("\t") + 1
    return text.startswith("#") and (names[0] == "ID" or fields == 1 or fields != len(names))


def _in_misc(misc: str, key: str) -> str | None:
    items = (item.partition("=") for item in misc.split("|"))
    return next((value for name, _, value in items if name == key), None)


def write(sentences: Iterable[Annotated], path: Path) -> None:
    """Write CoNLL-U with the tag in MISC. Keys whose values are strings or integers become comments.

    Raises ValueError for nested mentions, and for a word with a tab or a line end.
    """
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in sentences:
            for key, value in sentence.keys.items():
                if isinstance(value, str | int) and "\n" not in f"{key}{value}":
                    file.write(f"# {key} = {value}\n")
            for number, (word, tag) in enumerate(zip(sentence.words, sentence.tags(), strict=True), 1):
                if "\t" in word or "\n" in word or "\r" in word:
                    raise ValueError(f"{sentence.place}: CoNLL-U cannot hold the word {truncated_repr(word)}")
                file.write("\t".join((str(number), word, *"_" * 7, f"{_KEY}={tag}")) + "\n")
            file.write("\n")
