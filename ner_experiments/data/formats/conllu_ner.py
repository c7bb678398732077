"""CoNLL-U with a tag per word in its MISC column (`NER=B-PER`), and CoNLL-U Plus with a column for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ner_experiments.data.conllu import RANGE_OR_EMPTY_NODE, gaps
from ner_experiments.data.formats.annotated import Annotated, Options, Tagged, of_tags
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.text_files import malformed, name_of, read_blocks
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.text import truncated_repr

_HEADER = re.compile(r"# *global\.columns *= *(.+)")
_CONLLU = ["ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"]
_KEY = "NER"


def read(path: Path, options: Options, remarks: Remarks) -> Iterator[Annotated]:
    """Sentences of syntactic words. Comments such as `sent_id` go to `Annotated.keys`.

    The tag is in the column NER of the header (or `options.columns["tag"]`), else the value of that key in MISC. A
    word without a tag is O. Raises ValueError, with file and line, for rows of another width, an empty word, and,
    unless `options.all_texts`, a file in which no word has the key.
    """
    return of_tags(_tagged(path, options), options, remarks)


def _tagged(path: Path, options: Options) -> Iterator[Tagged]:
    names = _CONLLU
    key = options.columns.get("tag", _KEY)
    tagged, first = 0, None
    for block in read_blocks(path):
        if header := next(filter(None, (_HEADER.fullmatch(text) for _, text in block.lines)), None):
            names = header[1].split()
        comments, words, tags, at, rows = [], [], [], [], []
        for line in block.lines:
            if _is_comment(line[1], names):
                comments.append(line[1])
                continue
            first = first or line
            row = line[1].split("\t")
            if len(row) != len(names):
                raise malformed(path, line, f"expected {len(names)} columns, got {len(row)}")
            of = dict(zip(names, row, strict=True))
            rows.append((of.get("ID", ""), of.get("FORM", ""), of.get("MISC", "")))
            if RANGE_OR_EMPTY_NODE.fullmatch(of.get("ID", "")):
                continue
            if not of.get("FORM"):
                raise malformed(path, line, "empty word" if "FORM" in of else "there is no column FORM")
            tag = of[key] if key in of else _in_misc(of.get("MISC", "_"), key)
            tagged += tag is not None
            words.append(of["FORM"])
            tags.append("O" if tag in (None, "_", "*") else str(tag))
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
        rule = f"no word has a tag: neither a column {key} nor {key}= in MISC (columns: {{tag: NAME}})"
        raise malformed(path, first, rule)


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
