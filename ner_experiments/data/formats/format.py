"""The definition of a format: an entry of `FORMATS` in a file of this folder, where `registry` finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ner_experiments.data.formats.annotated import Annotated
from ner_experiments.data.formats.options import Options, TextOptions
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.sentence import Sentence

Read = Callable[[Any, Any, Remarks], Iterator[Sentence | Annotated]]
"""Sentences of a path, or of an open file, by options of the format's class: with the tags of the file, in any scheme
and style, or with mentions. Adds to the remarks what was skipped or filled in, and faults."""
Lines = Callable[[Iterable[Annotated]], Iterator[str]]
Write = Callable[[Iterable[Annotated], Path], None]
Claim = Literal["claimed", "refused", ""]
"""Whether a file has a format, by its first line: yes, no, or undecided."""


def one_file(path: Path) -> list[Path]:
    return [path] if path.is_file() else []


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format: its reader and writer, and what commands need to know about it.

    about: one line for --help. config: the file of conf/data with its settings.
    read: None for variants that the reader of `config` takes.
    lines: the lines of a text file with sentences, or what else is written of each. write: the writer of a format that
        is no text file. Both are None for formats that are only read.
    options: the class of its options; those of `AnnotatedFiles` are `TextOptions`.
    suffixes: suffixes of file names by which it is recognized. claims: what the first line of a file tells.
    chosen: the format that reads a file of that name and first line, and what tells it, where its other lines decide.
    nested: whether it can hold nested mentions. has_tokens: whether it states what the tokens are.
    package: the Python package that it needs, if any. streams: whether it is read from an open file as well.
    encodings: whether its text may have another encoding than UTF-8.
    files, beside: the files that a path names, and the files that are read together with one of these.
    """

    about: str
    config: str = "jsonl"
    read: Read | None = None
    lines: Lines | None = None
    write: Write | None = None
    options: type[Options] = TextOptions
    suffixes: tuple[str, ...] = ()
    claims: Callable[[str], Claim] = lambda first: ""
    chosen: Callable[[Path, str, str], tuple[str, str]] | None = None
    nested: bool = False
    has_tokens: bool = True
    package: str = ""
    streams: bool = False
    encodings: bool = True
    files: Callable[[Path], list[Path]] = one_file
    beside: Callable[[Path], list[Path]] = lambda path: []
