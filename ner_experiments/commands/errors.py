"""`ner-experiments errors RUN [RUN ...] [--json]`: analyze the errors of runs and compare them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from ner_experiments.analysis import row_errors
from ner_experiments.analysis.disagreements import Agreement, code_block
from ner_experiments.analysis.row_errors import (
    Mean,
    MeanBin,
    MeanBucket,
    MeanCalibration,
    MeanConfusion,
    RowErrors,
    RowPair,
    explain_intervals,
)
from ner_experiments.analysis.statistics import Summary
from ner_experiments.tables.sweeps import named_runs
from ner_experiments.utils.terminal import print_markdown
from ner_experiments.utils.text import markdown_table, percent

Grid = list[list[str]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "Errors on test by kind and by group of mentions, with intervals, confusion of types and calibration. "
        "Runs that differ only in the seed form one row; rows on the same test set are compared pairwise."
    )
    parser.description = text
    text = "the folder of a finished run, the file of an archived run in results/, or a table or sweep for all its runs"
    parser.add_argument("runs", nargs="+", metavar="RUN", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    text = "number of sentences shown that one row tags correctly more often than the other (5)"
    parser.add_argument("--sentences", type=int, default=5, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    if arguments.sentences < 0:
        raise ValueError(f"--sentences must be at least 0, got {arguments.sentences}")
    seed_groups = row_errors.rows(named_runs(arguments.runs))
    pairs = row_errors.pairs(seed_groups)
    if not arguments.json:
        print_markdown(markdown(seed_groups, pairs, arguments.sentences))
        return 0
    content = {
        "rows": [row.record() for row in seed_groups],
        "pairs": [pair.record(arguments.sentences) for pair in pairs],
    }
    print(json.dumps(content, indent=2, ensure_ascii=False))
    return 0


def markdown(rows: Sequence[RowErrors], pairs: Sequence[RowPair], sentences: int) -> str:
    """The page of all rows and pairs of rows, with up to `sentences` sentences per pair."""
    numbers = {row.identity: number for number, row in enumerate(rows, start=1)}
    parts = [part for row in rows for part in row_parts(row, numbers[row.identity])]
    for pair in pairs:
        parts += pair_parts(pair, numbers[pair.first.identity], numbers[pair.second.identity], sentences)
    return "\n\n".join(parts) + "\n"


def row_parts(row: RowErrors, number: int) -> list[str]:
    """Heading, runs and tables of a row."""
    runs = "\n".join(f"- seed {seed}: `{run.folder}`" for seed, run in row.runs.items())
    kinds, confusion, calibration = row.kinds(), row.confusion(), row.calibration()
    means = [*kinds.values(), *(group.f1 for groups in row.breakdown.values() for group in groups.values())]
    sections = {"Looser scores": scores_grid(row.looser_scores())}
    sections |= {"Errors by kind": kinds_grid(kinds)}
    sections |= {f"By {name}": groups_grid(groups) for name, groups in row.breakdown.items()}
    if confusion:
        sections["Gold type (row) and predicted type (column)"] = confusion_grid(confusion)
    if calibration:
        means += calibration.means
        sections["Calibration of the probabilities"] = calibration_grid(calibration)
    tables = [f"### {title}\n\n{aligned_table(grid)}" for title, grid in sections.items() if len(grid) > 1]
    scores = ", ".join(f"{run.score:.2f}" for run in row.runs.values())
    text = f"Scores on test: {scores}. {explain_intervals(means)}".rstrip()
    return [f"## {number}. {row.name}", f"{runs}\n\n{text}", *tables]


def scores_grid(scores: dict[str, Summary]) -> Grid:
    """Scores in percent; with a column of intervals unless they are those of a single run."""
    if all(it.low is None for it in scores.values()):
        return [["", "%"], *([name, percent(it.mean)] for name, it in scores.items())]
    return [["", "%", "95 %"], *([name, percent(it.mean), brackets(it)] for name, it in scores.items())]


def kinds_grid(kinds: dict[str, Mean]) -> Grid:
    head = ["", "% of gold mentions", "95 %"]
    return [head, *([kind, percent(mean.value), brackets(mean)] for kind, mean in kinds.items())]


def groups_grid(groups: dict[str, MeanBucket]) -> Grid:
    return [
        ["", "gold", "precision", "recall", "F1", "95 %"],
        *(
            [
                name,
                f"{group.gold:,}",
                percent(group.precision),
                percent(group.recall),
                percent(group.f1.value),
                brackets(group.f1),
            ]
            for name, group in groups.items()
        ),
    ]


def confusion_grid(confusion: MeanConfusion) -> Grid:
    rows = zip(confusion.names, confusion.counts, strict=True)
    return [["", *confusion.names], *([name, *map(count, row)] for name, row in rows)]


def calibration_grid(calibration: MeanCalibration) -> Grid:
    bins = [calibration_line(each) for each in calibration.bins]
    error = ["expected error", "", "", percent(calibration.error.value), brackets(calibration.error)]
    return [["probability", "mentions", "mean", "correct", "95 %"], *bins, error]


def calibration_line(each: MeanBin) -> list[str]:
    edges, correct = f"{each.start:.1f} to {each.end:.1f}", each.correct
    return [edges, f"{each.count:,}", percent(each.mean), percent(correct.value), brackets(correct)]


def pair_parts(pair: RowPair, first: int, second: int, sentences: int) -> list[str]:
    """Heading, tables of agreement and sentences of two rows."""
    agreements = pair.agreements
    head = ["gold mentions found by", "both", f"only {first}", f"only {second}", "neither"]
    grids = {"": [agreement_line("all", agreements.total)]}
    for dimension, groups in agreements.groups.items():
        grids[f"by {dimension}"] = [agreement_line(name, group) for name, group in groups.items()]
    tables = [aligned_table([[name or head[0], *head[1:]], *grid]) for name, grid in grids.items()]
    title = f"## {first} and {second}, mention by mention"
    return [
        title,
        f"Means over {agreements.pairs} {'pair' if agreements.pairs == 1 else 'pairs'} of runs.",
        *tables,
        *sentence_parts(pair, sentences),
    ]


def sentence_parts(pair: RowPair, sentences: int) -> list[str]:
    if not pair.cases:
        return []
    runs = [*pair.first.predicted(), *pair.second.predicted()]
    listed = "\n".join(f"{number}. `{folder}`" for number, folder in enumerate(runs, start=1))
    title = f"### {len(pair.cases):,} sentences that one row tags correctly more often"
    return [title, listed, *map(code_block, pair.cases[:sentences])]


def agreement_line(name: str, agreement: Agreement) -> list[str]:
    numbers = (agreement.both, agreement.first, agreement.second, agreement.neither)
    return [name, *map(count, numbers)]


def aligned_table(grid: Grid) -> str:
    """Markdown table with padded cells: the first column left-aligned, the others right-aligned."""
    first, *others = (max(map(len, column)) for column in zip(*grid, strict=True))
    rule = ["-" * first, *("-" * (width - 1) + ":" for width in others)]
    lines = [
        [name.ljust(first), *map(str.rjust, cells, others)] for name, *cells in (grid[0], rule, *grid[1:])
    ]
    return markdown_table(*lines)


def count(value: float) -> str:
    """A mean count, with one decimal unless it is an integer."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def brackets(mean: Mean | Summary) -> str:
    """The interval, or nothing where there is none."""
    return "" if mean.low is None or mean.high is None else f"[{percent(mean.low)}, {percent(mean.high)}]"
