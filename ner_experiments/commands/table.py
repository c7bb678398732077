"""`ner-experiments table`: a published table or a sweep next to its finished runs, or the list of all tables."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ner_experiments.config.row_settings import as_value
from ner_experiments.tables import experiments, spec, sweeps
from ner_experiments.tables.results_folder import summaries
from ner_experiments.tables.spec import Table

if TYPE_CHECKING:
    from ner_experiments.tables.scores import Page

FORMATS = ("latex", "csv", "json")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status. Raises ValueError or OSError for user errors."""
    if not arguments.items:
        if arguments.archive or arguments.over or arguments.format or arguments.output:
            raise ValueError("--archive, --over, --output and formats require a table: table NAME ...")
        print_list(Path("results"))
    elif arguments.archive is not None:
        print(f"archived in {archive(arguments)}")
    else:
        print(rendered(arguments), end="")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "Print a published table next to the finished runs of its rows, or a sweep with the differences between its "
        "rows. Without a name, list all tables and recorded sweeps."
    )
    parser.description = text
    text = (
        "a table of sweeps/ or a recorded sweep, then overrides with which its runs were made, such as data=weibo; "
        "or the overrides of a sweep, such as model=residual layers=2,3"
    )
    parser.add_argument("items", nargs="*", metavar="NAME|OVERRIDE", help=text)
    text = "collect finished runs with these overrides, which need not have been one sweep"
    parser.add_argument("--over", action="store_true", help=text)
    output = parser.add_mutually_exclusive_group()
    for name in FORMATS:
        output.add_argument(f"--{name}", dest="format", action="store_const", const=name)
    text = "archive its runs in a folder of DIR (results), with a page"
    results = Path("results")
    output.add_argument("--archive", "--keep", type=Path, metavar="DIR", nargs="?", const=results, help=text)
    parser.add_argument("--output", metavar="DIR", help="folder of the runs (outputs)")


def print_list(results: Path) -> None:
    """Print all tables and recorded sweeps, one per line; for tables with archived runs also how much is measured."""
    archived = summaries(results)
    for table in [*map(spec.load, spec.names()), *sweeps.recorded(experiments.output_dir([]))]:
        measured = max(
            archived.get(table.name, []),
            key=lambda it: (not it["settings"], bool(it["best_row"]), it["runs"]),
            default=None,
        )
        state = "" if measured is None else f"; {state_of(measured)}"
        print(f"{table.name:<24} {table.title} ({table.source}){state}")


def state_of(summary: Mapping[str, Any]) -> str:
    """`8 of 8 rows, 3 seeds, published best row: open`."""
    seeds = summary["seeds"][1]
    parts = [f"{summary['measured']} of {summary['rows']} rows", f"up to {seeds} seed{'s' * (seeds > 1)}"]
    if summary["best_row"]:
        parts.append(f"published best row: {summary['best_row']}")
    return ", ".join(parts)


def rendered(arguments: argparse.Namespace) -> str:
    """The table in the requested format; Markdown ends with the folders of its runs."""
    from ner_experiments.tables import render  # slow to import: SciPy

    table, overrides = requested(arguments)
    page = collected(table, overrides, Path("results"))
    if arguments.format:
        return {"latex": render.latex, "csv": render.as_csv, "json": render.as_json}[arguments.format](page)
    text = render.markdown(page)
    return f"{text}\n{places(page)}\n" if page.runs else text


def collected(table: Table, overrides: list[str], results: Path) -> Page:
    """The table with its runs in outputs and, if it is a published one, those archived in `results`.

    If no run has the requested settings and no overrides ask for them, the runs whose settings deviate least.
    """
    from ner_experiments.tables.scores import collect  # slow to import: SciPy

    if table.is_sweep or not results.is_dir():
        return collect(table, overrides)
    from ner_experiments.report.entries import entries, is_measured  # slow to import: Matplotlib

    output = experiments.output_dir(overrides)
    own = [item for item in overrides if experiments.root(item) != "output_dir"]
    candidates = entries(results, output if output.is_dir() else None, [table], own)
    asked = sorted(experiments.deviations(table, own)) if not table.command else []
    exact = [it.page for it in candidates if sorted(it.page.deviations) == asked]
    if exact and (exact[0].runs or exact[0].trials or own):
        return exact[0]
    others = sorted((it for it in candidates if is_measured(it)), key=lambda it: len(it.page.deviations))
    if others and not own:
        return others[0].page
    return exact[0] if exact else collect(table, overrides)


def places(page: Page) -> str:
    """The number of runs in each folder."""
    folders = Counter(str(run.folder.parents[1]) for run in page.runs)
    return "Runs: " + ", ".join(f"{number} in {folder}" for folder, number in folders.items()) + "."


def archive(arguments: argparse.Namespace) -> Path:
    from ner_experiments.tables import results_folder  # slow to import: SciPy
    from ner_experiments.tables.scores import collect

    return results_folder.add(collect(*requested(arguments)), arguments.archive)


def requested(arguments: argparse.Namespace) -> tuple[Table, list[str]]:
    return sweeps.requested(arguments.items, output_overrides(arguments), unrecorded=arguments.over)


def output_overrides(arguments: argparse.Namespace) -> list[str]:
    return [] if arguments.output is None else [f"output_dir={as_value(arguments.output)}"]
