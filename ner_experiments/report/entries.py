"""Entries of a report: tables of the papers with their runs, archived in results/ or in run folders."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any

from ner_experiments.report.announce import tracked
from ner_experiments.runs import artifacts
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.runs.run import Run
from ner_experiments.tables import sweep_registration
from ner_experiments.tables.experiments import deviations
from ner_experiments.tables.origin import Origin, origin
from ner_experiments.tables.pages import in_results, pages, unmeasured
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Table
from ner_experiments.tables.table_view import TableView
from ner_experiments.utils.files import json_digest

log = logging.getLogger(__name__)

MAX_NAME_LENGTH = 60


@dataclass(frozen=True)
class Entry:
    """A table with its runs, under one choice of settings, as the report shows it.

    progress: how far a sweep is that has not ended, whose page reloads itself after `seconds`.
    """

    page: Page
    progress: str = field(default="", kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)

    @property
    def name(self) -> str:
        """Name of its files: the table and its deviations from the paper, or a hash of them if they are long."""
        text = "-".join([self.page.table.name, *(file_name(item) for item in self.page.deviations)])
        if len(text) <= MAX_NAME_LENGTH:
            return text
        return f"{self.page.table.name}-{sha256(' '.join(self.page.deviations).encode()).hexdigest()[:8]}"

    @property
    def runs(self) -> list[Run]:
        return self.page.runs_used

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
                row.failed,
                row.stand_ins,
                row.remark,
                row.lacks,
            )
            for row in (*page.results, *page.analyzed)
        ]
        trials = page.trials and json_digest(page.trials.content)
        registered = sweep_registration.standing(page).record()
        return (
            type(self).__name__,
            page.table,
            rows,
            page.deviations,
            trials,
            page.places,
            registered,
            self.progress,
        )

    @property
    def is_own(self) -> bool:
        """Whether these are experiments of the user's own, not those of a published table."""
        return self.page.table.is_sweep

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
    measured: bool = False,
) -> list[Entry]:
    """Entries of the tables, in their order; for each table, the paper's settings first.

    `overrides` are those with which the runs under `outputs` were made; with `only`, runs of other settings are left
    out, and with `measured` tables without a run of these settings. If the overrides do not fit one of several tables,
    a warning says so, and the others go on. ValueError or OSError as `pages`.
    """
    archived = in_results(results)
    entries: list[Entry] = []
    for table in tracked(tables, "reading table", attrgetter("name")):
        try:
            found = pages(table, archived, outputs, overrides)
            asked = deviations(table, overrides) if only and not table.command else []
        except (ValueError, OSError) as error:
            if len(tables) == 1:
                raise
            if measured:  # its runs are own runs then
                continue
            log.warning("runs with these overrides are left out of a table: %s", error)
            found, asked = pages(table, archived, None), []
        if not table.is_sweep:
            found = of_settings(table, asked, found)
        if measured:
            found = [] if table.command else [it for it in found if it.has_runs]
        entries += map(Entry, found)
    return entries


def of_settings(table: Table, asked: Sequence[str], found: Sequence[Page]) -> list[Page]:
    """The pages whose runs deviate from the paper in `asked`, among others; an empty one if there is none."""
    fitting = [it for it in found if {*asked} <= {*it.deviations}]
    return fitting or [replace(unmeasured(table), deviations=tuple(asked))]
