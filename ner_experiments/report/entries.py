"""Entries of a report: tables of the papers with their runs, archived in results/ or in run folders."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any

from ner_experiments.config import safe_yaml
from ner_experiments.config.compose import override_value
from ner_experiments.config.conf import file_of
from ner_experiments.config.row_settings import as_value
from ner_experiments.report.announce import tracked
from ner_experiments.runs import artifacts
from ner_experiments.runs.archived_run import ArchivedRun, archived_runs
from ner_experiments.runs.run import Run
from ner_experiments.runs.store import corpora_in
from ner_experiments.tables import experiments, results_folder, spec, sweep_registration
from ner_experiments.tables.looks import at_looks
from ner_experiments.tables.origin import Origin, origin
from ner_experiments.tables.scores import FindRuns, Page, Result, collect, in_output_dir, on_other_data
from ner_experiments.tables.spec import Table
from ner_experiments.tables.table_view import TableView
from ner_experiments.utils.files import json_digest

log = logging.getLogger(__name__)

MAX_NAME_LENGTH = 60


@dataclass(frozen=True)
class Entry:
    """A table with its runs, under one choice of settings.

    places: folders of the runs. analyzed: for an analysis, the rows whose runs it is made from. overrides: the
    overrides with which the rows were composed.
    """

    page: Page
    places: tuple[str, ...] = ()
    analyzed: tuple[Result, ...] = ()
    overrides: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of its files: the table and its deviations from the paper, or a hash of them if they are long."""
        text = "-".join([self.page.table.name, *(file_name(item) for item in self.page.deviations)])
        if len(text) <= MAX_NAME_LENGTH:
            return text
        return f"{self.page.table.name}-{sha256(' '.join(self.page.deviations).encode()).hexdigest()[:8]}"

    @property
    def runs(self) -> list[Run]:
        return [run for result in (*self.page.results, *self.analyzed) for run in result.runs.values()]

    @property
    def inputs(self) -> Any:
        """All that its pages are made from; runs by their checksums."""
        page = self.page
        rows = [
            (
                row.row,
                dict(row.scores),
                {seed: run_inputs(run) for seed, run in row.runs.items()},
                row.comparable,
                row.missing,
                row.stand_ins,
                row.remark,
            )
            for row in (*page.results, *self.analyzed)
        ]
        trials = page.trials and json_digest(page.trials.content)
        registered = sweep_registration.record(page)
        return type(self).__name__, page.table, rows, page.deviations, trials, self.places, registered

    @cached_property
    def view(self) -> TableView:
        return TableView(self.page)

    @property
    def origin(self) -> Origin | None:
        """The provenance of its runs; None without runs."""
        return origin(self.page, self.runs)

    @property
    def to_measure(self) -> list[Result]:
        """Rows with something to run, or to measure on the runs of other rows."""
        rows = self.page.results
        return [row for row in rows if row.row.run is not None or row.row.trial or row.row.measure]

    @property
    def missing(self) -> int:
        return sum(result.measured is None for result in self.to_measure)

    @property
    def off(self) -> int:
        """Number of rows whose published number lies outside the prediction interval."""
        rows = self.page.results
        return sum(row.against is not None and row.against.inside is False for row in rows)

    @property
    def has_archived_runs(self) -> bool:
        """Whether some runs are archived ones, which have no sentences and no weights."""
        return any(run.archived for run in self.runs)


def run_inputs(run: Run) -> str:
    """Checksum of a run's metrics, which hold those of its files; for an archived run, of all that is archived."""
    content = run.content if isinstance(run, ArchivedRun) else run.metrics
    return str(content.get(artifacts.CHECKSUM) or json_digest(content))


def file_name(override: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", override).strip("-")


def entries(
    results: Path,
    outputs: Path | None,
    tables: Sequence[Table],
    overrides: Sequence[str] = (),
    *,
    only: bool = False,
) -> list[Entry]:
    """Entries of the tables, in their order; for each table, the paper's settings first.

    `overrides` are those with which the runs under `outputs` were made; with `only`, runs of other settings are left
    out. If the overrides do not fit one of several tables, a warning says so, and the others go on. ValueError or
    OSError as `results_folder.read`.
    """
    folders = results_folder.archive_folders(results) if results.is_dir() else []
    entries = []
    for table in tracked(tables, "reading table", attrgetter("name")):
        try:
            own = of_run_folders(table, outputs, overrides) if outputs else []
            asked = experiments.deviations(table, overrides) if only and not table.command else []
        except (ValueError, OSError) as error:
            if len(tables) == 1:
                raise
            log.warning("runs with these overrides are left out of a table: %s", error)
            own, asked = [], []
        if table.is_sweep:
            entries += own
            continue
        archives = [
            folder for folder in folders if results_folder.read_table(folder)[0].name == table.runs_of
        ]
        candidates = [from_results(table, folder, results) for folder in archives]
        entries += of_settings(table, asked, merge_by_settings(table, [*candidates, *own]))
    return entries


def of_settings(table: Table, asked: Sequence[str], entries: Sequence[Entry]) -> Sequence[Entry]:
    """The entries whose runs deviate from the paper in `asked`, among others; an empty one if there is none."""
    found = [entry for entry in entries if {*asked} <= {*entry.page.deviations}]
    return found or [Entry(Page(table, tuple(map(Result, table.rows)), tuple(asked)))]


def collected(table: Table, overrides: Sequence[str], results: Path) -> Page:
    """The table with its runs in `output_dir` and, if it is a published one, those archived in `results`.

    If no run has exactly the requested settings, those that deviate least in other settings are taken.
    """
    if table.is_sweep or not results.is_dir():
        return at_looks(collect(table, overrides))
    output = experiments.output_dir(overrides)
    own = [item for item in overrides if experiments.root(item) != "output_dir"]
    candidates = entries(results, output if output.is_dir() else None, [table], own)
    asked = sorted(experiments.deviations(table, own)) if not table.command else []
    exact = [it.page for it in candidates if sorted(it.page.deviations) == asked]
    if exact and (exact[0].runs or exact[0].trials):
        return exact[0]
    others = [it.page for it in candidates if is_measured(it) and set(asked) <= {*it.page.deviations}]
    if others:
        return min(others, key=lambda page: len(page.deviations))
    return exact[0] if exact else collect(table, overrides)


def from_results(table: Table, folder: Path, results: Path) -> Entry:
    """The table made of the archived runs of a folder."""
    place = (results.name / folder.relative_to(results)).as_posix()
    if table.command:
        return Entry(results_folder.read(folder), (place,))
    _, overrides = results_folder.read_table(folder)
    return of_source(
        table, overrides, results_folder.source_of(list(archived_runs(folder / results_folder.RUNS))), place
    )


def of_source(table: Table, overrides: Sequence[str], source: FindRuns, place: str) -> Entry:
    """The table's page and, for an analysis, the rows that it analyzes."""
    page = at_looks(collect(table, overrides, source))
    analyzed = collect(spec.load(table.analysis), overrides, source).results if table.analysis else ()
    return Entry(page, (place,), analyzed, tuple(overrides))


def of_run_folders(table: Table, outputs: Path, overrides: Sequence[str]) -> list[Entry]:
    """The table made of run folders. Without a run on one of its corpora, its rows are not even composed."""
    extra_overrides = [*overrides, f"output_dir={as_value(str(outputs))}"]
    if table.command:
        page = collect(table, extra_overrides[-1:])
        return [Entry(page, (f"{outputs.name}/xor",))] if page.trials else []
    if not table.is_sweep and not corpora(table, overrides) & corpora_in(outputs):
        return []
    return [of_source(table, extra_overrides, in_output_dir(), outputs.name)]


def corpora(table: Table, overrides: Sequence[str]) -> set[str]:
    """Names of the corpora of a table's runs."""
    run_table = spec.load(table.runs_of)
    rows = [experiments.joined(run_table.base, row.run or (), overrides) for row in run_table.rows]
    choices = {item.partition("=")[2] for row in rows for item in row if item.startswith("data=")}
    files = [file_of(f"data/{choice}") for choice in choices]
    named = {str(safe_yaml.read_plain(path).get("name")) for path in files if path.exists()}
    given = [item for row in rows for item in row if experiments.key(item) == "data.name"]
    return named | {str(override_value(item)) for item in given}


def merge_by_settings(table: Table, entries: Iterable[Entry]) -> list[Entry]:
    """One entry for each choice of settings, the paper's first, which is included even if unmeasured."""
    by_settings: dict[tuple[str, ...], Entry] = {(): Entry(Page(table, tuple(map(Result, table.rows))))}
    for entry in entries:
        key = tuple(sorted(entry.page.deviations))
        by_settings[key] = merged(by_settings[key], entry) if key in by_settings else entry
    return [entry for key, entry in by_settings.items() if not key or has_runs(entry)]


def is_measured(entry: Entry) -> bool:
    return bool(entry.runs) or any(result.scores for result in entry.page.results)


def has_runs(entry: Entry) -> bool:
    """Whether the entry has results, or runs that were not used."""
    return is_measured(entry) or any(result.missing for result in entry.page.results)


def merged(first: Entry, second: Entry) -> Entry:
    """The runs of both entries, row by row; a run in both is taken from the second.

    An analysis is recomputed from these runs. Results of a command are not merged; the second's are taken.
    """
    if not is_measured(first):
        return second if has_runs(second) else first
    if not is_measured(second):
        return first
    table = first.page.table
    if table.command:
        return second
    analyzed = tuple(map(merged_result, first.analyzed, second.analyzed))
    if table.analysis:
        runs = {result.row.label: result.runs for result in analyzed}
        collected = collect(table, second.overrides, lambda experiment: runs[experiment.row.label]).results
        remarks = {result.row.label: result.remark for result in analyzed}
        results = tuple(
            replace(it, remark=remarks.get(it.row.measure.of, "")) if it.row.measure else it
            for it in collected
        )
    else:
        results = on_archived_data(map(merged_result, first.page.results, second.page.results))
    page = Page(table, results, first.page.deviations)
    places = tuple(dict.fromkeys([*first.places, *second.places]))
    return Entry(page, places, analyzed, second.overrides)


def on_archived_data(results: Iterable[Result]) -> tuple[Result, ...]:
    """The rows; those of other files of a corpus than the archived runs are not compared with published numbers."""
    every = tuple(results)
    archived: dict[str, set[str]] = {}
    for result in every:
        for run in result.runs.values():
            if run.archived:
                archived.setdefault(result.data["name"], set()).add(run.metrics["data"]["checksum"])

    def is_on_others(result: Result) -> bool:
        if not (archived and result.runs):
            return False
        return result.data["checksum"] not in archived.get(result.data["name"], {result.data["checksum"]})

    text = "its runs read other files of {} than the archived ones of this table"
    return tuple(on_other_data(it, text.format(it.data["name"])) if is_on_others(it) else it for it in every)


def merged_result(first: Result, second: Result) -> Result:
    """The runs of both; only those of the first if the others read different data, with a remark that says so."""
    if not first.scores:
        return second if second.scores or second.missing else first
    read, others = ({run.metrics["checksum"] for run in each.runs.values()} for each in (first, second))
    if others - read:
        place = second.run.folder.parent
        return replace(
            first, remark=f"the runs in {place} read other files than those shown, and are left out"
        )
    scores = dict(sorted({**first.scores, **second.scores}.items()))
    runs = dict(sorted({**first.runs, **second.runs}.items()))
    return replace(second, scores=scores, runs=runs, missing="")
