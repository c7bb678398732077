"""`ner-experiments predict`: a finished run tags text of your own."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

INPUTS = ("text", "conll", "jsonl")
OUTPUTS = ("terminal", "jsonl", "conll", "html")
_COLUMN = re.compile(r"([^=,]+)=(-?\d{1,4})", re.ASCII)


def main(argv: Sequence[str]) -> int:
    """Returns the exit status: 1 if nobody reads the output any longer.

    ValueError or OSError for what the user caused.
    """
    arguments = parser().parse_args(argv)
    try:
        predict(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    text = (
        "Tags text of your own by a finished run: its mentions, where they stand, and how probable each is."
    )
    parser = argparse.ArgumentParser(prog="ner-experiments predict", description=text)
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a finished run")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="what to tag (standard input)")
    parser.add_argument(
        "--input",
        choices=INPUTS,
        default="text",
        help="text: sentences and tokens are found; conll: columns as in the run's corpus, tags or none; "
        'jsonl: {"text": ...} or {"words": [...]} a line (text)',
    )
    parser.add_argument("--output", choices=OUTPUTS, help="(terminal on a terminal, jsonl elsewhere)")
    parser.add_argument(
        "--lines", action="store_true", help="each line of text is a sentence, such as a tweet"
    )
    parser.add_argument(
        "--tokens", choices=("words", "characters"), help="what text is cut into (as in the run's corpus)"
    )
    parser.add_argument(
        "--columns", type=columns, metavar="word=0,...", help="which column is what, where it is another"
    )
    parser.add_argument("--device", default="cpu", help="such as cuda (cpu)")
    return parser


def columns(text: str) -> dict[str, int]:
    found = [_COLUMN.fullmatch(part) for part in text.split(",")]
    named = {match[1]: int(match[2]) for match in found if match}
    if len(named) != len(found) or "word" not in named or "tag" in named:
        raise argparse.ArgumentTypeError(f"expected word=NUMBER, then more such as pos=1, got {text!r}")
    return named


def predict(arguments: argparse.Namespace) -> None:
    from dataclasses import replace

    from ner_experiments.predict.output import WRITERS
    from ner_experiments.predict.tagger import load

    tagger = load(arguments.run, tokens=arguments.tokens, lines=arguments.lines, device=arguments.device)
    reader = replace(tagger.reader, columns=arguments.columns)
    file = sys.stdin.buffer if arguments.file == "-" else Path(arguments.file)
    output = arguments.output or ("terminal" if sys.stdout.isatty() else "jsonl")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n", line_buffering=True)
    WRITERS[output](tagger.stream(reader.read(file, arguments.input)), sys.stdout, tagger.types)
