"""`ner-experiments data`: print statistics of a corpus (check), and download one with an open license (get)."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, get_args

import hydra
from hydra.utils import instantiate
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from ner_experiments.config import overrides
from ner_experiments.config.conf import CONFIG_NAME, hydra_context
from ner_experiments.data.corpus import Source, count_illegal, count_mentions, count_shared, scheme_of
from ner_experiments.data.download import download
from ner_experiments.data.files import ColumnFiles, ConlluFiles, Files
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import Scheme

Report = dict[str, Any]

_DEFAULT_TAG = {"conll": "-1", "conllu": "xpos"}
_MAX_COLUMNS = 4
_ROWS = {
    "sentences": "sentences",
    "sentences_with_docstart": "with DOCSTART lines",
    "tokens": "tokens",
    "longest_sentence": "longest sentence",
}
_ROWS_OF_MENTIONS = {"mentions": "mentions", "illegal_tags": "illegal tags"}


def open_source(name: str) -> Source:
    """The corpus of conf/data/NAME.yaml. Raises ValueError for an unknown name."""
    overrides.check([f"data={name}"])
    with hydra_context():
        source: Source = instantiate(hydra.compose(CONFIG_NAME, overrides=[f"data={name}"]).data)
    return source


def run(arguments: argparse.Namespace, open_source: Callable[[str], Source] = open_source) -> int:
    """Run `check` or `get` and return the exit status: 1 for invalid files, with one line on stderr."""
    try:
        if arguments.action == "get":
            _get(open_source(arguments.name))
            return 0
        report = corpus_report(_source(arguments, open_source))
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        print_report(report, Console(markup=False, emoji=False, highlight=False))
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command to its parser."""
    parser.description = "Check and download corpora."
    parser.set_defaults(usage_error=parser.error)
    actions = parser.add_subparsers(dest="action", required=True)
    check = actions.add_parser("check", help="print statistics of a corpus or of files")
    check.add_argument(
        "names", nargs="+", metavar="NAME|FILE", help="a corpus of conf/data; with --format, files"
    )
    check.add_argument(
        "--format", choices=_DEFAULT_TAG, help="conll: columns, one token per line; conllu: CoNLL-U"
    )
    check.add_argument(
        "--tag",
        help="conll: index of the tag column, from 0, or from -1 at the end; conllu: xpos or upos",
    )
    check.add_argument(
        "--scheme", choices=get_args(Scheme), help="conll: the tags' scheme (default: detected from the tags)"
    )
    check.add_argument(
        "--empty-tag", metavar="TAG", help="conll: the tag that an empty one stands for (default: an error)"
    )
    check.add_argument("--json", action="store_true", help="print JSON instead of a table")
    get = actions.add_parser("get", help="download a corpus with an open license")
    get.add_argument("name", metavar="NAME", help="a corpus of conf/data")


def _source(arguments: argparse.Namespace, open_source: Callable[[str], Source]) -> Source:
    """The corpus to check: NAME in conf/data, or the FILEs with the options."""
    options = {name for name in ("tag", "scheme", "empty_tag") if getattr(arguments, name) is not None}
    if arguments.format is None:
        if len(arguments.names) > 1 or options:
            arguments.usage_error("check takes one NAME; to check files, and for their options, add --format")
        return open_source(arguments.names[0])
    if arguments.format == "conllu" and options - {"tag"}:
        arguments.usage_error("--scheme and --empty-tag require --format conll")
    files = _keys(arguments.names)
    tag: Any = arguments.tag or _DEFAULT_TAG[arguments.format]
    if arguments.format == "conllu":
        return ConlluFiles(name="conllu", folder="", files=files, tag=tag)
    try:
        columns = {"word": 0, "tag": int(tag)}
    except ValueError:
        arguments.usage_error(f"--tag: expected a column index, got {tag!r}")
    scheme: Any = arguments.scheme or "auto"
    return ColumnFiles(
        name="conll", folder="", files=files, columns=columns, scheme=scheme, empty_tag=arguments.empty_tag
    )


def _keys(paths: Sequence[str]) -> dict[str, str]:
    """Paths keyed by file name, or by the whole path where file names repeat."""
    shared = Counter(os.path.basename(path) for path in paths)
    return {path if shared[os.path.basename(path)] > 1 else os.path.basename(path): path for path in paths}


def _get(source: Source) -> None:
    if not isinstance(source, Files):
        raise ValueError(f"{source.name}: generated, nothing to download")
    if not source.url:
        raise ValueError(
            f"{source.name}: no open license ({source.licence}), so it cannot be downloaded; source: {source.source}"
        )
    files = {split: file for split, file in source.files.items() if file is not None}
    download(
        {file: f"{source.url}/{file}" for file in files.values()},
        {files[split]: checksum for split, checksum in source.sha256.items()},
        {files[split]: size for split, size in source.sizes.items()},
        source.place,
    )


def corpus_report(source: Source) -> Report:
    """Statistics of a corpus as JSON, before `load` holds out a part or limits the number of sentences.

    splits: by split, sentences, tokens, longest_sentence; mentions and mentions_by_type, as conlleval counts
        them; illegal_tags, which violate the scheme; for the task "tags", `tags` with the count of each tag. With
        DOCSTART lines also sentences_with_docstart, the number in papers that count those lines.
    duplicates: "train/test" -> number of test sentences whose words are those of a train sentence.
    checksum: SHA-256 over all files. official: whether they are the published ones; null if unknown.
    unofficial: splits whose files differ from the published ones.
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


def print_report(report: Report, console: Console) -> None:
    """Print the report as tables of counts, with at most four files side by side."""
    splits = list(report["splits"])
    what = "part-of-speech tags" if report["task"] == "tags" else f"mentions, {report['scheme']}"
    console.print(f"{report['name']} ({what})")
    for start in range(0, len(splits), _MAX_COLUMNS):
        console.print(_table(report, splits[start : start + _MAX_COLUMNS]))
    for (one, other), count in zip(combinations(splits, 2), report["duplicates"].values(), strict=True):
        if count:
            console.print(f"{count:,} sentences of {other} also occur in {one}")
    if report["unofficial"]:
        console.print(f"SHA-256 differs from the published files: {', '.join(report['unofficial'])}")
    elif report["official"]:
        console.print("SHA-256 equals the published files")
    console.print(f"checksum {report['checksum']}")


def _table(report: Report, splits: Sequence[str]) -> Table:
    table = Table("", *splits, box=SIMPLE, pad_edge=False)
    for column in table.columns[1:]:
        column.justify, column.overflow = "right", "fold"
    counts = [report["splits"][split] for split in splits]
    of_tags = report["task"] == "tags"
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
