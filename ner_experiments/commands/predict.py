"""`ner-experiments predict`: tag text with a finished run.

The modules that import torch are imported inside `_predict`, to keep `--help` quick.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from dataclasses import replace
from pathlib import Path

from ner_experiments.data.columns import parse_columns

INPUTS = ("text", "conll", "jsonl")
OUTPUTS = ("terminal", "jsonl", "conll", "html")


def run(arguments: argparse.Namespace) -> int:
    """Tag the input and return the exit status: 1 if the reader of the output has gone.

    Raises ValueError or OSError for user errors.
    """
    try:
        _predict(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command to its parser."""
    parser.description = "Tag text with a finished run: its mentions, their offsets, and their probabilities."
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a finished run")
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="the text to tag (standard input)"
    )
    parser.add_argument(
        "--input",
        choices=INPUTS,
        default="text",
        help="text: split into sentences and tokens; conll: the format of the run's corpus, such as columns, with or "
        'without tags; jsonl: {"text": ...} or {"words": [...]} per line (text)',
    )
    parser.add_argument("--output", choices=OUTPUTS, help="(terminal on a terminal, jsonl elsewhere)")
    parser.add_argument(
        "--lines", action="store_true", help="each line of text is a sentence, such as a tweet"
    )
    parser.add_argument(
        "--tokens",
        choices=("words", "characters"),
        help="the unit to tokenize text into (as in the run's corpus)",
    )
    parser.add_argument(
        "--columns",
        type=_columns,
        metavar="word=0,...",
        help="columns by number or by name in the first line, if not those of the run's corpus",
    )
    parser.add_argument("--device", default="cpu", help="such as cuda (cpu)")


def _columns(text: str) -> dict[str, int | str]:
    try:
        named = parse_columns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if "word" not in named:
        raise argparse.ArgumentTypeError(f"expected word=COLUMN among others, got {text!r}")
    return {name: column for name, column in named.items() if name != "tag"}


def _predict(arguments: argparse.Namespace) -> None:
    from ner_experiments.predict.output import WRITERS  # slow to import: torch
    from ner_experiments.predict.tagger import load

    tagger = load(arguments.run, tokens=arguments.tokens, lines=arguments.lines, device=arguments.device)
    reader = replace(tagger.reader, columns=arguments.columns)
    file = sys.stdin.buffer if arguments.file == "-" else Path(arguments.file)
    output = arguments.output or ("terminal" if sys.stdout.isatty() else "jsonl")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n", line_buffering=True)
    WRITERS[output](tagger.stream(reader.read(file, arguments.input)), sys.stdout, tagger.types)
