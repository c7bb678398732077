"""Arguments that say how files of predictions are read, for all commands that take such files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ner_experiments.data.formats.columns import parse_columns
from ner_experiments.data.text_files import codec_of
from ner_experiments.utils.arguments import argument

if TYPE_CHECKING:
    from ner_experiments.comparison.reading import Columns
    from ner_experiments.comparison.systems import Compared


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the gold file and how files are read."""
    text = "gold mentions; without it, files of predictions have them in the column before the last, as conlleval's"
    parser.add_argument("--gold", type=Path, metavar="FILE", help=text)
    add_reading_arguments(parser)


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """Add encoding, columns, types and missing sentences."""
    text = "encoding of the files that are not in UTF-8, such as utf-16, latin-1 or gb18030"
    parser.add_argument("--encoding", type=encoding, help=text)
    text = (
        "columns of the gold file, if they are not detected: numbers from 0, or from -1 at the end, or names; of CSV, "
        "names, also of sentence"
    )
    parser.add_argument("--gold-columns", type=columns, metavar="word=0,tag=3", help=text)
    text = (
        "columns of the files of predictions (tag=-1), also of probability; or with NAME: of those of one system; may "
        "be repeated"
    )
    parser.add_argument(
        "--columns", type=columns_of, action="append", default=[], metavar="[NAME:]word=0,tag=-1", help=text
    )
    text = "other names for types, in all files; may be repeated"
    parser.add_argument(
        "--map", type=renamings, action="extend", default=[], metavar="GPE=LOC,PERSON=PER", help=text
    )
    text = "count sentences that a file lacks as without a prediction"
    parser.add_argument("--missing", choices=["empty"], help=text)


def how_to_read(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `add_file_arguments`, as those of `systems.score`."""
    return {
        "gold": arguments.gold,
        "gold_columns": arguments.gold_columns,
        "columns": dict(arguments.columns),
        "types": dict(arguments.map),
        "missing_is_empty": arguments.missing == "empty",
        "encoding": arguments.encoding,
    }


def scored_files(arguments: argparse.Namespace, names: Sequence[str]) -> Compared | None:
    """The systems that a command line names, scored; None if it names runs, tables or sweeps."""
    from ner_experiments.comparison import systems  # slow to import: SciPy

    how = how_to_read(arguments)
    if not any(how.values()) and not systems.are_files(names):
        return None
    compared = systems.score(systems.parsed(names)[0], **how)
    systems.check_renamed(compared)
    return compared


@argument
def encoding(text: str) -> str:
    codec_of(text)
    return text


@argument
def columns(text: str) -> Columns:
    found = parse_columns(text)
    if others := {*found} - {"word", "tag", "probability", "sentence"}:
        rule = "expected columns of word, tag, probability and, for CSV, sentence"
        raise ValueError(f"{rule}, got {others.pop()!r}")
    return {"word": "auto", "tag": -1, **found}


def columns_of(text: str) -> tuple[str, Columns]:
    """A system, or "" for all others, and the columns of its files."""
    name, _, stated = text.rpartition(":")
    return name, columns(stated)


@argument
def renamings(text: str) -> list[tuple[str, str]]:
    pairs = [item.partition("=") for item in text.split(",")]
    if not all(old and equals and new for old, equals, new in pairs):
        raise ValueError(f"expected OLD=NEW, such as GPE=LOC, got {text!r}")
    return [(old, new) for old, _, new in pairs]
