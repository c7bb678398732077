"""`ner-experiments rescore NAME --gold FILE`: score the runs of a table against another gold file of the same text."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from ner_experiments.config.identity import NOT_THE_EXPERIMENT
from ner_experiments.config.row_settings import as_value
from ner_experiments.data.formats.columns import parse_columns
from ner_experiments.tables import sweeps
from ner_experiments.tables.experiments import root
from ner_experiments.utils.arguments import argument

RESULTS = Path("results")
COLUMNS: dict[str, int | str] = {"word": 0, "tag": -1}
"""The columns of the gold file by default."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = (
        "Score the finished runs of a table against another gold file of the same text, such as a corrected one, by "
        "the tags that they predicted on test: F1 by either gold, the two rankings of the rows, and the claims whose "
        "verdict changes. Tokens and sentences may be cut otherwise: mentions are compared by characters."
    )
    text = (
        "a table of sweeps/ or a recorded sweep, then overrides with which its runs were made, such as data=weibo; or "
        "the overrides of a sweep, such as model=residual layers=2,3; or NAME=FILES with predictions of any tool and, "
        "in the column before them, their own gold"
    )
    parser.add_argument("items", nargs="+", metavar="TABLE|OVERRIDE", help=text)
    text = "a file of columns, with tags in any scheme"
    parser.add_argument("--gold", type=Path, required=True, metavar="FILE", help=text)
    parser.add_argument(
        "--columns",
        type=columns,
        default=COLUMNS,
        metavar="word=0,tag=-1",
        help="columns of FILE by number, from 0, or from -1 at the end, or by their names in the first line",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.add_argument("--output", metavar="DIR", help="folder of the runs (outputs)")


@argument
def columns(text: str) -> dict[str, int | str]:
    return {**COLUMNS, **parse_columns(text)}


def run(arguments: argparse.Namespace) -> None:
    """Print the scores by either gold. Raises ValueError or OSError for user errors."""
    from ner_experiments.comparison import systems  # slow to import: SciPy
    from ner_experiments.tables import claims, pages
    from ner_experiments.tables.rescore import Gold, decide_again, rescore
    from ner_experiments.tables.rescored_page import RescoredView, not_rescored
    from ner_experiments.utils.terminal import print_markdown

    output = [] if arguments.output is None else [f"output_dir={as_value(arguments.output)}"]
    gold = Gold.read(arguments.gold, arguments.columns)
    overrides: list[str] = []
    if systems.are_files(arguments.items):
        page = systems.score(systems.parsed(arguments.items), None).page
        table = page.table
    else:
        table, overrides = sweeps.requested(arguments.items, output)
        if table.analysis:
            raise ValueError(f"{table.name} is made from the runs of {table.analysis}; rescore those")
        if table.command:
            raise ValueError(f"{table.name}: its rows are no training runs; `{table.command}` measures them")
        page = pages.page(table, overrides, RESULTS)
    places = [item for item in overrides if root(item) in NOT_THE_EXPERIMENT]
    rescored = rescore(page, gold, places)
    if not rescored.other.runs:
        reasons = not_rescored(rescored)
        raise ValueError("\n".join([f"{table.name}: no finished run of it can be rescored", *reasons]))
    path = RESULTS / claims.FILE
    ledger = claims.read(path) if path.is_file() else ()
    view = RescoredView(rescored, gold, *decide_again(ledger, rescored, gold, RESULTS, places))
    if arguments.json:
        print(view.json(), end="")
    else:
        print_markdown(view.markdown(as_typed(arguments)))


def as_typed(arguments: argparse.Namespace) -> str:
    """The command with these arguments as a line for a shell."""
    line = ["ner-experiments", "rescore", *arguments.items, "--gold", str(arguments.gold)]
    if arguments.columns != COLUMNS:
        line += ["--columns", ",".join(f"{name}={column}" for name, column in arguments.columns.items())]
    return shlex.join(line if arguments.output is None else [*line, "--output", arguments.output])
