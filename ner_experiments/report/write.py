"""Write the whole report: an index, a page for each table, and a page for the runs of each row."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ner_experiments.analysis.row_errors import RowErrors
from ner_experiments.report import (
    attention_page,
    error_tables,
    index_page,
    pair_page,
    row_page,
    search_page,
    table_page,
)
from ner_experiments.report.announce import tracked
from ner_experiments.report.entries import Entry, run_inputs
from ner_experiments.report.site import Head, Section, Site, has_library, inputs_digest, recorded
from ner_experiments.runs.run import Run
from ner_experiments.tables.scores import Result, groups, reference

log = logging.getLogger(__name__)


def write_report(
    entries: Iterable[Entry],
    results: Path | None,
    output: Path,
    commit: str | None,
    searches: Sequence[search_page.FoundSearch] = (),
    stamp: str = "",
) -> Path:
    """Write the report and return the page to open first. ValueError if the folder holds something else.

    results: where single runs are archived; None leaves them out. stamp: what `is_up_to_date` compares. Pages of an
    earlier report stay if they were made from the same inputs, and are deleted if they no longer belong to the report.
    After an error the folder is unchanged.
    """
    entries = sorted(entries, key=lambda entry: not entry.is_own)
    site = Site(output, commit, first_page(entries, searches))
    search_page.write_all(site, searches)
    rows = row_pages(entries)
    for row in rows.values():
        row.maps = attention_page.write(site, row.name, row.runs, row.uses[0].label, row.uses[0].crumb)
    written = []
    for entry in tracked(entries, "writing table", attrgetter("name")):
        try:
            write_table(site, entry, variants(entry, entries), rows)
            written.append(entry)
        except (ValueError, OSError) as error:
            if len(entries) == 1:
                raise
            log.warning("left out of the report: %s: %s", entry.name, error)
    for row in rows.values():
        row.uses = [use for use in row.uses if use.page in site.pages]
    used = [row for row in rows.values() if row.uses]
    for row in tracked(used, "writing row", lambda row: row.uses[0].label):
        write_row(site, row)
    site.are_current(["index.html"], (stamp, sorted({*site.pages, "index.html"})))
    index_page.write(site, written, results, search_page.index_lines(searches))
    return site.finish()


def first_page(entries: Sequence[Entry], searches: Sequence[search_page.FoundSearch] = ()) -> str:
    """The page to open first: that of a single search, or table with runs of one setting; else the index."""
    if not entries and len(searches) == 1:
        return searches[0].page
    shown = [entry for entry in entries if entry.page.has_runs] or entries
    if len({entry.page.table.name for entry in entries}) == len(shown) == 1:
        return f"{shown[0].name}.html"
    return "index.html"


def is_up_to_date(output: Path, commit: str | None, stamp: str) -> Path | None:
    """The page to open first, if the folder holds the report of this stamp, as it was written; else None."""
    index, names = output / "index.html", sorted(path.name for path in output.glob("*.html"))
    if not has_library(output) or recorded(index, "inputs") != inputs_digest(
        commit and commit[:12], (stamp, names)
    ):
        return None
    return output / recorded(index, "start")


class RowUse(NamedTuple):
    """A use of a row in a table: the table's source, its label, the table's page, stand-ins, and deviations."""

    source: str
    label: str
    page: str
    stand_ins: tuple[str, ...] = ()
    deviations: str = ""
    deviations_heading: str = ""

    @property
    def crumb(self) -> tuple[str, str]:
        return self.source, self.page

    def __str__(self) -> str:
        return f"{self.source}: {self.label}" + (f" (`{self.deviations}`)" if self.deviations else "")


@dataclass
class RowPage:
    """The page of an experiment, with the runs of all rows in all tables. maps: its page of attention maps."""

    name: str
    runs: dict[int, Run] = field(default_factory=dict)
    uses: list[RowUse] = field(default_factory=list)
    maps: attention_page.AttentionPage | None = None

    @cached_property
    def errors(self) -> RowErrors:
        return RowErrors(self.uses[0].label, self.runs)

    @property
    def file(self) -> str:
        return f"runs-{self.name}.html"


Rows = Mapping[str, RowPage]
"""Pages of rows by their names."""


def row_pages(entries: Iterable[Entry]) -> dict[str, RowPage]:
    """The pages of all rows of the tables that have runs, by their names."""
    rows: dict[str, RowPage] = {}
    for entry in entries:
        deviations = " ".join(entry.page.deviations)
        for result in with_runs(entry):
            row = rows.setdefault(row_name(result), RowPage(row_name(result)))
            row.runs |= result.runs
            use = RowUse(crumb(entry), result.row.label, f"{entry.name}.html", result.stand_ins)
            row.uses.append(
                use._replace(deviations=deviations, deviations_heading=entry.page.deviations_heading)
            )
    return rows


def with_runs(entry: Entry) -> list[Result]:
    """The rows of a table and those that it analyzes, as far as they have runs."""
    return [result for result in (*entry.page.results, *entry.page.analyzed) if result.runs]


def row_name(result: Result) -> str:
    """Name of a row's page, from the identity of its first run."""
    return str(next(iter(result.runs.values())).metrics["identity"][:12])


def variants(entry: Entry, entries: Iterable[Entry]) -> list[tuple[str, str]]:
    """The other settings that the rows of a table were measured with, and the pages of these."""
    others = (it for it in entries if it.page.table.name == entry.page.table.name and it.name != entry.name)
    return [
        (" ".join(it.page.deviations) or "those of the paper", f"{it.name}.html") for it in others if it.runs
    ]


def write_table(site: Site, entry: Entry, variants: Sequence[tuple[str, str]], rows: Rows) -> None:
    """Write the pages of a table, unless they were made from the same inputs."""
    page, name = entry.page, f"{entry.name}.html"
    maps = attention_page.section([rows[row_name(it)].maps for it in with_runs(entry)])
    if site.are_current([name, *pair_pages(entry)], (entry.inputs, variants, maps)):
        return
    links = {it.row.label: rows[row_name(it)].file for it in page.results if it.runs}
    analyzed = [(it.row.label, rows[row_name(it)].file) for it in page.analyzed if it.runs]
    title, lead = page.table.title, f"{page.table.source} · {page.table.name}"
    if page.table.is_sweep:
        title, lead = page.table.name, f"{page.table.title} · {page.table.source}"
    head = Head(
        title,
        lead,
        table_page.based_on(entry.view, elsewhere=bool(variants)),
        trail=[(crumb(entry), "")],
        variants=variants,
        stand_ins=page.stand_ins,
        deviations=" ".join(page.deviations),
        deviations_heading=page.deviations_heading,
        comparable=all(result.comparable for result in page.results),
        progress=entry.progress,
        seconds=entry.seconds,
    )
    sections = [
        *table_page.sections(entry.view, links),
        *error_sections(entry, rows),
        pairs_section(site, entry),
        maps,
        table_page.xor_section(page.trials) if page.trials else None,
        Section("analyzed", "Analyzed rows", links=analyzed) if analyzed else None,
        table_page.provenance_section(entry.origin),
    ]
    site.write_sections(name, head, sections)


def crumb(entry: Entry) -> str:
    """The name of a table in breadcrumbs: its source, or for a sweep its own name."""
    return entry.page.table.name if entry.page.table.is_sweep else entry.page.table.source


def error_sections(entry: Entry, rows: Rows) -> list[Section | None]:
    """Errors of the rows on each test set, compared with the row with the best published number."""
    return [
        error_tables.table_section(
            {result.row.label: errors_of(result, rows) for result in group},
            reference(group).row.label,
            number,
        )
        for number, group in enumerate(groups(entry.page.results))
    ]


def errors_of(result: Result, rows: Rows) -> RowErrors:
    """Errors of a table's runs of a row. Its page can have more seeds, those of other tables."""
    row = rows[row_name(result)]
    return row.errors if row.runs == result.runs else RowErrors(result.row.label, result.runs)


def pair_pages(entry: Entry) -> dict[str, Sequence[Result]]:
    """The rows on each corpus with several, by the name of their page of disagreements."""
    numbered = enumerate(groups(entry.page.results))
    return {f"{entry.name}-pairs-{number}.html": group for number, group in numbered if len(group) > 1}


def pairs_section(site: Site, entry: Entry) -> Section | None:
    """Write a page of disagreements for the rows on each corpus; return the links to them."""
    links = []
    for name, group in pair_pages(entry).items():
        data = group[0].data["name"]
        context = pair_page.context(group)
        head = {
            "heading": f"Correct in one row, wrong in another: {entry.page.table.title}",
            "lead": f"{entry.page.table.source}; {data}",
            "trail": [(crumb(entry), f"{entry.name}.html"), ("Pairs of rows", "")],
        }
        site.write(name, "pair.html", {**head, **context})
        content = f"{len(context['cases'])} sentences" if context["cases"] else "counts only"
        links.append((f"Pairs of {len(group)} rows on {data}: {content}", name))
    text = "For each pair of rows: the test sentences that one tags correctly and the other does not."
    return Section("pairs", "Correct in one row, wrong in another", [text], links=links) if links else None


def write_row(site: Site, row: RowPage) -> None:
    """Write the page of a row's runs. Deviations are shown only if it deviates from the paper in all tables."""
    first = row.uses[0]
    inputs = {seed: run_inputs(run) for seed, run in row.runs.items()}
    if site.are_current([row.file], (inputs, row.uses, row.maps)):
        return
    data = next(iter(row.runs.values())).metrics["data"]["name"]
    number = f"{len(row.runs)} runs" if len(row.runs) > 1 else "One run"
    head = Head(
        first.label,
        f"{number} on {data} · {row.name}",
        f"Row of {'; '.join(map(str, row.uses))}.",
        trail=[first.crumb, (first.label, "")],
        stand_ins=first.stand_ins,
        deviations=first.deviations if all(use.deviations for use in row.uses) else "",
        deviations_heading=first.deviations_heading,
    )
    sections = [
        *row_page.sections(row.runs),
        *error_tables.row_sections(row.errors),
        attention_page.section([row.maps]),
        row_page.worst_section(row.errors),
        row_page.settings_section(row.runs),
    ]
    site.write_sections(row.file, head, sections)
