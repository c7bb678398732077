"""`ner-experiments compare NAME=FILES ...`: compare predictions of any tools on one gold file, over their seeds."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from ner_experiments.comparison.arguments import add_file_arguments, how_to_read
from ner_experiments.utils.garbage import paused_garbage_collection

if TYPE_CHECKING:
    from ner_experiments.comparison.systems import Published

SCORE = re.compile(r"(?P<mean>\d+(?:\.\d+)?)(?:(?:±|\+-|\+/-)(?P<sd>\d+(?:\.\d+)?))?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = (
        "Compare the predictions of any tools on one gold file: F1 of exact mentions with its deviation over seeds, "
        "all pairs of systems with intervals and p values, and what can be said about their order. Files are columns, "
        "JSON Lines with offsets or with lists of mentions, or of any other format of the suite; their tokens may "
        "differ from those of gold."
    )
    text = (
        "a system and its files, one per seed, such as flair='flair/seed-*.conll'; further paths belong to the name "
        "before them; a path may be the folder of a finished run; TABLE is a table or sweep, each row a system"
    )
    parser.add_argument("systems", nargs="+", metavar="NAME=FILES|TABLE", help=text)
    add_file_arguments(parser)
    text = "training data, to score seen and unseen mentions apart, and to count the sentences of gold that it has"
    parser.add_argument("--train", type=Path, metavar="FILE", help=text)
    text = "a published F1 in percent, with its deviation if it has one, to compare each system with"
    parser.add_argument("--against", metavar="91.21±0.22", help=text)
    text = "number of runs of the published score (1)"
    parser.add_argument("--against-runs", type=int, metavar="N", help=text)
    text = "systems are called equal if their difference is shown to be smaller, in points (0.3)"
    parser.add_argument("--smallest-effect", type=float, default=0.3, metavar="POINTS", help=text)
    text = "refuse to compare if the signature is another one"
    parser.add_argument("--signature", metavar="TEXT", help=text)
    output = parser.add_mutually_exclusive_group()
    for name, text in {
        "json": "print all numbers as JSON",
        "csv": "print the score of each system, and a published one, as CSV, without pairs",
        "latex": "print the scores as LaTeX",
    }.items():
        output.add_argument(f"--{name}", dest="format", action="store_const", const=name, help=text)
    text = (
        "write an HTML report with errors, confusion of types, sentences on which systems differ, and the calibration "
        "of probabilities that files have"
    )
    output.add_argument("--report", type=Path, metavar="FOLDER", help=text)
    text = "write LaTeX of the table, figures, a paragraph on the methods, and BibTeX"
    output.add_argument("--paper", type=Path, metavar="FOLDER", help=text)
    text = "write the scores as Every Eval Ever JSON, and as a model card's model-index"
    output.add_argument("--publish", type=Path, metavar="FOLDER", help=text)
    text = "with --publish or --paper, the name of the test set; that of a data set of the hub adds .eval_results"
    parser.add_argument("--dataset", metavar="NAME", help=text)


@paused_garbage_collection()
def run(arguments: argparse.Namespace) -> None:
    """Compare the systems. Raises ValueError or OSError for user errors."""
    from ner_experiments.comparison import systems  # slow to import: SciPy
    from ner_experiments.comparison.comparison import Comparison
    from ner_experiments.utils.terminal import print_markdown

    if arguments.against_runs is not None and not arguments.against:
        raise ValueError("--against-runs belongs to --against")
    if not arguments.smallest_effect > 0:
        raise ValueError(f"--smallest-effect: expected a number above 0, got {arguments.smallest_effect}")
    if arguments.dataset and not (arguments.publish or arguments.paper):
        raise ValueError("--dataset belongs to --publish or --paper")
    files, remarks = systems.parsed(arguments.systems)
    compared = systems.score(
        files,
        **how_to_read(arguments),
        published=published(arguments),
        train=arguments.train,
        smallest_effect=arguments.smallest_effect,
        remarks=remarks,
    )
    view = Comparison.of(compared)
    if arguments.signature:
        view.check_signature(arguments.signature)
    if arguments.report:
        from ner_experiments.report.comparison import write  # slow to import: charts

        print(write(view, arguments.report))
    elif arguments.paper:
        from ner_experiments.tables import article

        print(*article.write(view, arguments.paper, arguments.dataset), sep="\n")
    elif arguments.publish:
        from ner_experiments.comparison.publishing import publish

        print(*publish(view, arguments.publish, arguments.dataset), sep="\n")
    elif arguments.format:
        print({"json": view.json, "csv": view.csv, "latex": view.latex}[arguments.format](), end="")
    else:
        print_markdown(view.markdown())


def published(arguments: argparse.Namespace) -> Published | None:
    """The published score of the arguments. ValueError for anything else than a score."""
    from ner_experiments.comparison.systems import Published  # slow to import: SciPy

    if not arguments.against:
        return None
    if not (found := SCORE.fullmatch(arguments.against.replace(" ", ""))):
        raise ValueError(f"--against: expected an F1 such as 91.21 or 91.21±0.22, got {arguments.against!r}")
    if not 1 <= float(found["mean"]) <= 100:
        raise ValueError(f"--against: expected an F1 in percent, got {arguments.against}")
    sd = float(found["sd"]) if found["sd"] else None
    runs = 1 if arguments.against_runs is None else arguments.against_runs
    if runs < 1:
        raise ValueError(f"--against-runs: expected at least 1, got {runs}")
    if sd is not None and runs < 2:
        raise ValueError(
            f"--against: a deviation requires the number of its runs, as --against-runs 5, got {runs}"
        )
    return Published(float(found["mean"]), sd, runs)
