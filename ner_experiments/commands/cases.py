"""`ner-experiments cases`: the test sentences that some runs tag correctly and others do not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from ner_experiments.analysis.disagreements import Case, bracketed, of_runs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = "List the test sentences that at least one run tags correctly and one does not, shortest first."
    parser.description = text
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a finished run")
    parser.add_argument("others", type=Path, nargs="+", metavar="RUN", help="runs to compare it with")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    folders = [arguments.run, *arguments.others]
    cases, total = of_runs(folders)
    print((as_json if arguments.json else markdown)(folders, cases, total), end="")
    return 0


def markdown(folders: Sequence[Path], cases: Sequence[Case], total: int) -> str:
    runs = [f"{number}. `{folder}`" for number, folder in enumerate(folders, start=1)]
    parts = [
        f"# {len(cases):,} of {total:,} test sentences, tagged correctly by some runs and wrongly by others",
        "\n".join(runs),
    ]
    return "\n\n".join([*parts, *map(block, cases)]) + "\n"


def block(case: Case) -> str:
    """Code block with the gold and predicted mentions of a sentence, so that Markdown interprets no character."""
    lines = [f"{'gold':<11}{bracketed(case.words, case.gold)}"]
    for number, (tags, correct) in enumerate(zip(case.predicted, case.correct, strict=True), start=1):
        verdict = f"{number} {'correct' if correct else 'wrong'}"
        lines.append(f"{verdict:<11}{bracketed(case.words, tags)}")
    return "\n".join([f"Sentence {case.number}:", "", "```text", *lines, "```"])


def as_json(folders: Sequence[Path], cases: Sequence[Case], total: int) -> str:
    content = {
        "runs": [str(folder) for folder in folders],
        "sentences": total,
        "cases": [case.record() for case in cases],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
