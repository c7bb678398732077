"""results/: archived runs of published tables, and a page for each table computed from them alone.

A table's runs lie in results/TABLE, or in a folder of it if they deviate from the paper.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Annotated

from ner_experiments.analysis.archive import archive
from ner_experiments.config.choices import as_value
from ner_experiments.config.row_settings import is_number
from ner_experiments.runs import store
from ner_experiments.runs.store import RUNS, TABLE, without_folders
from ner_experiments.tables import spec
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.origin import cost
from ner_experiments.tables.pairs import published_best_holds
from ner_experiments.tables.scores import Page
from ner_experiments.tables.spec import Table
from ner_experiments.tables.table_view import TableView
from ner_experiments.utils.checks import Count, Number, Rule, String, Text, Texts, are_counts, parsed
from ner_experiments.utils.files import write_json
from ner_experiments.utils.text import json_object, markdown_table
from ner_experiments.view import cells

PAGE, INDEX, SUMMARIES = "README.md", "TABLES.md", "tables.jsonl"
INDEX_HEADINGS = ("table", "settings", "rows", "seeds", "runs", "hours", "published best row")
INDEX_LEGEND = (
    "Last column: whether the row with the best published number is ahead of all others in our runs (holds), behind "
    "one (does not hold), or neither (undecided), by tests over seeds on the paper's corpus."
)
MAX_NAME = 60
"""Maximum length of a folder's name."""
Read = Callable[[Path], Page]
"""`read`, or the same with a cache."""
FEWEST_AND_MOST = Rule(lambda it: are_counts(it) and len(it) == 2, "the fewest and the most of a row")
NAMELESS = ("true", "false", "null", "none", "")
"""Values that, like numbers, mean nothing in a folder's name without their key."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A line of tables.jsonl: how much of a table is measured, at what cost, and whether its best row is the paper's.

    rows, measured: numbers of rows. seeds: the fewest and the most of a measured row. place: its folder in results/.
    """

    table: Text
    settings: String
    stand_ins: Texts
    place: Text
    rows: Count
    measured: Count
    seeds: Annotated[tuple[int, ...], FEWEST_AND_MOST]
    runs: Count
    hours: Number
    best_row: String

    @classmethod
    def of(cls, page: Page, place: Path) -> Summary:
        number, time = cost(page.runs, page.trials)
        seeds = [len(result.scores) for result in page.results if result.scores]
        measured = replace(page, results=tuple(it for it in page.results if it.scores))
        return cls(
            table=page.table.name,
            settings=" ".join(page.deviations),
            stand_ins=tuple(measured.stand_ins),
            place=place.as_posix(),
            rows=len(page.results),
            measured=len(seeds),
            seeds=(min(seeds, default=0), max(seeds, default=0)),
            runs=number,
            hours=round(time, 1),
            best_row=published_best_holds(page),
        )

    def __str__(self) -> str:
        """`8 of 8 rows, up to 3 seeds, published best row: undecided`."""
        most = self.seeds[1]
        best = f", published best row: {self.best_row}" if self.best_row else ""
        return f"{self.measured} of {self.rows} rows, up to {most} seed{'s' * (most > 1)}{best}"

    @property
    def line(self) -> list[str]:
        """Its cells in TABLES.md."""
        return [
            f"[{self.table}]({self.place.replace(' ', '%20')}/{PAGE})",
            "; ".join(filter(None, [self.settings, *self.stand_ins])) or "the paper's",
            f"{self.measured} of {self.rows}",
            cells.numbers(self.seeds),
            f"{self.runs}",
            f"{self.hours:.1f}",
            self.best_row,
        ]


def add(page: Page, results: Path) -> Path:
    """Archive the runs of a page and write it; return its folder.

    Raises ValueError without runs, and for a table that is not in sweeps/, whose page could not be written again.
    """
    if page.table.name not in spec.names():
        raise ValueError(
            f"{page.table.name} is not a table of sweeps/, and only those are archived; to make it one, move its file "
            "from OUTPUT/sweeps/ to sweeps/"
        )
    if source := page.table.analysis:
        raise ValueError(f"{page.table.name} is made from the runs of {source}; archive those")
    runs = [(run, result.row.label) for result in page.results for run in result.runs.values()]
    if not runs:
        hint = f"; `{page.table.command} --output DIR` writes there" if page.table.command else ""
        raise ValueError(f"{page.table.name}: no finished runs to archive{hint}")
    place = (results, page.table.name, page.deviations)
    found = store.find_archive(*place)
    folder = found.folder if found else new_folder(*place)
    (folder / RUNS).mkdir(parents=True, exist_ok=True)
    write_json(folder / TABLE, {"table": page.table.name, "overrides": list(page.deviations)})
    for run, label in runs:
        name = f"{run.metrics['identity'][:12]}-seed-{run.metrics['seed']}.json"
        archive(run, folder / RUNS / name, label)
    write(folder)
    return folder


def new_folder(results: Path, name: str, overrides: Sequence[str]) -> Path:
    """A folder for a table's runs with these overrides that is not in use."""
    if not overrides:
        return results / name
    short = "-".join(map(short_name, overrides))[:MAX_NAME].rstrip("-.")
    numbered = (results / name / (short if number == 1 else f"{short}-{number}") for number in count(1))
    return next(folder for folder in numbered if not folder.exists() and folder.name != RUNS)


def short_name(override: str) -> str:
    """An override in a folder's name: its value, or key and value where that alone says nothing."""
    key, _, value = without_folders(override).partition("=")
    value = re.sub(r"\.[a-z]+$", "", value)  # the suffix of a file
    if is_number(value) or value in NAMELESS:
        value = f"{re.split('[./]', key)[-1]}-{value}"
    return re.sub(r"[^\w.]+", "-", value).strip("-")


def read(folder: Path, analysis: Table | None = None) -> Page:
    """The page of a folder of results/, or that of an analysis of its runs."""
    archive = store.read_archive(folder)
    table = spec.load(archive.table)
    if table.command:
        return collect(table, [f"output_dir={as_value(str(folder.parent))}"])
    page = collect(analysis or table, archive.overrides, archive.finished, deviates=archive.overrides)
    # pages of results/ are the same on every machine
    return replace(page, results=tuple(replace(it, lacks=it.reads) for it in page.results))


def write_all(results: Path, read_page: Read = read) -> list[Path]:
    """Write every page and TABLES.md, which lists them; return the pages' folders. Reads only results/."""
    folders = [it.folder for it in store.archives(results)]
    summaries = [Summary.of(write(folder, read_page), folder.relative_to(results)) for folder in folders]
    lines = (f"{json.dumps(asdict(it))}\n" for it in summaries)
    (results / SUMMARIES).write_text("".join(lines), encoding="utf-8")
    rules = [":--", ":--", "--:", "--:", "--:", "--:", ":--"]
    grid = markdown_table(INDEX_HEADINGS, rules, *(it.line for it in summaries))
    (results / INDEX).write_text(f"# Measured tables\n\n{INDEX_LEGEND}\n\n{grid}\n", encoding="utf-8")
    return folders


def summaries(results: Path) -> dict[str, list[Summary]]:
    """The summaries of the archived runs as `write_all` left them, by table; empty without archived runs.

    ValueError, with the line, for anything else.
    """
    path = results / SUMMARIES
    by_table: dict[str, list[Summary]] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines, start=1):
        try:
            found = parsed(json_object(line), Summary, "a summary")
        except ValueError as error:
            raise ValueError(
                f"{path}:{number}: {error}; `ner-experiments tables` writes this file"
            ) from error
        by_table.setdefault(found.table, []).append(found)
    return by_table


def check_is_there(path: Path, argument: str) -> None:
    """Raise ValueError for a missing part of results/. argument: that of the command which names the folder."""
    if not path.exists():
        raise ValueError(
            f"{path}: not found; the archived runs are in the repository, not in the installed package: run this in a "
            f"checkout of it, or give the folder as {argument}"
        )


def write(folder: Path, read_page: Read = read) -> Page:
    """Write the page of a folder of archived runs, or of what a table's command stored there; return it."""
    page = read_page(folder)
    text = TableView(page).results_page(root="../../../" if page.deviations else "../../")
    (folder / PAGE).write_text(text, encoding="utf-8")
    return page
