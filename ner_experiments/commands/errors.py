"""`ner-experiments errors RUN [RUN ...] [--json]`: analyze the errors of runs and compare them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ner_experiments.analysis import row_errors
from ner_experiments.analysis.disagreements import Agreement
from ner_experiments.analysis.error_grids import error_grids
from ner_experiments.analysis.row_errors import RowErrors, RowPair, explain_intervals
from ner_experiments.analysis.sentences import (
    ERRORS_EXPLAINED,
    NAMES,
    WrongSentence,
    by_kind,
    of_cases,
    types_of,
)
from ner_experiments.comparison.arguments import add_file_arguments, scored_files
from ner_experiments.utils.arguments import at_least
from ner_experiments.utils.text import as_json
from ner_experiments.view.mentions import Sentence, print_page
from ner_experiments.view.table import Grid


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "Errors on test by kind and by group of mentions, with intervals, confusion of types and calibration. "
        "Runs that differ only in the seed form one row; rows on the same test set are compared pairwise."
    )
    parser.description = text
    text = (
        "the folder of a finished run, the file of an archived run in results/, or a table or sweep for all its runs; "
        "or NAME=FILES with predictions of any tool, as `compare` takes them"
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help=text)
    add_file_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    text = "sentences of each kind: with most errors, with each kind of error, and where two rows differ (5)"
    parser.add_argument("--sentences", type=int, default=5, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> None:
    """Print the errors. Raises ValueError or OSError for user errors."""
    at_least(0, sentences=arguments.sentences)
    if compared := scored_files(arguments, arguments.runs):
        seed_groups = compared.rows
    else:
        from ner_experiments.tables.sweeps import named_runs  # imports Hydra, which files do without

        seed_groups = row_errors.rows(named_runs(arguments.runs))
    pairs = row_errors.pairs(seed_groups)
    if arguments.json:
        content = {
            "rows": [row.record(arguments.sentences) for row in seed_groups],
            "pairs": [pair.record(arguments.sentences) for pair in pairs],
        }
        print(as_json(content))
    else:
        print_page(page(seed_groups, pairs, arguments.sentences))


def page(rows: Sequence[RowErrors], pairs: Sequence[RowPair], sentences: int) -> list[str | Sentence]:
    """The parts of the page of all rows and pairs of rows, with up to `sentences` sentences of each kind."""
    numbers = {row.identity: number for number, row in enumerate(rows, start=1)}
    parts = [part for row in rows for part in row_parts(row, numbers[row.identity], sentences)]
    for pair in pairs:
        parts += pair_parts(pair, numbers[pair.first.identity], numbers[pair.second.identity], sentences)
    return parts


def row_parts(row: RowErrors, number: int, sentences: int) -> list[str | Sentence]:
    """Heading, runs, tables and sentences of a row."""
    runs = "\n".join(f"- seed {seed}: `{run.folder}`" for seed, run in row.runs.items())
    groups = [group.f1 for groups in row.breakdown.values() for group in groups.values()]
    calibration = row.calibration()
    means = [*row.kinds().values(), *groups, *(calibration.means if calibration else [])]
    tables = [f"### {title}\n\n{grid.aligned()}" for title, grid in error_grids(row, calibration).items()]
    scores = ", ".join(f"{run.score:.2f}" for run in row.runs.values())
    text = f"Scores on test: {scores}. {explain_intervals(means)}".rstrip()
    return [f"## {number}. {row.name}", f"{runs}\n\n{text}", *tables, *wrong_parts(row.wrong, sentences)]


def wrong_parts(wrong: Sequence[WrongSentence], most: int) -> list[str | Sentence]:
    """The sentences with most errors, and further ones with each kind of error."""
    types = types_of((it for one in wrong for it in one.by_seed.values()), wrong[0].task) if wrong else []
    parts: list[str | Sentence] = []
    found = {f"Sentences with errors: {len(wrong):,}, those with most first": wrong[:most]}
    found |= {f"Further ones: {NAMES[it]}": of_kind for it, of_kind in by_kind(wrong[most:], most).items()}
    for title, sentences in found.items():
        if sentences:
            explained = [] if parts else [f"Means over runs; {ERRORS_EXPLAINED[wrong[0].task]}"]
            parts += [f"### {title}", *explained, *(it.shown(types) for it in sentences)]
    return parts


def pair_parts(pair: RowPair, first: int, second: int, sentences: int) -> list[str | Sentence]:
    """Heading, tables of agreement and sentences of two rows."""
    agreements = pair.agreements
    head = ["gold mentions found by", "both", f"only {first}", f"only {second}", "neither"]
    grids = {"": [agreement_line("all", agreements.total)]}
    for dimension, groups in agreements.groups.items():
        grids[f"by {dimension}"] = [agreement_line(name, group) for name, group in groups.items()]
    tables = [Grid([name or head[0], *head[1:]], lines).aligned() for name, lines in grids.items()]
    title = f"## {first} and {second}, mention by mention"
    return [
        title,
        f"Means over {agreements.pairs} {'pair' if agreements.pairs == 1 else 'pairs'} of runs.",
        *tables,
        *sentence_parts(pair, sentences),
    ]


def sentence_parts(pair: RowPair, sentences: int) -> list[str | Sentence]:
    if not pair.cases:
        return []
    runs = [*pair.first.predicted(), *pair.second.predicted()]
    listed = "\n".join(f"{number}. `{folder}`" for number, folder in enumerate(runs, start=1))
    title = f"### {len(pair.cases):,} sentences that one row tags correctly more often"
    return [title, listed, *of_cases(pair.cases[:sentences])]


def agreement_line(name: str, agreement: Agreement) -> list[str]:
    numbers = (agreement.both, agreement.first, agreement.second, agreement.neither)
    return [name, *map(count, numbers)]


def count(value: float) -> str:
    """A mean count, with one decimal unless it is an integer."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"
