"""`ner-experiments predict RUN [FILE|FOLDER ...]`: tag your own text with a finished run.

The modules that import torch are imported inside `run`, to keep `--help` quick.
"""

from __future__ import annotations

import argparse
import errno
import io
import logging
import os
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ner_experiments.data import raw_text
from ner_experiments.data.formats import brat
from ner_experiments.data.formats.annotated import FILE
from ner_experiments.data.formats.columns import parse_columns
from ner_experiments.data.formats.registry import FORMATS, WRITABLE, require
from ner_experiments.data.text_files import UTF_8, codec_of, read_text
from ner_experiments.data.tokenize import TokenizedSentence
from ner_experiments.predict.hub import folder_of
from ner_experiments.runs.run import open_run
from ner_experiments.utils.arguments import argument, refuse
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.text import message_of

if TYPE_CHECKING:
    from ner_experiments.predict.tagger import TaggedSentence

log = logging.getLogger(__name__)

INPUTS = ("text", "conll", "jsonl")
OUTPUTS = ("terminal", "jsonl", "conll", "html")
FORMATS_OF_MENTIONS = [name for name in WRITABLE if name not in OUTPUTS]
BINARY = [name for name, it in FORMATS.items() if it.package]
"""Formats whose files are no text and need a package."""
MARKUP = (
    *(".md", ".markdown", ".rst", ".tex", ".html", ".htm", ".xml", ".svg", ".py"),
    *(".json", ".jsonl", ".yaml", ".yml", ".csv", ".tsv", ".conll"),
)
"""Suffixes of text files that are passed over in a folder of raw text."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command to its parser."""
    parser.description = "Tag text with a finished run: its mentions, their offsets, and their probabilities."
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="the folder of a finished run, or its name on a hub"
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE|FOLDER",
        help="texts to tag, or folders of texts with their subfolders; - is standard input (-)",
    )
    parser.add_argument(
        "--input",
        choices=INPUTS,
        default="text",
        help="text: split into sentences and tokens; conll: the format of the run's corpus, such as columns, with or "
        'without tags; jsonl: {"text": ...} or {"words": [...]} per line, whose other keys are copied (text)',
    )
    parser.add_argument(
        "--output",
        choices=(*OUTPUTS, *FORMATS_OF_MENTIONS),
        help="(terminal on a terminal, jsonl elsewhere); conll has IOB2 tags; the last ones are formats of "
        "`data convert`, without probabilities",
    )
    parser.add_argument(
        "--to", type=Path, metavar="PATH", help="the file to write; for brat, the folder (standard output)"
    )
    parser.add_argument("--encoding", help="of the input, such as utf-16, latin-1 or gb18030 (utf-8)")
    parser.add_argument("--jobs", type=_count, default=1, help="processes that tag side by side (1)")
    parser.add_argument(
        "--lines",
        action=argparse.BooleanOptionalAction,
        help="each line of text is a sentence, such as a tweet (as in the run's corpus)",
    )
    parser.add_argument(
        "--tokens",
        metavar="UNIT",
        help="what to tokenize text into, as data.tokens: words, characters, icu, fugashi or kiwipiepy (as in the "
        "run's corpus)",
    )
    parser.add_argument(
        "--columns",
        type=_columns,
        metavar="word=0,...",
        help="columns of --input conll, by number or by name in the first line, if not those of the run's corpus",
    )
    text = (
        "the word vectors that the run was trained with, for words that its corpus lacks (they are unknown)"
    )
    parser.add_argument("--vectors", type=Path, metavar="FILE", help=text)
    parser.add_argument("--device", default="cpu", help="such as cuda (cpu)")


@argument
def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"expected a number from 1, got {text!r}")
    return int(text)


@argument
def _columns(text: str) -> dict[str, int | str]:
    named = parse_columns(text)
    if "word" not in named:
        raise ValueError(f"expected word=COLUMN among others, got {text!r}")
    return {name: column for name, column in named.items() if name != "tag"}


def run(arguments: argparse.Namespace) -> int:
    """Tag the input; return 1 if a file that was named is passed over. Raises ValueError or OSError for user errors."""
    arguments.run = folder_of(arguments.run)
    found = _files(arguments.files)
    output = arguments.output or ("terminal" if sys.stdout.isatty() and not arguments.to else "jsonl")
    _check(arguments, found, output)

    # slow to import: torch
    from rich.console import Console
    from rich.progress import track

    from ner_experiments.predict.output import WRITERS, write_binary, write_brat, write_brat_lines
    from ner_experiments.predict.parallel import tag_in_processes
    from ner_experiments.predict.tagger import load

    check = open_run(arguments.run).metrics["data"].get("raw_text")
    if check and check["token_f1"] < raw_text.LOW and arguments.input == "text" and not arguments.tokens:
        log.warning("%s", raw_text.line(check))
    settings = {"tokens": arguments.tokens, "lines": arguments.lines, "device": arguments.device}
    settings["vectors"] = arguments.vectors
    tagger = load(arguments.run, **settings)
    if output == "brat":  # refused before anything is tagged
        for type_ in tagger.types:
            brat.check_type(type_, str(arguments.run))
    reader = replace(tagger.reader, columns=arguments.columns, encoding=arguments.encoding)
    encoding = arguments.encoding or UTF_8
    if arguments.input == "conll" and not arguments.encoding:
        encoding = getattr(reader.source, "encoding", UTF_8)
    folders = any(map(os.path.isdir, arguments.files))
    files = _texts(found, arguments.files, encoding, raw=arguments.input == "text")
    named = len(found) > 1 or folders or output == "brat"
    counts: Counter[str] = Counter()

    def sentences() -> Iterator[TokenizedSentence]:
        hidden = not (folders and arguments.to and sys.stderr.isatty())
        console = Console(stderr=True)
        for name in track(files, "tagging", console=console, transient=True, disable=hidden):
            file = sys.stdin.buffer if name == "-" else Path(name)
            for it in reader.read(file, arguments.input):
                yield replace(it, keys={**it.keys, FILE: name}) if named else it

    if arguments.jobs > 1:
        tagged = tag_in_processes(arguments.run, settings, sentences(), arguments.jobs)
    else:
        tagged = tagger.stream(sentences())
    tagged = _counted(tagged, counts)
    if output == "brat" and (arguments.input != "text" or "-" in files):
        write_brat_lines(tagged, files, arguments.to)
    elif output == "brat":
        texts = {name: "".join(line for _, line in read_text(name, encoding)) for name in files}
        write_brat(tagged, texts, files, arguments.to)
    elif output in BINARY:
        write_binary(output, tagged, arguments.to)
    elif arguments.to is not None:
        with atomic_write(arguments.to) as part, part.open("w", encoding="utf-8", newline="\n") as file:
            WRITERS[output](tagged, file, tagger.types)
    else:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n", line_buffering=True)
        WRITERS[output](tagged, sys.stdout, tagger.types)
    if folders or len(files) < len(found):
        what = ", ".join(f"{number:,} {it}" for it, number in counts.items()) or "nothing"
        skipped = f", {len(found) - len(files):,} passed over" * (len(files) < len(found))
        where = f" to {arguments.to}" if arguments.to else ""
        print(f"files tagged: {len(files):,}{skipped}; written{where}: {what}", file=sys.stderr)
    return int(any(file in arguments.files for file in found.keys() - files.keys()))


def _counted(tagged: Iterable[TaggedSentence], counts: Counter[str]) -> Iterator[TaggedSentence]:
    """The sentences, counted with their mentions or tags while they are written."""
    for it in tagged:
        tags = {"tags": len(it.tags)} if it.probabilities else {"mentions": len(it.mentions)}
        counts.update({"sentences": 1, **tags})
        yield it


def _check(arguments: argparse.Namespace, files: Mapping[str, str], output: str) -> None:
    """Raise ValueError for arguments that do not fit each other or the run, before torch is imported."""
    if output == "brat":
        if arguments.to is None:
            raise ValueError("--output brat writes texts and their mentions into a folder: add --to FOLDER")
        counts = Counter(files.values())
        if twice := [file for file, name in files.items() if counts[name] > 1]:
            raise ValueError(f"{twice[-1]}: another file is named {files[twice[-1]]}, too")
    if output in BINARY:
        if arguments.to is None:
            raise ValueError(f"--output {output} writes a file that is no text: add --to FILE")
        require(output)
    if arguments.input == "conll":
        refuse(arguments, "lines", reason="is for raw text, not for --input conll")
    else:
        refuse(arguments, "columns", reason="is for --input conll")
    if arguments.encoding is not None:
        codec_of(arguments.encoding)
    if arguments.to is not None and arguments.to.exists():
        raise ValueError(f"{arguments.to}: already exists: remove it, or choose another name with --to")
    if open_run(arguments.run).metrics["task"] != "mentions" and output not in OUTPUTS:
        raise ValueError(f"{arguments.run}: the run tags parts of speech, and {output} holds mentions")


def _files(names: Sequence[str]) -> dict[str, str]:
    """The files to tag, and what brat names the document of each; those of a folder by their paths within it.

    They are in alphabetical order, with those of subfolders. ValueError for a file that does not exist.
    """
    files: dict[str, str] = {}
    for name in names or ["-"]:
        path = Path(name)
        if path.is_dir():
            inside = {it: it.relative_to(path) for it in sorted(path.rglob("*")) if it.is_file()}
            texts = {
                str(it): str(own.with_suffix(""))
                for it, own in inside.items()
                if it.suffix != ".ann" and not any(part.startswith(".") for part in own.parts)
            }
            if not texts:
                raise ValueError(f"{name}: the folder has no file to tag")
            files |= texts
        elif name == "-" or path.exists():
            files[name] = "stdin" if name == "-" else path.stem
        else:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return files


def _texts(files: Mapping[str, str], named: Sequence[str], encoding: str, *, raw: bool) -> dict[str, str]:
    """The files without those that are no text or cannot be read, each with a warning; pipes are not tried.

    raw: leave out markup and data of folders as well, whose tags and keys would be tagged as words. ValueError if the
    only file is no text, or none is.
    """
    texts = {}
    for file, name in files.items():
        try:
            if file not in named and raw and Path(file).suffix.lower() in MARKUP:
                raise ValueError(f"{file}: not plain text, by its name; to tag it, name it")
            if os.path.isfile(file):
                deque(read_text(file, encoding), maxlen=0)
            texts[file] = name
        except (ValueError, OSError) as error:
            way_out = "; another encoding: --encoding" * isinstance(error.__context__, UnicodeError)
            if len(files) == 1 and file in named:
                raise ValueError(f"{message_of(error)}{way_out}") from None
            log.warning("passed over: %s%s", message_of(error), way_out)
    if not texts:
        raise ValueError("no file is text (another encoding: --encoding)")
    return texts
