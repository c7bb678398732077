"""Write the whole report: an index, a page for each table, and a page for the runs of each row."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
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
from ner_experiments.report.site import Section, Site, has_library, inputs_digest, recorded
from ner_experiments.runs.run import Run
from ner_experiments.tables.scores import Result, groups, reference

log = logging.getLogger(__name__)

MARK = "ner-experiments report"
"""Text by which the index of an earlier report is recognized."""


def write_report(
    entries: Sequence[Entry],
    results: Path | None,
    output: Path,
    commit: str | None,
    own: Sequence[Entry] = (),
    searches: Sequence[search_page.FoundSearch] = (),
    stamp: str = "",
) -> Path:
    """Write the report and return the page to open first. ValueError if the folder holds something else.

    results: where single runs are archived; None leaves them out. own: entries of runs that belong to no published
    table. stamp: what `is_up_to_date` compares. Pages of an earlier report stay if they were made from the same inputs,
    and are deleted if they no longer belong to the report. After an error the folder is unchanged.
    """
    check_replaceable(output)
    everything = [*own, *entries]
    start = first_page(everything)
    site = Site(output, commit, start)
    write_pages(site, entries, results, own, searches, stamp)
    site.finish()
    return output / start


def first_page(entries: Sequence[Entry]) -> str:
    """The page to open first: that of a single table, unless it has runs of several settings; else the index."""
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


def check_replaceable(output: Path) -> None:
    """Raise ValueError unless the folder is missing, empty, or an earlier report."""
    if not output.exists():
        return
    index = output / "index.html"
    if any(output.iterdir()) and not (index.is_file() and MARK in index.read_text(encoding="utf-8")):
        raise ValueError(f"{output}: expected a new folder, an empty one, or an older report")


def write_pages(
    site: Site,
    entries: Sequence[Entry],
    results: Path | None,
    own: Sequence[Entry],
    searches: Sequence[search_page.FoundSearch] = (),
    stamp: str = "",
) -> None:
    rows = row_pages([*own, *entries])
    search_page.write_all(site, searches)
    maps = {
        name: page for name, row in rows.items() if (page := write_attention(site, name, *row)) is not None
    }
    errors_by_row = {name: RowErrors(uses[0].label, runs) for name, (runs, uses) in rows.items()}
    every, failed = [*own, *entries], set[str]()
    for entry in tracked(every, "writing table", attrgetter("name")):
        try:
            write_table(site, entry, variants(entry, entries), maps, errors_by_row)
        except (ValueError, OSError) as error:
            if len(every) == 1:
                raise
            log.warning("left out of the report: %s: %s", entry.name, error)
            failed.add(entry.name)
    own, entries = ([entry for entry in each if entry.name not in failed] for each in (own, entries))
    rows = row_pages([*own, *entries])
    for name in tracked([*rows], "writing row", lambda name: rows[name][1][0].label):
        write_row(site, name, *rows[name], maps, errors_by_row[name])
    site.are_current(["index.html"], (stamp, sorted({*site.pages, "index.html"})))
    index_page.write(site, entries, results, own, search_page.index_lines(searches))


class RowUse(NamedTuple):
    """A use of a row in a table: the table's source, its label, the table's page, stand-ins, and deviations."""

    source: str
    label: str
    page: str
    stand_ins: tuple[str, ...] = ()
    deviations: str = ""
    deviations_heading: str = ""

    def __str__(self) -> str:
        return f"{self.source}: {self.label}" + (f" (`{self.deviations}`)" if self.deviations else "")


Rows = dict[str, tuple[dict[int, Run], list[RowUse]]]
"""Runs by seed and uses of each row, by the name of its page."""
Maps = Mapping[str, attention_page.AttentionPage]
"""Attention pages by the name of the row's page."""


def row_pages(entries: Sequence[Entry]) -> Rows:
    """One page per experiment, with the runs of all its rows in all tables."""
    rows: Rows = {}
    for entry in entries:
        deviations = " ".join(entry.page.deviations)
        for result in (*entry.page.results, *entry.page.analyzed):
            if result.runs:
                runs, uses = rows.setdefault(row_name(result), ({}, []))
                runs.update(result.runs)
                uses.append(
                    RowUse(
                        source=crumb(entry),
                        label=result.row.label,
                        page=f"{entry.name}.html",
                        stand_ins=result.stand_ins,
                        deviations=deviations,
                        deviations_heading=entry.page.deviations_heading,
                    )
                )
    return rows


def row_name(result: Result) -> str:
    """Name of a row's page, from the identity of its first run."""
    return f"runs-{next(iter(result.runs.values())).metrics['identity'][:12]}"


def variants(entry: Entry, entries: Iterable[Entry]) -> list[tuple[str, str]]:
    """The other settings that the rows of a table were measured with, and the pages of these."""
    others = (it for it in entries if it.page.table.name == entry.page.table.name and it.name != entry.name)
    return [
        (" ".join(it.page.deviations) or "those of the paper", f"{it.name}.html") for it in others if it.runs
    ]


def write_table(
    site: Site,
    entry: Entry,
    variants: Sequence[tuple[str, str]],
    maps: Maps,
    errors_by_row: Mapping[str, RowErrors],
) -> None:
    """Write the pages of a table, unless they were made from the same inputs."""
    page = entry.page
    names = [f"{entry.name}.html", *pair_pages(entry).values()]
    if site.are_current(names, (entry.inputs, variants, attention_section(entry, maps))):
        return
    links = {result.row.label: f"{row_name(result)}.html" for result in page.results if result.runs}
    title, lead = page.table.title, f"{page.table.source} · {page.table.name}"
    if page.table.is_sweep:
        title, lead = page.table.name, f"{page.table.title} · {page.table.source}"
    sections = [
        *table_page.sections(entry, links),
        *error_sections(entry, errors_by_row),
        pairs_section(site, entry),
        attention_section(entry, maps),
        table_page.xor_section(entry.page.trials) if entry.page.trials else None,
        analyzed_rows_section(entry),
        table_page.provenance_section(entry),
    ]
    site.write(
        f"{entry.name}.html",
        "table.html",
        {
            "heading": title,
            "lead": lead,
            "progress": entry.progress,
            "seconds": entry.seconds,
            "variants": variants,
            "deviations": " ".join(page.deviations),
            "deviations_heading": page.deviations_heading,
            "stand_ins": page.stand_ins,
            "comparable": all(result.comparable for result in page.results),
            "based_on": table_page.based_on(entry),
            "sections": [section for section in sections if section is not None],
            "trail": [(crumb(entry), "")],
        },
    )


def crumb(entry: Entry) -> str:
    """The name of a table in breadcrumbs: its source, or for a sweep its own name."""
    return entry.page.table.name if entry.page.table.is_sweep else entry.page.table.source


def error_sections(entry: Entry, errors_by_row: Mapping[str, RowErrors]) -> list[Section | None]:
    """Errors of the rows on each test set, compared with the row with the best published number."""
    sections = []
    for number, group in enumerate(groups(entry.page.results)):
        rows = {result.row.label: errors_of(result, errors_by_row) for result in group}
        sections.append(error_tables.table_section(rows, reference(group).row.label, number))
    return sections


def errors_of(result: Result, errors_by_row: Mapping[str, RowErrors]) -> RowErrors:
    """Errors of a table's runs of a row. Its page can have more seeds, those of other tables."""
    row = errors_by_row[row_name(result)]
    return row if row.runs == result.runs else RowErrors(result.row.label, result.runs)


def pair_pages(entry: Entry) -> dict[int, str]:
    """Names of the pages of disagreements, by the number of the group of rows on one corpus."""
    return {
        number: f"{entry.name}-pairs-{number}.html"
        for number, group in enumerate(groups(entry.page.results))
        if len(group) > 1
    }


def pairs_section(site: Site, entry: Entry) -> Section | None:
    """Write a page of disagreements for the rows on each corpus; return the links to them."""
    links = []
    names = pair_pages(entry)
    for number, group in enumerate(groups(entry.page.results)):
        if number not in names:
            continue
        name = names[number]
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


def write_attention(
    site: Site, name: str, runs: dict[int, Run], uses: Sequence[RowUse]
) -> attention_page.AttentionPage | None:
    """Write the page of attention maps of a row of Att; None for other models, and without weights."""
    run = attention_page.run_with_weights(runs)
    if run is None:
        return None
    first = uses[0]
    trail = [(first.source, first.page)]
    page = name.replace("runs-", "attention-")
    if site.are_current([f"{page}.html"], (run_inputs(run), first.label, trail)):
        return attention_page.AttentionPage(f"{page}.html", attention_page.title(run, first.label))
    return attention_page.write(site, page, run, first.label, trail)


def attention_section(entry: Entry, maps: Maps) -> Section | None:
    """Links to the attention maps of the table's rows and of the rows that it analyzes."""
    names = [row_name(result) for result in (*entry.page.results, *entry.page.analyzed) if result.runs]
    pages = [maps[name] for name in names if name in maps]
    return attention_page.section(pages) if pages else None


def analyzed_rows_section(entry: Entry) -> Section | None:
    """Links to the runs that an analysis is made from."""
    links = [(result.row.label, f"{row_name(result)}.html") for result in entry.page.analyzed if result.runs]
    return Section("analyzed", "Analyzed rows", links=links) if links else None


def write_row(
    site: Site, name: str, runs: dict[int, Run], uses: Sequence[RowUse], maps: Maps, row_errors: RowErrors
) -> None:
    """Write the page of a row's runs. Deviations are shown only if it deviates from the paper in all tables."""
    first = uses[0]
    if site.are_current(
        [f"{name}.html"], ({seed: run_inputs(run) for seed, run in runs.items()}, uses, maps.get(name))
    ):
        return
    data = next(iter(runs.values())).metrics["data"]["name"]
    number = f"{len(runs)} runs" if len(runs) > 1 else "One run"
    sections = [
        *row_page.sections(runs),
        *error_tables.row_sections(row_errors),
        attention_page.section([maps[name]]) if name in maps else None,
        row_page.worst_section(row_errors),
        row_page.settings_section(runs),
    ]
    site.write(
        f"{name}.html",
        "table.html",
        {
            "heading": first.label,
            "lead": f"{number} on {data} · {name.removeprefix('runs-')}",
            "variants": (),
            "stand_ins": first.stand_ins,
            "deviations": first.deviations if all(use.deviations for use in uses) else "",
            "deviations_heading": first.deviations_heading,
            "comparable": True,
            "based_on": f"Row of {'; '.join(map(str, uses))}.",
            "sections": [section for section in sections if section is not None],
            "trail": [(first.source, first.page), (first.label, "")],
        },
    )
