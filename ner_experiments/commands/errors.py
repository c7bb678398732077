"""The errors of rows of runs, as Markdown that can be read in a terminal.

`ner-experiments errors`: what kinds of errors runs make, on which mentions, and which ones differ.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from ner_experiments.analysis.disagreements import Agreement
from ner_experiments.analysis.seeds import (
    Comparison,
    Mean,
    MeanBin,
    MeanBucket,
    MeanCalibration,
    MeanConfusion,
    RowErrors,
)
from ner_experiments.commands.cases import block
from ner_experiments.utils.text import markdown_table

Grid = list[list[str]]


def page(rows: Sequence[RowErrors], compared: Sequence[Comparison], sentences: int) -> str:
    """`sentences`: how many to show of each two rows."""
    numbers = {row.identity: number for number, row in enumerate(rows, start=1)}
    parts = [part for row in rows for part in of_row(row, numbers[row.identity])]
    for pair in compared:
        parts += of_pair(pair, numbers[pair.first.identity], numbers[pair.second.identity], sentences)
    return "\n\n".join(parts) + "\n"


def of_row(row: RowErrors, number: int) -> list[str]:
    runs = "\n".join(f"- seed {seed}: `{run.folder}`" for seed, run in row.runs.items())
    confusion, calibration = row.confusion(), row.calibration()
    sections = {"Errors by kind": kinds(row.kinds())}
    sections |= {f"By {name}": buckets(found) for name, found in row.breakdown().items()}
    if confusion:
        sections["Gold type (row) and predicted type (column)"] = confused(confusion)
    if calibration:
        sections["Calibration of the probabilities"] = calibrated(calibration)
    tables = [f"### {title}\n\n{table(grid)}" for title, grid in sections.items() if len(grid) > 1]
    scores = ", ".join(f"{run.score:.2f}" for run in row.runs.values())
    return [f"## {number}. {row.name}", f"{runs}\n\nScores on test: {scores}. {intervals(row)}", *tables]


def intervals(row: RowErrors) -> str:
    if len(row.runs) > 1:
        return "Means over seeds; brackets are 95 % t-intervals over seeds."
    return "Brackets are 95 % bootstrap intervals over sentences, for this trained model."


def kinds(found: dict[str, Mean]) -> Grid:
    head = ["", "% of gold mentions", "95 %"]
    return [head, *([name, percent(it.value), brackets(it)] for name, it in found.items())]


def buckets(found: dict[str, MeanBucket]) -> Grid:
    return [
        ["", "gold", "precision", "recall", "F1", "95 %"],
        *(
            [name, f"{it.gold:,}", *map(percent, (it.precision, it.recall, it.f1.value)), brackets(it.f1)]
            for name, it in found.items()
        ),
    ]


def confused(found: MeanConfusion) -> Grid:
    rows = zip(found.names, found.counts, strict=True)
    return [["", *found.names], *([name, *map(count, row)] for name, row in rows)]


def calibrated(found: MeanCalibration) -> Grid:
    bins = [
        [edges(it), f"{it.count:,}", percent(it.mean), percent(it.correct.value), brackets(it.correct)]
        for it in found.bins
    ]
    error = ["expected error", "", "", percent(found.error.value), brackets(found.error)]
    return [["probability", "mentions", "mean", "right", "95 %"], *bins, error]


def edges(found: MeanBin) -> str:
    return f"{found.start:.1f} to {found.end:.1f}"


def of_pair(pair: Comparison, first: int, second: int, sentences: int) -> list[str]:
    found = pair.agreements
    head = ["gold mentions found by", "both", f"only {first}", f"only {second}", "neither"]
    grids = {"": [agreed("all", found.total)]}
    for dimension, groups in found.groups.items():
        grids[f"by {dimension}"] = [agreed(name, group) for name, group in groups.items()]
    tables = [table([[name or head[0], *head[1:]], *grid]) for name, grid in grids.items()]
    title = f"## {first} and {second}, mention by mention"
    return [
        title,
        f"Means over {found.pairs} {'pair' if found.pairs == 1 else 'pairs'} of runs.",
        *tables,
        *shown(pair, sentences),
    ]


def shown(pair: Comparison, sentences: int) -> list[str]:
    if not pair.cases:
        return []
    runs = [*pair.first.predicted(), *pair.second.predicted()]
    listed = "\n".join(f"{number}. `{folder}`" for number, folder in enumerate(runs, start=1))
    title = f"### {len(pair.cases):,} sentences that one of them gets right more often"
    return [title, listed, *map(block, pair.cases[:sentences])]


def agreed(name: str, found: Agreement) -> list[str]:
    return [name, count(found.both), count(found.first), count(found.second), count(found.neither)]


def table(grid: Grid) -> str:
    """The first column to the left, the others to the right."""
    first, *others = (max(map(len, column)) for column in zip(*grid, strict=True))
    rule = ["-" * first, *("-" * (width - 1) + ":" for width in others)]
    lines = [
        [name.ljust(first), *map(str.rjust, cells, others)] for name, *cells in (grid[0], rule, *grid[1:])
    ]
    return markdown_table(*lines)


def percent(value: float) -> str:
    return f"{100 * value:.2f}"


def count(value: float) -> str:
    """Of a mean: to one decimal, where it is not whole."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def brackets(figure: Mean) -> str:
    return f"[{percent(figure.low)}, {percent(figure.high)}]"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "Errors on test by kind and by group of mention, with intervals, confused types and calibration. "
        "Runs that differ in nothing but the seed are one row; each two rows of one test set are compared."
    )
    parser.description = text
    where = "the folder of a finished run, or a run's file in results/"
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help=where)
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    text = "how many sentences to show that one row gets right and another does not (5)"
    parser.add_argument("--sentences", type=int, default=5, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    print(printed(arguments), end="")
    return 0


def printed(arguments: argparse.Namespace) -> str:
    if arguments.sentences < 0:
        raise ValueError(f"--sentences must be at least 0, got {arguments.sentences}")
    from ner_experiments.analysis.seeds import compared, rows

    found = rows(arguments.runs)
    pairs = compared(found)
    if not arguments.json:
        return page(found, pairs, arguments.sentences)
    content = {
        "rows": [row.record() for row in found],
        "pairs": [pair.record(arguments.sentences) for pair in pairs],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
