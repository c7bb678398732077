"""`ner-experiments table [NAME] [--archive|--json]`: list tables, print one beside its runs, or archive these."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from ner_experiments.analysis.search_trials import Search
from ner_experiments.config.choices import as_value
from ner_experiments.config.identity import counted
from ner_experiments.config.row_settings import flat, root
from ner_experiments.runs.store import candidates, corpora_in
from ner_experiments.tables import experiments, spec, sweeps
from ner_experiments.tables.results_folder import Summary, summaries
from ner_experiments.tables.spec import Table
from ner_experiments.utils.text import as_json

if TYPE_CHECKING:
    from ner_experiments.tables.pairs import Pair
    from ner_experiments.tables.scores import Page, Result

FORMATS = ("latex", "csv", "json")
PAPER = Path("paper")
MOST_SETTINGS = 5
"""Settings that are named of a run which is not quite that of a row."""


def run(arguments: argparse.Namespace) -> None:
    """List, print or archive what is named. Raises ValueError or OSError for user errors."""
    if all(root(item) == "output_dir" for item in arguments.items):
        if any((arguments.archive, arguments.paper, arguments.over, arguments.format, arguments.on)):
            raise ValueError("--archive, --paper, --on, --over and formats require a table: table NAME ...")
        print_list(Path("results"), experiments.output_dir([*arguments.items, *output_overrides(arguments)]))
    elif (search := requested_search(arguments)) is not None:
        print_search(search, arguments)
    elif arguments.archive is not None:
        if arguments.on:
            raise ValueError("--on shows scores; --archive keeps those of all test sets without it")
        print(f"archived in {archive(arguments)}")
    else:
        write(arguments)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    text = (
        "Print a published table next to the finished runs of its rows, or a sweep with the differences between its "
        "rows. Without a name, list all tables, sweeps and searches."
    )
    parser.description = text
    text = (
        "a table of sweeps/, a recorded sweep or a search, then overrides with which its runs were made, such as "
        "data=weibo; or the overrides of a sweep, such as model=residual layers=2,3"
    )
    parser.add_argument("items", nargs="*", metavar="TABLE|OVERRIDE", help=text)
    text = "collect finished runs with these overrides, which need not have been one sweep"
    parser.add_argument("--over", action="store_true", help=text)
    text = "show the scores on a further test set, of runs that were made with audit.extra_tests={TEST: FILE}"
    parser.add_argument("--on", metavar="TEST", help=text)
    output = parser.add_mutually_exclusive_group()
    for name in FORMATS:
        output.add_argument(f"--{name}", dest="format", action="store_const", const=name)
    text = "archive its runs in a folder of DIR (results), with a page"
    results = Path("results")
    output.add_argument("--archive", type=Path, metavar="DIR", nargs="?", const=results, help=text)
    text = "write it for an article to a folder of DIR (paper): LaTeX, PDF figures, methods and BibTeX"
    output.add_argument("--paper", type=Path, metavar="DIR", nargs="?", const=PAPER, help=text)
    parser.add_argument("--output", metavar="DIR", help="folder of the runs (outputs)")


def print_list(results: Path, output: Path) -> None:
    """Print a line for each table, recorded sweep and search, with how much of it is measured.

    Composing rows is slow, so runs in `output` are looked up only for tables on the corpora of these runs.
    """
    archived = summaries(results)
    read = corpora_in(output)
    for table in [*map(spec.load, spec.names()), *sweeps.recorded(output)]:
        try:
            if table.is_sweep:
                state = state_of_sweep(table, output)
            elif table.analysis and archived.get(table.analysis):
                state = f"computed from the runs of {table.analysis}"
            else:
                state = state_of_published(table, archived.get(table.name, []), output, read)
        except (ValueError, OSError) as error:  # such as of a sweep that needs its --config-dir
            state = f"left out: {error}"
        print_item(table.name, f"{table.title} ({table.source}); {state}")
    for search in sweeps.searches(output):
        print_item(search.name, f"search over {', '.join(search.keys)}; {state_of_search(search)}")


def print_item(name: str, text: str) -> None:
    """Print a line of the list; on a terminal wrapped between words, behind the names."""
    line = f"{name:<24} {text}"
    width = os.get_terminal_size().columns if sys.stdout.isatty() else len(line)
    print(fill(line, width, subsequent_indent=" " * 25, break_on_hyphens=False))


def state_of_published(table: Table, archived: Sequence[Summary], output: Path, read: set[str]) -> str:
    """`3 of 9 rows, up to 5 seeds, published best row: undecided`, for archived runs and those in `output` together.

    archived: summaries of the archived runs, of which those with the paper's settings are preferred.
    read: the corpora of the runs in `output`.
    """
    measured = max(archived, key=lambda it: (not it.settings, bool(it.best_row), it.runs), default=None)
    if read:
        from ner_experiments.tables import pages  # slow to import: SciPy

        if not table.command and read & pages.corpora(table, ()):
            page = pages.page(table, [f"output_dir={as_value(str(output))}"], Path("results"))
            if page.runs:
                measured = Summary.of(page, output)
    return str(measured) if measured else f"0 of {len(table.rows)} rows"


def state_of_sweep(table: Table, output: Path) -> str:
    """`3 of 3 rows, up to 2 seeds, layers=3 leads: ahead of 1, 1 undecided`.

    On each test set with two rows or more, the row with the highest mean leads.
    """
    from ner_experiments.tables.collecting import collect
    from ner_experiments.tables.looks import at_looks  # slow to import: SciPy

    page = at_looks(collect(table, [f"output_dir={as_value(str(output))}"]))
    measured = [result for result in page.results if result.runs]
    text = f"{len(measured)} of {len(table.rows)} rows"
    if not measured:
        return text
    seeds = max(len(result.runs) for result in measured)
    text += f", up to {seeds} seed{'s' * (seeds > 1)}"
    from ner_experiments.tables.pairs import against_leaders
    from ner_experiments.tables.table_view import TableView

    leaders = "; ".join(map(state_of_leader, against_leaders(TableView(page).pairs)))
    return f"{text}, {leaders}" if leaders else text


def state_of_leader(against: Sequence[Pair]) -> str:
    """`layers=3 leads: ahead of 1, 1 undecided`."""
    verdicts = Counter(pair.verdict for pair in against)
    counts = [
        f"{name} {'to' if name == 'equal' else 'of'} {verdicts[name]}"
        for name in ("ahead", "behind", "equal")
        if verdicts[name]
    ]
    counts += [f"{verdicts['undecided']} undecided"] if verdicts["undecided"] else []
    return f"{against[0].labels[0]} leads: {', '.join(counts)}"


def state_of_search(search: Search) -> str:
    ranked = search.ranked
    text = f"{len(ranked)} of {search.n_trials} trials"
    return f"{text}, best dev {search.metric} {100 * (ranked[0].score or 0):.2f}" if ranked else text


def requested_search(arguments: argparse.Namespace) -> Search | None:
    """The search that the arguments name; None for other names, and for overrides."""
    name, *others = arguments.items
    output = experiments.output_dir([*others, *output_overrides(arguments)])
    return None if "=" in name else sweeps.find_search(name, output)


def print_search(search: Search, arguments: argparse.Namespace) -> None:
    from ner_experiments.launch import search_summary

    if arguments.archive or arguments.paper or arguments.over or arguments.format not in (None, "json"):
        raise ValueError(f"{search.name} is a search: it has no runs to archive, and no format but --json")
    if arguments.format:
        print(as_json(asdict(search)))
    else:
        search_summary.show(search)


def write(arguments: argparse.Namespace) -> None:
    """Print the table in the requested format, or drawn on a terminal and as Markdown elsewhere, with its folders."""
    from ner_experiments.tables import pages  # slow to import: SciPy
    from ner_experiments.tables.scores import on_test
    from ner_experiments.tables.table_view import TableView
    from ner_experiments.utils.terminal import print_markdown

    table, overrides = requested(arguments)
    page = pages.page(table, overrides, Path("results"))
    if arguments.over and not page.runs:
        print(
            "No finished run has these settings.", *nearest(table, overrides, page), sep="\n", file=sys.stderr
        )
    if arguments.on:
        page = on_test(page, arguments.on)
    view = TableView(page)
    if arguments.paper:
        from ner_experiments.tables import article

        print(*article.write(view, arguments.paper / table.name), sep="\n")
        for text in view.warnings:  # no part of an article
            print(text, file=sys.stderr)
        return
    if arguments.format == "csv" and table.is_sweep:
        print("The pairs of rows and the verdict are printed with --json instead of --csv.", file=sys.stderr)
    if arguments.format:
        print({"latex": view.latex, "csv": view.csv, "json": view.json}[arguments.format](), end="")
    else:
        print_markdown(f"{view.markdown()}\n{places(page)}\n" if page.runs else view.markdown())


def nearest(table: Table, overrides: Sequence[str], page: Page) -> Iterator[str]:
    """For each row, the finished run whose settings differ from it the least, with these settings.

    If none differs, why the page does not count it, such as other files.
    """
    missing = {result.row.label: result.missing for result in page.results}
    for experiment in experiments.experiments(table, overrides):
        wanted = dict(flat(counted(experiment.cfg)))
        found: list[tuple[Path, list[str]]] = []
        for folder, run in {run.folder.parent: run for run in candidates(experiment.cfg)}.items():
            try:
                settings = dict(flat(run.settings()))
            except (ValueError, OSError):  # such as a class of one's own without its --config-dir
                continue
            others = [f"{key}={value}" for key, value in settings.items() if wanted.get(key, ...) != value]
            found.append((folder, others + [f"no {key}" for key in wanted if key not in settings]))
        if found:
            folder, others = min(found, key=lambda it: len(it[1]))
            if not others and (reason := missing.get(experiment.row.label)):
                yield f"{experiment.row.label}: {reason}"
                continue
            more = f" and {len(others) - MOST_SETTINGS} more" if len(others) > MOST_SETTINGS else ""
            yield f"{experiment.row.label}: the nearest, {folder}, has {', '.join(others[:MOST_SETTINGS])}{more}"


def places(page: Page) -> str:
    """The folders of the runs: of a sweep, those of each row; else the number of runs in each."""
    if page.table.is_sweep:
        return "\n".join(
            ["Runs:", "", *(f"- {line}" for result in page.results for line in seeds_in(result))]
        )
    folders = Counter(str(run.folder.parents[1]) for run in page.runs)
    return "Runs: " + ", ".join(f"{number} in {folder}" for folder, number in folders.items()) + "."


def seeds_in(result: Result) -> Iterator[str]:
    """Lines such as "layers=2: `outputs/toy_en-...`: seed-1, seed-2"."""
    folders: dict[Path, list[str]] = {}
    for run in result.runs.values():
        folders.setdefault(run.folder.parent, []).append(run.folder.name)
    for folder, seeds in folders.items():
        yield f"{result.row.label}: `{folder}`: {', '.join(seeds)}"


def archive(arguments: argparse.Namespace) -> Path:
    from ner_experiments.tables import results_folder  # slow to import: SciPy
    from ner_experiments.tables.collecting import collect

    if arguments.over:
        raise ValueError("--archive keeps the runs of a table of sweeps/, and --over names none")
    return results_folder.add(collect(*requested(arguments)), arguments.archive)


def requested(arguments: argparse.Namespace) -> tuple[Table, list[str]]:
    table, overrides = sweeps.requested(
        arguments.items, output_overrides(arguments), unrecorded=arguments.over
    )
    return (replace(table, seeds=()) if arguments.over else table), overrides  # of all finished runs


def output_overrides(arguments: argparse.Namespace) -> list[str]:
    return [] if arguments.output is None else [f"output_dir={as_value(arguments.output)}"]
