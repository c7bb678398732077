"""`ner-experiments cases RUN [RUN ...]`: list test sentences that a run, or one of several, tags wrongly."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from ner_experiments.analysis.disagreements import Case, of_runs
from ner_experiments.analysis.row_errors import opened
from ner_experiments.analysis.sentences import of_cases
from ner_experiments.comparison.arguments import add_file_arguments, scored_files
from ner_experiments.runs.run import Run
from ner_experiments.utils.text import as_json
from ner_experiments.view.mentions import Sentence, print_page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "List the test sentences that a run tags wrongly, or of several runs, that some tag correctly and others do "
        "not, shortest first."
    )
    parser.description = text
    text = (
        "the folder of a finished run, or a table or sweep for all its runs; or NAME=FILES with predictions of any "
        "tool, as `compare` takes them"
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help=text)
    add_file_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")


def run(arguments: argparse.Namespace) -> None:
    """Print the cases. Raises ValueError or OSError for user errors."""
    runs: list[Run]
    if compared := scored_files(arguments, arguments.runs):
        runs = [*compared.runs]
        labels = {run.folder: run.label for run in runs}
    else:
        from ner_experiments.tables.sweeps import named_runs  # imports Hydra, which files do without

        labels = named_runs(arguments.runs)
        runs = [*map(opened, labels)]
    cases, total = of_runs(runs)
    if arguments.json:
        content = {
            "runs": [str(folder) for folder in labels],
            "sentences": total,
            "cases": [case.record() for case in cases],
        }
        print(as_json(content))
    else:
        print_page(page(labels, cases, total))


def page(runs: Mapping[Path, str], cases: Sequence[Case], total: int) -> list[str | Sentence]:
    """The runs, and the sentences of the cases. runs: labels of rows by folder, or ""."""
    lines = [
        f"{number}. `{folder}`" + (f" ({label})" if label else "")
        for number, (folder, label) in enumerate(runs.items(), start=1)
    ]
    how = "tagged correctly by some runs and wrongly by others" if len(runs) > 1 else "tagged wrongly"
    title = f"# {len(cases):,} of {total:,} test sentences, {how}, shortest first"
    return [title, "\n".join(lines), *of_cases(cases)]
