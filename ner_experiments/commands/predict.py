"""`ner-experiments predict RUN [FILE]`: tag your own text with a finished run.

The modules that import torch are imported inside `run`, to keep `--help` quick.
"""

from __future__ import annotations

import argparse
import errno
import io
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ner_experiments.data import raw_text
from ner_experiments.data.formats import brat
from ner_experiments.data.formats.columns import parse_columns
from ner_experiments.data.formats.registry import FORMATS, WRITABLE, require
from ner_experiments.data.text_files import UTF_8, codec_of, read_text
from ner_experiments.data.tokenize import TokenizedSentence
from ner_experiments.predict.hub import folder_of
from ner_experiments.runs.run import open_run
from ner_experiments.utils.arguments import refuse
from ner_experiments.utils.files import atomic_write

log = logging.getLogger(__name__)

INPUTS = ("text", "conll", "jsonl")
OUTPUTS = ("terminal", "jsonl", "conll", "html")
FORMATS_OF_MENTIONS = [name for name in WRITABLE if name not in OUTPUTS]
BINARY = [name for name, it in FORMATS.items() if it.package]
"""Formats whose files are no text and need a package."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command to its parser."""
    parser.description = "Tag text with a finished run: its mentions, their offsets, and their probabilities."
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="the folder of a finished run, or its name on a hub"
    )
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="texts to tag, or folders of texts; - is standard input (-)"
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


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1, got {text!r}")
    return int(text)


def _columns(text: str) -> dict[str, int | str]:
    try:
        named = parse_columns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if "word" not in named:
        raise argparse.ArgumentTypeError(f"expected word=COLUMN among others, got {text!r}")
    return {name: column for name, column in named.items() if name != "tag"}


def run(arguments: argparse.Namespace) -> int:
    """Tag the input and return the exit status. Raises ValueError or OSError for user errors."""
    files = _files(arguments.files)
    arguments.run = folder_of(arguments.run)
    output = arguments.output or ("terminal" if sys.stdout.isatty() and not arguments.to else "jsonl")
    _check(arguments, files, output)

    # slow to import: torch
    from ner_experiments.predict.output import FILE, WRITERS, write_binary, write_brat, write_brat_lines
    from ner_experiments.predict.parallel import tag_in_processes
    from ner_experiments.predict.tagger import load

    found = open_run(arguments.run).metrics["data"].get("raw_text")
    if found and found["token_f1"] < raw_text.LOW and arguments.input == "text" and not arguments.tokens:
        log.warning("%s", raw_text.line(found))
    settings = {"tokens": arguments.tokens, "lines": arguments.lines, "device": arguments.device}
    settings["vectors"] = arguments.vectors
    tagger = load(arguments.run, **settings)
    if output == "brat":  # refused before anything is tagged
        for type_ in tagger.types:
            brat.check_type(type_, str(arguments.run))
    reader = replace(tagger.reader, columns=arguments.columns, encoding=arguments.encoding)
    named = len(files) > 1 or output == "brat"

    def sentences() -> Iterator[TokenizedSentence]:
        for name in files:
            file = sys.stdin.buffer if name == "-" else Path(name)
            for it in reader.read(file, arguments.input):
                yield replace(it, keys={**it.keys, FILE: name}) if named else it

    if arguments.jobs > 1:
        tagged = tag_in_processes(arguments.run, settings, sentences(), arguments.jobs)
    else:
        tagged = tagger.stream(sentences())
    if output == "brat" and (arguments.input != "text" or "-" in files):
        write_brat_lines(tagged, arguments.to)
    elif output == "brat":
        encoding = arguments.encoding or UTF_8
        texts = {name: "".join(line for _, line in read_text(name, encoding)) for name in files}
        write_brat(tagged, texts, arguments.to)
    elif output in BINARY:
        write_binary(output, tagged, arguments.to)
    elif arguments.to is not None:
        with atomic_write(arguments.to) as part, part.open("w", encoding="utf-8", newline="\n") as file:
            WRITERS[output](tagged, file, tagger.types)
    else:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8", newline="\n", line_buffering=True)
        WRITERS[output](tagged, sys.stdout, tagger.types)
    return 0


def _check(arguments: argparse.Namespace, files: Sequence[str], output: str) -> None:
    """Raise ValueError for arguments that do not fit each other or the run, before torch is imported."""
    if output == "brat":
        if arguments.to is None:
            raise ValueError("--output brat writes texts and their mentions into a folder: add --to FOLDER")
        stems = Counter(Path(name).stem for name in files)
        if twice := [name for name in files if stems[Path(name).stem] > 1]:
            raise ValueError(f"{twice[-1]}: another file is named {Path(twice[-1]).stem}, too")
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
        raise ValueError(f"{arguments.to}: already exists")
    if open_run(arguments.run).metrics["task"] != "mentions" and output not in OUTPUTS:
        raise ValueError(f"{arguments.run}: the run tags parts of speech, and {output} holds mentions")


def _files(names: Sequence[str]) -> list[str]:
    """The files to tag; of a folder, those in it, in alphabetical order. ValueError for one that does not exist."""
    files: list[str] = []
    for name in names or ["-"]:
        path = Path(name)
        if name == "-" or path.is_file() or (path.exists() and not path.is_dir()):
            files.append(name)
        elif path.is_dir():
            inside = [it for it in sorted(path.iterdir()) if it.is_file() and not it.name.startswith(".")]
            texts = [str(it) for it in inside if it.suffix != ".ann"]
            if not texts:
                raise ValueError(f"{name}: the folder has no file to tag")
            files += texts
        else:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return files
