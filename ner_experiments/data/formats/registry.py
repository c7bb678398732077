"""The formats of annotated text by name. A new format takes a file beside this one and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ner_experiments.data.formats import brat, conll, conllu_ner, csv_table, docbin, hf, jsonl
from ner_experiments.data.formats.annotated import Annotated, Options
from ner_experiments.data.remarks import Remarks

Read = Callable[[Path, Options, Remarks], Iterator[Annotated]]
Write = Callable[[Iterable[Annotated], Path], None]


def one_file(path: Path) -> list[Path]:
    return [path] if path.is_file() else []


def nothing_beside(path: Path) -> list[Path]:
    return []


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format: its reader and writer, and what commands need to know about it.

    about: one line for --help. config: the file of conf/data that reads it.
    read: None for column files, and for formats that the reader of `config` reads.
    suffixes: suffixes of file names by which it is recognized.
    nested: whether it can hold nested mentions. has_tokens: whether it states what the tokens are.
    package: the Python package that it needs, if any.
    files, beside: the files that a path names, and the files that are read together with one of these.
    """

    about: str
    config: str
    write: Write
    read: Read | None = None
    suffixes: tuple[str, ...] = ()
    nested: bool = False
    has_tokens: bool = True
    package: str = ""
    files: Callable[[Path], list[Path]] = one_file
    beside: Callable[[Path], list[Path]] = nothing_beside


FORMATS: dict[str, Format] = {
    "conll": Format(
        about="columns, one token per line",
        config="conll",
        write=conll.write,
        suffixes=(".conll", ".tsv", ".txt", ".bio", ".iob", ".iob2", ".bioes"),
    ),
    "jsonl": Format(
        about="JSON lines of tokens and tags",
        config="jsonl",
        read=jsonl.read,
        write=jsonl.write,
        suffixes=(".jsonl", ".json", ".ndjson"),
        nested=True,
    ),
    "jsonl_text": Format(
        about="JSON lines of texts and [start, end, type]",
        config="jsonl",
        write=jsonl.write_text,
        nested=True,
        has_tokens=False,
    ),
    "doccano": Format(
        about="Doccano's JSON lines", config="jsonl", write=jsonl.write_doccano, nested=True, has_tokens=False
    ),
    "prodigy": Format(about="Prodigy's JSON lines", config="jsonl", write=jsonl.write_prodigy, nested=True),
    "brat": Format(
        about="a folder of BRAT's .txt and .ann",
        config="brat",
        read=brat.read,
        write=brat.write,
        nested=True,
        has_tokens=False,
        files=brat.files,
        beside=brat.beside,
    ),
    "csv": Format(
        about="a row per token, as Kaggle's",
        config="csv",
        read=csv_table.read,
        write=csv_table.write,
        suffixes=(".csv",),
    ),
    "conllu_ner": Format(
        about="CoNLL-U with tags of mentions in MISC, or in a column of CoNLL-U Plus",
        config="conllu_ner",
        read=conllu_ner.read,
        write=conllu_ner.write,
        suffixes=(".conllu", ".conllup"),
    ),
    "docbin": Format(
        about="spaCy's DocBin",
        config="docbin",
        read=docbin.read,
        write=docbin.write,
        suffixes=(".spacy",),
        nested=True,
        package="spacy",
    ),
    "hf": Format(
        about="Parquet or Arrow, by Hugging Face datasets",
        config="hf",
        read=hf.read,
        write=hf.write,
        suffixes=hf.SUFFIXES,
        package="datasets",
        files=hf.files,
    ),
}

READABLE = {**{name: it.about for name, it in FORMATS.items()}, "conllu": "CoNLL-U, parts of speech"}
"""Formats of files that commands read, each with one line about it."""


def config_of(name: str) -> str:
    """The file of conf/data that reads a format of `READABLE`."""
    return FORMATS[name].config if name in FORMATS else name


def require(name: str) -> None:
    """Raise ValueError if the package that a format needs is not installed."""
    package = FORMATS[name].package
    if package and find_spec(package) is None:
        raise ValueError(f"the format {name} needs the package {package}: pip install {package}")


def format_of(path: Path) -> str:
    """The format that a path's suffix stands for; brat for a folder without Parquet or Arrow files.

    Raises ValueError for an unknown suffix.
    """
    if path.is_dir() and hf.files(path):
        return "hf"
    if path.is_dir() or (not path.suffix and not path.exists()):
        return "brat"
    name = path.with_suffix("") if path.suffix == ".gz" else path
    for key, it in FORMATS.items():
        if name.suffix.lower() in it.suffixes:
            return key
    known = ", ".join(suffix for it in FORMATS.values() for suffix in it.suffixes)
    raise ValueError(f"{path}: its format is not known by its name (known: {known}); state it")
