"""`ner-experiments data`: what a corpus holds (check), and the download of one of open licence (get)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, get_args

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from ner_experiments.data.corpus import Source, count_illegal, count_mentions, count_shared, scheme_of
from ner_experiments.data.download import download
from ner_experiments.data.files import ColumnFiles, ConlluFiles, Files
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import Scheme

Report = dict[str, Any]

_DEFAULT_TAG = {"conll": "-1", "conllu": "xpos"}
_COLUMNS_ABREAST = 4
_ROWS = {
    "sentences": "sentences",
    "sentences_with_docstart": "with DOCSTART lines",
    "tokens": "tokens",
    "longest_sentence": "longest sentence",
}
_ROWS_OF_MENTIONS = {"mentions": "mentions", "illegal_tags": "illegal tags"}


def report(source: Source) -> Report:
    """What the files hold, before anything is held out or left out, ready for JSON.

    splits: split -> sentences, tokens, longest_sentence; mentions and mentions_by_type, as conlleval reads
        them; illegal_tags, which break the scheme; `tags`, how often each occurs, where the task is tags. If
        there are DOCSTART lines also sentences_with_docstart, the figure of papers that count those too.
    duplicates: "train/test" -> sentences of test that have the words of a sentence of train.
    checksum: of everything. official: whether it is what was published; null where that is not known.
    """
    splits = source.read()
    mentions = source.task == "mentions"
    scheme = scheme_of(source, splits) if mentions else None
    counts = {
        split: _count(sentences) | (_count_mentions(sentences, scheme) if scheme else _count_tags(sentences))
        for split, sentences in splits.items()
    }
    for split, lines in source.docstarts().items():
        counts[split]["sentences_with_docstart"] = counts[split]["sentences"] + lines
    unofficial = source.unofficial()
    return {
        "name": source.name,
        "task": source.task,
        "scheme": scheme,
        "splits": counts,
        "duplicates": {"/".join(pair): count for pair, count in count_shared(splits).items()},
        "checksum": source.checksum(),
        "official": None if unofficial is None else not unofficial,
        "unofficial": unofficial or [],
    }


def _count(sentences: Sequence[Sentence]) -> Report:
    lengths = [len(sentence) for sentence in sentences]
    return {"sentences": len(sentences), "tokens": sum(lengths), "longest_sentence": max(lengths)}


def _count_mentions(sentences: Sequence[Sentence], scheme: Scheme) -> Report:
    by_type = count_mentions(sentences)
    return {
        "mentions": by_type.total(),
        "mentions_by_type": dict(sorted(by_type.items())),
        "illegal_tags": count_illegal(sentences, scheme),
    }


def _count_tags(sentences: Sequence[Sentence]) -> Report:
    tags = Counter(tag for sentence in sentences for tag in sentence.tags)
    return {"mentions": 0, "mentions_by_type": {}, "illegal_tags": 0, "tags": dict(sorted(tags.items()))}


def show(found: Report, console: Console) -> None:
    """The report as text: a table of counts, or several where there are many files."""
    splits = list(found["splits"])
    what = "part-of-speech tags" if found["task"] == "tags" else f"mentions, {found['scheme']}"
    console.print(f"{found['name']} ({what})")
    for start in range(0, len(splits), _COLUMNS_ABREAST):
        console.print(_table(found, splits[start : start + _COLUMNS_ABREAST]))
    for (one, other), count in zip(combinations(splits, 2), found["duplicates"].values(), strict=True):
        if count:
            console.print(f"{count:,} sentences of {other} have the words of one in {one}")
    if found["unofficial"]:
        console.print(f"not the published files, by their SHA-256: {', '.join(found['unofficial'])}")
    elif found["official"]:
        console.print("the published files, by their SHA-256")
    console.print(f"checksum {found['checksum']}")


def _table(found: Report, splits: Sequence[str]) -> Table:
    table = Table("", *splits, box=SIMPLE, pad_edge=False)
    for column in table.columns[1:]:
        column.justify, column.overflow = "right", "fold"
    counts = [found["splits"][split] for split in splits]
    of_tags = found["task"] == "tags"
    for key, label in (_ROWS if of_tags else _ROWS | _ROWS_OF_MENTIONS).items():
        if any(key in count for count in counts):
            table.add_row(label, *(f"{count[key]:,}" if key in count else "" for count in counts))
    by_label = [count["tags" if of_tags else "mentions_by_type"] for count in counts]
    if of_tags:
        table.add_row("different tags", *(str(len(labels)) for labels in by_label))
    table.add_section()
    for label in sorted(set().union(*by_label)):
        table.add_row(label, *(f"{labels.get(label, 0):,}" for labels in by_label))
    return table


def main(argv: Sequence[str], open_source: Callable[[str], Source]) -> int:
    """`data check` and `data get`; returns the exit status. A fault in the files: one line on stderr, and 1.

    open_source: the corpus that conf/data/NAME.yaml describes.
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        if arguments.command == "get":
            _get(open_source(arguments.name))
            return 0
        found = report(_source(arguments, parser, open_source))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        show(found, Console(markup=False, emoji=False, highlight=False))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ner-experiments data", description="Corpora: what they hold, and getting them."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="count what a corpus, or any files, hold")
    check.add_argument(
        "names", nargs="+", metavar="NAME|FILE", help="a corpus of conf/data; with --format, files"
    )
    check.add_argument(
        "--format", choices=_DEFAULT_TAG, help="conll: columns, a token a line; conllu: CoNLL-U"
    )
    check.add_argument(
        "--tag",
        help="conll: number of the tag's column, from 0, or from the end, from -1; conllu: xpos or upos",
    )
    check.add_argument(
        "--scheme", choices=get_args(Scheme), help="conll: the tags' scheme (default: told from the tags)"
    )
    check.add_argument(
        "--empty-tag", metavar="TAG", help="conll: what an empty tag means (default: an error)"
    )
    check.add_argument("--json", action="store_true", help="print JSON instead of a table")
    get = commands.add_parser("get", help="download a corpus whose licence is open")
    get.add_argument("name", metavar="NAME", help="a corpus of conf/data")
    return parser


def _source(
    arguments: argparse.Namespace, parser: argparse.ArgumentParser, open_source: Callable[[str], Source]
) -> Source:
    given = [option for option in ("tag", "scheme", "empty_tag") if getattr(arguments, option) is not None]
    if arguments.format is None:
        if len(arguments.names) > 1 or given:
            parser.error("check takes one NAME; for files, and for options about them, add --format")
        return open_source(arguments.names[0])
    if arguments.format == "conllu" and {"scheme", "empty_tag"} & {*given}:
        parser.error("--scheme and --empty-tag are for --format conll")
    files = _keys(arguments.names)
    tag: Any = arguments.tag or _DEFAULT_TAG[arguments.format]
    if arguments.format == "conllu":
        return ConlluFiles(name="conllu", folder="", files=files, tag=tag)
    try:
        columns = {"word": 0, "tag": int(tag)}
    except ValueError:
        parser.error(f"--tag: expected the number of a column, got {tag!r}")
    scheme: Any = arguments.scheme or "auto"
    return ColumnFiles(
        name="conll", folder="", files=files, columns=columns, scheme=scheme, empty_tag=arguments.empty_tag
    )


def _keys(paths: Sequence[str]) -> dict[str, str]:
    """Path under its file name, or under all of it where others have the same name."""
    shared = Counter(os.path.basename(path) for path in paths)
    return {path if shared[os.path.basename(path)] > 1 else os.path.basename(path): path for path in paths}


def _get(source: Source) -> None:
    if not isinstance(source, Files):
        raise ValueError(f"{source.name}: made on the spot, nothing to download")
    if not source.url:
        raise ValueError(f"{source.name}: not of open licence ({source.licence}); it is {source.source}")
    files = {split: file for split, file in source.files.items() if file is not None}
    download(
        {file: f"{source.url}/{file}" for file in files.values()},
        {files[split]: checksum for split, checksum in source.sha256.items()},
        {files[split]: size for split, size in source.sizes.items()},
        source.place,
    )
