"""`ner-experiments rescore NAME --gold FILE`: score the runs of a table against another gold file of the same text."""

from __future__ import annotations

import argparse
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ner_experiments.comparison.arguments import add_reading_arguments, columns, how_to_read

if TYPE_CHECKING:
    from ner_experiments.tables.rescored_page import RescoredView

RESULTS = Path("results")
COLUMNS: dict[str, int | str] = {"word": 0, "tag": -1}
"""The columns of the gold file of a table by default; those of files of predictions are detected."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = (
        "Score the finished runs of a table, or files of predictions, against another gold file of the same text, such "
        "as a corrected one, by the tags that they predicted on test: F1 by either gold, the two rankings of the rows, "
        "and the claims whose verdict changes. Tokens and sentences may be cut otherwise: mentions are compared by "
        "characters."
    )
    text = (
        "a table of sweeps/ or a recorded sweep, then overrides with which its runs were made, such as data=weibo; or "
        "the overrides of a sweep, such as model=residual layers=2,3; or NAME=FILES with predictions of any tool, as "
        "`compare` takes them"
    )
    parser.add_argument("items", nargs="+", metavar="TABLE|OVERRIDE|NAME=FILES", help=text)
    text = "the other gold mentions: columns, with tags in any scheme; for files of predictions, any format"
    parser.add_argument("--gold", type=Path, required=True, metavar="FILE", help=text)
    text = "own gold of files of predictions; without it, they have it in the column before the last, as conlleval's"
    parser.add_argument("--own-gold", type=Path, metavar="FILE", help=text)
    text = "as --gold-columns, of the own gold"
    parser.add_argument("--own-gold-columns", type=columns, metavar="word=0,tag=3", help=text)
    add_reading_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.add_argument("--output", metavar="DIR", help="folder of the runs (outputs)")


def run(arguments: argparse.Namespace) -> None:
    """Print the scores by either gold. Raises ValueError or OSError for user errors."""
    from ner_experiments.comparison.systems import are_files  # slow to import: SciPy
    from ner_experiments.utils.terminal import print_markdown

    if are_files(arguments.items):
        view, command = of_files(arguments), ""
    else:
        view, command = of_table(arguments), as_typed(arguments)
    if arguments.json:
        print(view.json(), end="")
    else:
        print_markdown(view.markdown(command))


def of_files(arguments: argparse.Namespace) -> RescoredView:
    """Files of predictions, scored by both golds as `compare` scores them."""
    from ner_experiments.comparison import systems  # slow to import: SciPy
    from ner_experiments.tables.rescored import Rescored
    from ner_experiments.tables.rescored_page import RescoredView

    (found, _), how = systems.parsed(arguments.items), how_to_read(arguments)
    by_own = how | {"gold": arguments.own_gold, "gold_columns": arguments.own_gold_columns}
    own, other = (systems.score(found, **it) for it in (by_own, how))
    systems.check_renamed(own, other)
    return RescoredView(Rescored(arguments.gold, other.gold.num_mentions, own.page, own.page, other.page))


def of_table(arguments: argparse.Namespace) -> RescoredView:
    """The runs of a table by both golds, and the claims about them."""
    # slow to import: Hydra
    from ner_experiments.comparison.reading import decoded, without_settings
    from ner_experiments.config.choices import as_value
    from ner_experiments.config.identity import NOT_THE_EXPERIMENT
    from ner_experiments.config.row_settings import root
    from ner_experiments.tables import claims, pages, sweeps
    from ner_experiments.tables.rescore import Gold, decide_again, rescore
    from ner_experiments.tables.rescored_page import RescoredView, not_rescored

    of_files = ("own_gold", "own_gold_columns", "columns", "map", "missing")
    if option := next((name for name in of_files if getattr(arguments, name)), ""):
        rule = "belongs to files of predictions, NAME=FILES"
        raise ValueError(f"--{option.replace('_', '-')} {rule}; --gold-columns are those of the gold file")
    output = [] if arguments.output is None else [f"output_dir={as_value(arguments.output)}"]
    read = partial(Gold.read, arguments.gold, arguments.gold_columns or COLUMNS)
    gold = decoded(lambda it: without_settings(lambda: read(it)), arguments.gold, arguments.encoding)
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
    return RescoredView(rescored, *decide_again(ledger, rescored, gold, RESULTS, places))


def as_typed(arguments: argparse.Namespace) -> str:
    """The command with these arguments as a line for a shell."""
    line = ["ner-experiments", "rescore", *arguments.items, "--gold", str(arguments.gold)]
    if arguments.gold_columns:
        stated = (f"{name}={column}" for name, column in arguments.gold_columns.items())
        line += ["--gold-columns", ",".join(stated)]
    if arguments.encoding:
        line += ["--encoding", arguments.encoding]
    return shlex.join(line if arguments.output is None else [*line, "--output", arguments.output])
