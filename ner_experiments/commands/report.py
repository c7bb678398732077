"""`ner-experiments report [TABLE|RUN ...]`: build an HTML report of all results or some."""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ner_experiments.config.choices import as_value
from ner_experiments.config.compose import resolved
from ner_experiments.config.config_dirs import CONF, own_group_folders
from ner_experiments.config.row_settings import root
from ner_experiments.runs import artifacts
from ner_experiments.runs.code import outdated
from ner_experiments.runs.progress import PROGRESS_FILE
from ner_experiments.runs.provenance import commit
from ner_experiments.runs.store import is_row
from ner_experiments.tables import spec, sweeps
from ner_experiments.tables.experiments import counts, output_dir
from ner_experiments.utils.arguments import interval

FOLDER = "report"
READ = (".json", ".yaml", ".csv", ".conll", ".safetensors")
"""Suffixes of files that a report reads."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "Write a folder of HTML pages that opens from disk: every published table beside our scores, with plots, "
        "learning curves, cost and errors. For runs in their own folders it also has sentences and attention maps."
    )
    parser.description = text
    help = (
        "a table of sweeps/, a recorded sweep or a search (all), by its name or its overrides; an override of "
        "the runs, such as data=weibo; or the folder of a run, of a row's runs or of rows, for these alone"
    )
    parser.add_argument("names", nargs="*", metavar="TABLE|OVERRIDE|RUN", help=help)
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="(outputs/report, or with --runs DIR/report)"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="archived runs (results)"
    )
    parser.add_argument("--runs", type=Path, metavar="DIR", help="run folders (outputs, if it exists)")
    help = "rebuild the pages every N seconds until the named tables, or else all recorded sweeps, have ended"
    parser.add_argument("--every", type=interval, metavar="N", help=help)


def run(arguments: argparse.Namespace) -> None:
    """Write the report, and print its first page. Raises ValueError or OSError for user errors."""
    try:
        while arguments.every and follow(arguments):
            time.sleep(arguments.every)
    except KeyboardInterrupt:
        pass
    print(write(arguments))


def follow(arguments: argparse.Namespace) -> bool:
    """Write the report with how far each sweep is, and say so; return whether one has still to run."""
    progress: dict[str, str] = {}
    page = write(arguments, progress)
    for name, text in progress.items():
        print(f"{page}: {name}, {text}", file=sys.stderr, flush=True)
    return bool(progress)


@dataclass(frozen=True)
class Request:
    """Tables, searches by their names, and runs in their own folders, which a report shows.

    overrides: settings of the runs. only: no runs of other settings beside them. everything: all that there is, or,
    if `only`, all of these settings.
    """

    tables: Sequence[spec.Table]
    overrides: Sequence[str]
    searches: Sequence[str] = ()
    folders: Sequence[Path] = ()
    only: bool = False
    everything: bool = False

    @classmethod
    def of(
        cls, asked: Sequence[str], folders: Sequence[Path], outputs: Path | None, place: Sequence[str]
    ) -> Request:
        """asked: names and overrides. place: the override that says where the runs are."""
        names = [item for item in asked if "=" not in item]
        overrides = [item for item in asked if "=" in item]
        if path := next((item for item in names if "/" in item), None):
            raise ValueError(f"{path}: there is no such folder of runs")
        if names:
            searches = [name for name in names if outputs and sweeps.find_search(name, outputs)]
            sweeps_in = output_dir([*overrides, *place])
            tables = [sweeps.find(name, sweeps_in) for name in names if name not in searches]
            return cls(tables, overrides, searches, folders, only=True)
        if folders:
            return cls([], overrides, folders=folders)
        if sweeps.is_sweep(overrides):
            table, where = sweeps.requested(overrides, place)
            return cls([table], where)
        recorded = sweeps.recorded(outputs) if outputs else []
        tables = [*recorded, *map(spec.load, spec.names())]
        return cls(tables, overrides, only=any(map(counts, overrides)), everything=True)


def write(arguments: argparse.Namespace, progress: dict[str, str] | None = None) -> Path:
    """Write the report, unless nothing has changed since; return the page to open first.

    progress: gets how far each sweep is that has not ended, by its name; then the page says so, and reloads itself.
    """
    if arguments.runs is not None and not arguments.runs.is_dir():
        raise ValueError(f"--runs: expected a folder of runs, got {arguments.runs}")
    from ner_experiments.report.write import is_up_to_date, write_report

    known = {*spec.names(), *sweeps.names(output_dir([]))}
    asked = [item for item in arguments.names if item in known or not Path(item).is_dir()]
    folders = [Path(item) for item in arguments.names if item not in asked]
    if arguments.runs is not None and is_row(arguments.runs):
        folders.append(arguments.runs)
    typed = [item for item in asked if root(item) == "output_dir"]
    if arguments.runs is not None and typed:
        raise ValueError(f"--runs {arguments.runs}, {typed[-1]}: expected one folder of runs")
    folder = arguments.runs or output_dir(typed)
    if arguments.runs is None and typed and not folder.is_dir():
        raise ValueError(f"{typed[-1]}: there is no such folder")
    output = arguments.output or folder / FOLDER
    outputs = folder if folder.is_dir() and {*folder.iterdir()} - {output} else None
    stamp = stamp_of(arguments.names, [Path.cwd() / arguments.results, outputs, *folders], output)
    if progress is None and (page := is_up_to_date(output, commit(), stamp)):
        return page
    from ner_experiments.report import entries, own_runs, search_page

    place = [f"output_dir={as_value(str(outputs))}"] if outputs else []
    request = Request.of([item for item in asked if item not in typed], folders, outputs, place)
    whole = request.everything and not request.only
    found = entries.entries(
        arguments.results, outputs, request.tables, request.overrides,
        only=request.only, measured=request.only and request.everything,
    )  # fmt: skip
    if progress is not None:
        stamp = ""  # the plain pages are written at the end, even if no file has changed since
        # of all tables, most are never run
        followed = [it.page.table for it in found if it.is_own or not request.everything]
        progress |= progress_of(followed, [*request.overrides, *place])
        found = [
            replace(it, progress=progress.get(it.page.table.name, ""), seconds=arguments.every)
            for it in found
        ]
    if folders or (request.everything and outputs):
        reuse = "any" if folders else resolved(tuple(request.overrides))["runtime"]["reuse"]
        found += own_runs.own_entries(outputs or folder, found, reuse, folders, request.overrides)
    searches = search_page.find(outputs) if outputs and (whole or request.searches) else []
    searches = [each for each in searches if whole or each.search.name in request.searches]
    return write_report(found, arguments.results if whole else None, output, commit(), searches, stamp)


def progress_of(tables: Sequence[spec.Table], overrides: Sequence[str]) -> dict[str, str]:
    """`7 of 18 done, 2 running, about 3:40 left at 14:28:20` for each table that has not ended, by its name."""
    from ner_experiments.launch.sweep_progress import SweepProgress  # slow to import: Hydra's launchers

    found = {table.name: SweepProgress.of_sweep(table, overrides) for table in tables}
    now = f"{datetime.now():%H:%M:%S}"
    return {name: f"{it.counts()} at {now}" for name, it in found.items() if not it.has_ended}


def stamp_of(names: Sequence[str], places: Sequence[Path | None], output: Path) -> str:
    """Digest of the arguments, and of size and time of all that a report reads: tables, conf/, and files of runs.

    So is what has changed of the code that the runs depend on.
    """
    seen: list[Any] = []
    codes: dict[bytes, Path] = {}
    for place in (CONF, *own_group_folders(), spec.SWEEPS, *filter(None, places)):
        for folder, folders, files in os.walk(place):
            if Path(folder) == output:
                folders.clear()
                continue
            folders.sort()
            for name in sorted(files):
                if name.endswith(READ) and name != PROGRESS_FILE:  # not read, and written all the time
                    status = os.stat(os.path.join(folder, name))
                    seen.append((folder, name, status.st_size, status.st_mtime_ns))
                if name == artifacts.CODE:
                    codes.setdefault((path := Path(folder, name)).read_bytes(), path)
    seen += sorted(map(outdated, codes.values()))
    return hashlib.sha256(repr((names, places, seen)).encode()).hexdigest()
