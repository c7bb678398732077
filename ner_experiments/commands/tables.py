"""`ner-experiments tables`: regenerate the pages of results/."""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = "Regenerate the pages of results/ from the archived runs."
    parser.add_argument("folder", nargs="?", type=Path, default=Path("results"), metavar="DIR")


def run(arguments: argparse.Namespace) -> None:
    """Write the pages, and print their paths."""
    from ner_experiments.tables import claims_page, paper_pages, results_folder  # slow to import: torch

    results_folder.check_is_there(arguments.folder, "DIR")
    read = cache(results_folder.read)  # the pages of tables, claims and papers show the same runs
    for folder in results_folder.write_all(arguments.folder, read):
        print(folder / results_folder.PAGE)
    pages = [*claims_page.write(arguments.folder, read), *paper_pages.write_all(arguments.folder, read)]
    for page in pages:
        print(page)
