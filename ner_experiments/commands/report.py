"""`ner-experiments report`: everything measured, as a folder of pages that opens from disk."""

from __future__ import annotations

import argparse
from pathlib import Path


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit status. ValueError or OSError for what the user caused."""
    print(write(arguments))
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = (
        "A folder of HTML pages that opens from disk: every published table beside ours, with plots, curves, "
        "cost and errors. Of runs in their own folders it also shows sentences and attention."
    )
    parser.description = text
    help = "a table of sweeps/ (all), or an override with which runs were made, such as data=weibo"
    parser.add_argument("names", nargs="*", metavar="TABLE|OVERRIDE", help=help)
    parser.add_argument("--output", type=Path, default=Path("report"), metavar="DIR", help="(report)")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="kept runs (results)"
    )
    parser.add_argument("--runs", type=Path, metavar="DIR", help="run folders (outputs, if there are any)")


def write(arguments: argparse.Namespace) -> Path:
    """Returns the index."""
    if arguments.runs is not None and not arguments.runs.is_dir():
        raise ValueError(f"--runs: expected a folder of runs, got {arguments.runs}")
    from ner_experiments.report import build, entries
    from ner_experiments.report.entries import own_entries
    from ner_experiments.runs.provenance import commit

    outputs = arguments.runs or (Path("outputs") if Path("outputs").is_dir() else None)
    names = [item for item in arguments.names if "=" not in item]
    overrides = [item for item in arguments.names if "=" in item]
    found = entries.entries(arguments.results, outputs, names, overrides)
    own = own_entries(outputs, found) if outputs and not names else []
    return build.write(found, arguments.results, arguments.output, commit(), own)[0]
