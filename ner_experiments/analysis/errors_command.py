"""`ner-experiments errors`: what kinds of errors runs make, on which mentions, and which ones differ."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str]) -> int:
    """Returns the exit status. ValueError or OSError for what the user caused."""
    arguments = parser().parse_args(argv)
    print(printed(arguments), end="")
    return 0


def parser() -> argparse.ArgumentParser:
    text = (
        "Errors on test by kind and by group of mention, with intervals, confused types and calibration. "
        "Runs that differ in nothing but the seed are one row; each two rows of one test set are compared."
    )
    parser = argparse.ArgumentParser(prog="ner-experiments errors", description=text)
    where = "the folder of a finished run, or a run's file in results/"
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=where)
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    text = "how many sentences to show that one row gets right and another does not (5)"
    parser.add_argument("--sentences", type=int, default=5, metavar="N", help=text)
    return parser


def printed(arguments: argparse.Namespace) -> str:
    if arguments.sentences < 0:
        raise ValueError(f"--sentences must be at least 0, got {arguments.sentences}")
    from ner_experiments.analysis.errors_page import page
    from ner_experiments.analysis.rows import compared, rows

    found = rows(arguments.runs)
    pairs = compared(found)
    if not arguments.json:
        return page(found, pairs, arguments.sentences)
    content = {
        "rows": [row.record() for row in found],
        "pairs": [pair.record(arguments.sentences) for pair in pairs],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
