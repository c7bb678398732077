"""`ner-experiments report`: everything measured, as a folder of pages that opens from disk."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "Write a folder of HTML pages that opens from disk: every published table beside our scores, with plots, "
        "learning curves, cost and errors. For runs in their own folders it also has sentences and attention maps."
    )
    parser.description = text
    help = "a table of sweeps/ (all), or an override of the runs, such as data=weibo"
    parser.add_argument("names", nargs="*", metavar="TABLE|OVERRIDE", help=help)
    parser.add_argument("--output", type=Path, default=Path("report"), metavar="DIR", help="(report)")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="archived runs (results)"
    )
    parser.add_argument("--runs", type=Path, metavar="DIR", help="run folders (outputs, if it exists)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status. Raises ValueError or OSError for errors of the user."""
    print(write(arguments))
    return 0


def write(arguments: argparse.Namespace) -> Path:
    """Write the report; return the path of its index."""
    if arguments.runs is not None and not arguments.runs.is_dir():
        raise ValueError(f"--runs: expected a folder of runs, got {arguments.runs}")
    from ner_experiments.report import entries  # slow to import: torch, Matplotlib
    from ner_experiments.report.write import write_report
    from ner_experiments.runs.provenance import commit

    outputs = arguments.runs or (Path("outputs") if Path("outputs").is_dir() else None)
    names = [item for item in arguments.names if "=" not in item]
    overrides = [item for item in arguments.names if "=" in item]
    tables = entries.entries(arguments.results, outputs, names, overrides)
    own = entries.own_entries(outputs, tables) if outputs and not names else []
    return write_report(tables, arguments.results, arguments.output, commit(), own)[0]
