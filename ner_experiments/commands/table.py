"""`ner-experiments table`: a published table beside its finished runs, or the list of all tables."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ner_experiments.config.row_settings import as_value
from ner_experiments.tables import spec

if TYPE_CHECKING:
    from ner_experiments.tables.scores import Page

FORMATS = ("latex", "csv", "json")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status. Raises ValueError or OSError for user errors."""
    if arguments.name is None:
        if arguments.keep or arguments.format or arguments.output:
            raise ValueError("--keep, --output and formats are of one table, named first: table NAME ...")
        for name in spec.names():
            table = spec.load(name)
            print(f"{name:<18} {table.title} ({table.source})")
    elif arguments.keep is not None:
        print(f"kept in {keep(arguments)}")
    else:
        print(rendered(arguments), end="")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = "A published table beside the finished runs that belong to its rows; without a name: all tables."
    parser.description = text
    parser.add_argument("name", nargs="?", metavar="NAME", help="a table of sweeps/")
    parser.add_argument(
        "overrides", nargs="*", metavar="OVERRIDE", help="with which the runs were made, such as data=weibo"
    )
    output = parser.add_mutually_exclusive_group()
    for name in FORMATS:
        output.add_argument(f"--{name}", dest="format", action="store_const", const=name)
    text = "copy its runs into a folder of DIR (results), and write the page there"
    output.add_argument("--keep", type=Path, metavar="DIR", nargs="?", const=Path("results"), help=text)
    parser.add_argument("--output", metavar="DIR", help="where the runs lie (outputs)")


# The tables' modules import torch, for which `table` without a name does not wait.


def rendered(arguments: argparse.Namespace) -> str:
    from ner_experiments.tables import render

    formats = {"latex": render.latex, "csv": render.as_csv, "json": render.as_json}
    return formats.get(arguments.format, render.markdown)(page(arguments))


def keep(arguments: argparse.Namespace) -> Path:
    from ner_experiments.tables import results_folder

    return results_folder.add(page(arguments), arguments.keep)


def page(arguments: argparse.Namespace) -> Page:
    from ner_experiments.tables.scores import collect

    extra_overrides = list(arguments.overrides)
    if arguments.output is not None:
        extra_overrides.append(f"output_dir={as_value(arguments.output)}")
    return collect(spec.load(arguments.name), extra_overrides)
