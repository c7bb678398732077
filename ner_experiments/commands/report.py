"""`ner-experiments report`: an HTML report of all results, as a folder of pages that opens from disk."""

from __future__ import annotations

import argparse
from pathlib import Path

from ner_experiments.config.row_settings import as_value
from ner_experiments.runs.provenance import commit
from ner_experiments.tables import spec, sweeps
from ner_experiments.tables.experiments import output_dir, root


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "Write a folder of HTML pages that opens from disk: every published table beside our scores, with plots, "
        "learning curves, cost and errors. For runs in their own folders it also has sentences and attention maps."
    )
    parser.description = text
    help = (
        "a table of sweeps/, a recorded sweep or a search (all), by its name or its overrides; or an override of "
        "the runs, such as data=weibo"
    )
    parser.add_argument("names", nargs="*", metavar="TABLE|OVERRIDE", help=help)
    parser.add_argument("--output", type=Path, default=Path("report"), metavar="DIR", help="(report)")
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="archived runs (results)"
    )
    parser.add_argument("--runs", type=Path, metavar="DIR", help="run folders (outputs, if it exists)")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status. Raises ValueError or OSError for errors of the user."""
    print(write(arguments))
    return 0


def write(arguments: argparse.Namespace) -> Path:
    """Write the report; return the path of its index."""
    if arguments.runs is not None and not arguments.runs.is_dir():
        raise ValueError(f"--runs: expected a folder of runs, got {arguments.runs}")
    from ner_experiments.report import entries, search_page  # slow to import: torch, Matplotlib
    from ner_experiments.report.write import write_report

    typed = [item for item in arguments.names if root(item) == "output_dir"]
    if arguments.runs is None and typed and not output_dir(typed).is_dir():
        raise ValueError(f"{typed[-1]}: there is no such folder")
    default = output_dir(typed)
    outputs = arguments.runs or (default if default.is_dir() else None)
    names = [item for item in arguments.names if "=" not in item]
    overrides = [item for item in arguments.names if "=" in item and item not in typed]
    place = [f"output_dir={as_value(str(outputs))}"] if outputs else []
    searched = [name for name in names if outputs and sweeps.find_search(name, outputs)]
    if names:
        output = output_dir([*overrides, *place])
        tables = [sweeps.find(name, output) for name in names if name not in searched]
    elif sweeps.is_sweep(overrides):
        table, overrides = sweeps.requested(overrides, place)
        tables = [table]
    else:
        recorded = [*sweeps.recorded(outputs)] if outputs else []
        tables = [*recorded, *map(spec.load, spec.names())]
    with_runs = entries.entries(arguments.results, outputs, tables, overrides)
    own = [entry for entry in with_runs if entry.page.table.is_sweep]
    published = [entry for entry in with_runs if entry not in own]
    everything = outputs if len(tables) >= len(spec.names()) else None
    own += entries.own_entries(everything, with_runs) if everything else []
    searches = search_page.find(outputs) if outputs and (everything or searched) else []
    if not everything:
        searches = [each for each in searches if each.search.name in searched]
    return write_report(published, arguments.results, arguments.output, commit(), own, searches)[0]
