"""`ner-experiments cases RUN RUN [RUN ...]`: list test sentences that some runs tag correctly and others do not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ner_experiments.analysis.disagreements import Case, code_block, of_runs
from ner_experiments.tables.sweeps import named_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = "List the test sentences that some runs tag correctly and others do not, shortest first."
    parser.description = text
    text = "the folder of a finished run, or a table or sweep for all its runs; at least two runs"
    parser.add_argument("runs", nargs="+", metavar="RUN", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    runs = named_runs(arguments.runs)
    if len(runs) < 2:
        raise ValueError(f"expected at least two runs to compare, got {len(runs)}")
    cases, total = of_runs([*runs])
    print(as_json([*runs], cases, total) if arguments.json else markdown(runs, cases, total), end="")
    return 0


def markdown(runs: Mapping[Path, str], cases: Sequence[Case], total: int) -> str:
    """Page that lists the cases. runs: labels of rows by folder, or ""."""
    lines = [
        f"{number}. `{folder}`" + (f" ({label})" if label else "")
        for number, (folder, label) in enumerate(runs.items(), start=1)
    ]
    parts = [
        f"# {len(cases):,} of {total:,} test sentences, tagged correctly by some runs and wrongly by others",
        "\n".join(lines),
    ]
    return "\n\n".join([*parts, *map(code_block, cases)]) + "\n"


def as_json(folders: Sequence[Path], cases: Sequence[Case], total: int) -> str:
    content = {
        "runs": [str(folder) for folder in folders],
        "sentences": total,
        "cases": [case.record() for case in cases],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
