"""CSV with a row per token and a column that numbers the sentences, as in Kaggle's NER corpus."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ner_experiments.data.formats.annotated import FILE, Annotated, Tagged, of_tokens
from ner_experiments.data.formats.format import Claim, Format
from ner_experiments.data.formats.options import TextOptions
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.text_files import name_of, read_text
from ner_experiments.utils.text import truncated_repr

NAMES = {
    "sentence": ("Sentence #", "sentence", "sentence_id", "Sentence", "sent_id"),
    "word": ("Word", "word", "token", "Token", "words", "tokens"),
    "tag": ("Tag", "tag", "ner_tag", "label", "labels", "ner"),
}
"""The usual names of each column. For a file with other names, `Options.columns` gives them."""
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}


def read(path: Path, options: TextOptions, remarks: Remarks) -> Iterator[Tagged]:
    """Sentences of a file. A sentence starts where its column is neither empty nor equal to the last value.

    Raises ValueError, with file and line, for a missing column. A row of another width, and one with an empty word or
    tag, are faults, see `Remarks.fault`.
    """
    text = (line for _, line in read_text(path, options.encoding))
    first = next(text, "")
    delimiter, _ = _split(first)
    rows = csv.reader(chain([first], text), delimiter=delimiter, strict=True)
    header = _next(rows, path) or []
    if delimiter != ",":
        remarks.read_as(name_of(path), f"{DELIMITERS[delimiter]}-separated")
    columns = _columns(path, header, options)
    words: list[str] = []
    tags: list[str] = []
    at: list[str] = []
    now, line = "", 0
    before: set[str] = set()
    while (row := _next(rows, path)) is not None:
        place = f"{name_of(path)}:{rows.line_num}"
        if not any(row):
            now = ""
            continue
        if len(row) != len(header):
            remarks.fault(f"{place}: expected {len(header)} columns, got {len(row)}: {truncated_repr(row)}")
            continue
        sentence, word, tag = ("O" if column is None else row[column] for column in columns)
        if not word or not tag:
            rule = "empty tag (outside of mentions, write O)" if word else "empty word"
            remarks.fault(f"{place}: {rule}: {truncated_repr(row)}")
            continue
        if (sentence and sentence != now) or not line:
            if words:
                yield of_tokens(words, tags, at, line=line)
            words, tags, at, now, line = [], [], [], sentence, rows.line_num
            if sentence and sentence in before:
                remarks.add(
                    "sentences that reuse the number of an earlier one, read as new sentences",
                    place,
                    sentence,
                )
            before.add(sentence)
        words.append(word)
        tags.append(tag)
        at.append(place)
    if words:
        yield of_tokens(words, tags, at, line=line)


def _split(header: str) -> tuple[str, list[str]]:
    """The delimiter at which a header has most names, and these."""
    start = header[: csv.field_size_limit()]  # of a line that is no header, such as a long one of JSON
    names = {it: next(csv.reader([start], delimiter=it), []) for it in DELIMITERS}
    return max(names.items(), key=lambda it: len(it[1]))


def _next(rows: Iterator[list[str]], path: Path) -> list[str] | None:
    try:
        return next(rows, None)
    except csv.Error as error:
        raise ValueError(f"{name_of(path)}:{rows.line_num}: not CSV ({error})") from None  # type: ignore[attr-defined]


def _columns(path: Path, header: Sequence[str], options: TextOptions) -> list[int | None]:
    """The numbers of the columns of `NAMES`; None for the tags where a text without them may be read.

    Raises ValueError with all that are missing.
    """
    names = {
        name: [options.columns[name]] if name in options.columns else usual for name, usual in NAMES.items()
    }
    found = {name: next(filter(header.__contains__, usual), None) for name, usual in names.items()}
    optional = ["tag"] if options.gold == "none" else []
    if missing := [name for name, column in found.items() if column is None and name not in optional]:
        stated = {name: options.columns[name] for name in NAMES if name in options.columns and found[name]}
        settings = ", ".join(
            f"{name}: {stated.get(name, 'NAME')}" for name in NAMES if name in {*missing, *stated}
        )
        hint = f"'data.columns={{{settings}}}' states names; columns that are split at tabs or spaces: --format conll"
        rule = " and no column ".join(" or ".join(names[name]) for name in missing)
        raise ValueError(f"{name_of(path)}:1: no column {rule} ({hint}): {truncated_repr(header)}")
    return [None if column is None else header.index(column) for column in found.values()]


def lines(sentences: Iterable[Annotated]) -> Iterator[str]:
    """A row per token: the number of its sentence, the word, its IOB2 tag, and, of several files, its file."""
    rest = iter(sentences)
    first = list(islice(rest, 1))
    named = [FILE] if any(FILE in it.keys for it in first) else []
    row: Any = csv.writer(SimpleNamespace(write=str), lineterminator="\n").writerow  # returns what it writes
    yield row(("sentence", "word", "tag", *named))
    for number, it in enumerate(chain(first, rest), 1):
        files = [it.keys.get(name, "") for name in named]
        for pair in zip(it.words, it.tags(), strict=True):
            yield row((number, *pair, *files))


def claims(first: str) -> Claim:
    delimiter, header = _split(first)
    if all({*header} & {*names} for names in NAMES.values()):
        return "" if delimiter == "\t" else "claimed"  # columns may have such a header, too
    return "refused" if delimiter == "\t" else ""


FORMATS = {
    "csv": Format(
        about="a row per token, as Kaggle's",
        config="csv",
        read=read,
        lines=lines,
        suffixes=(".csv",),
        claims=claims,
    )
}
