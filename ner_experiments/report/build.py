"""The whole report: an index, a page for each table, and one for each row's runs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ner_experiments.analysis.seeds import RowErrors
from ner_experiments.report import (
    attention_page,
    index_page,
    pair_page,
    row_page,
    table_page,
)
from ner_experiments.report.entries import Entry
from ner_experiments.report.errors import of_row, section
from ner_experiments.report.site import Section, Site
from ner_experiments.runs.run import Run
from ner_experiments.tables.scores import Result, groups, reference

MARK = "ner-experiments report"
"""What the index of a folder says that may be written over."""


def write(
    entries: Sequence[Entry], results: Path, output: Path, commit: str | None, own: Sequence[Entry] = ()
) -> list[Path]:
    """Returns the pages; `own`: of no published table. ValueError if the folder holds something else.

    An older report, which may have pages of tables or runs that are gone, is removed when this one is made.
    """
    check(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as place:
        site = Site(Path(place) / output.name, commit)
        write_pages(site, entries, results, own)
        if output.exists():
            shutil.rmtree(output)
        site.folder.rename(output)
    return [output / path.name for path in site.written]


def check(output: Path) -> None:
    if not output.exists():
        return
    made = output / "index.html"
    if any(output.iterdir()) and not (made.is_file() and MARK in made.read_text(encoding="utf-8")):
        raise ValueError(f"{output}: expected a new folder, an empty one, or an older report")


def write_pages(site: Site, entries: Sequence[Entry], results: Path, own: Sequence[Entry]) -> None:
    rows = row_pages([*entries, *own])
    index_page.write(site, entries, results, own)
    maps = {name: found for name, row in rows.items() if (found := heat_map(site, name, *row)) is not None}
    errors = {name: RowErrors(places[0].label, runs) for name, (runs, places) in rows.items()}
    for entry in (*entries, *own):
        write_table(site, entry, maps, errors)
    for name, (runs, places) in rows.items():
        write_row(site, name, runs, places, maps, errors[name])


class Place(NamedTuple):
    """Where a row stands: a table's source, the row's label, the table's page and deviations."""

    source: str
    label: str
    page: str
    deviations: str

    def __str__(self) -> str:
        return f"{self.source}: {self.label}" + (f" (`{self.deviations}`)" if self.deviations else "")


Rows = dict[str, tuple[dict[int, Run], list[Place]]]
Maps = Mapping[str, attention_page.AttentionPage]
"""Both by the name of the row's page."""


def row_pages(entries: Sequence[Entry]) -> Rows:
    """Rows of several tables that are one experiment have one page, with all its runs."""
    found: Rows = {}
    for entry in entries:
        deviations = " ".join(entry.page.deviations)
        for result in (*entry.page.results, *entry.analysed):
            if result.runs:
                runs, places = found.setdefault(row_name(result), ({}, []))
                runs.update(result.runs)
                source, label = entry.page.table.source, result.row.label
                places.append(Place(source, label, f"{entry.name}.html", deviations))
    return found


def row_name(result: Result) -> str:
    """All runs of a row are one experiment, but for files that have changed."""
    return f"runs-{next(iter(result.runs.values())).metrics['identity'][:12]}"


def write_table(site: Site, entry: Entry, maps: Maps, errors: Mapping[str, RowErrors]) -> None:
    page = entry.page
    links = {it.row.label: f"{row_name(it)}.html" for it in page.results if it.runs}
    further = [
        *side_by_side(entry, errors),
        pairs(site, entry),
        heat_maps(entry, maps),
        limit(entry),
        analysed(entry),
        table_page.made(entry),
    ]
    sections = [*table_page.all_sections(entry, links), *(it for it in further if it is not None)]
    site.write(
        f"{entry.name}.html",
        "table.html",
        {
            "heading": page.table.title,
            "source": page.table.source,
            "name": page.table.name,
            "deviations": " ".join(page.deviations),
            "comparable": all(result.comparable for result in page.results),
            "stands_on": table_page.stands_on(entry),
            "sections": sections,
            "trail": [(page.table.source, "")],
        },
    )


def side_by_side(entry: Entry, errors: Mapping[str, RowErrors]) -> list[Section | None]:
    """The errors of the rows on each test set, held against the row with the best published number."""
    found = []
    for number, group in enumerate(groups(entry.page.results)):
        rows = {result.row.label: errors[row_name(result)] for result in group}
        found.append(section(rows, reference(group).row.label, number))
    return found


def pairs(site: Site, entry: Entry) -> Section | None:
    """A page for the rows on each corpus; what leads there."""
    links = []
    for number, group in enumerate(groups(entry.page.results)):
        if len(group) < 2:
            continue
        data = group[0].data["name"]
        name = f"{entry.name}-pairs-{number}.html"
        context = pair_page.context(group)
        about = {
            "heading": f"What one row gets right and another wrong: {entry.page.table.title}",
            "lead": f"{entry.page.table.source}; {data}",
            "trail": [(entry.page.table.source, f"{entry.name}.html"), ("Pairs of rows", "")],
        }
        site.write(name, "cases.html", {**about, **context})
        what = f"{len(context['cases'])} sentences" if context["cases"] else "counts alone"
        links.append((f"Pairs of {len(group)} rows on {data}: {what}", name))
    text = "For each pair of rows: the test sentences that one tags right and the other wrong."
    return Section("pairs", "Right in one row, wrong in another", [text], links=links) if links else None


def heat_map(
    site: Site, name: str, runs: dict[int, Run], places: Sequence[Place]
) -> attention_page.AttentionPage | None:
    """Writes the page of a row's attention, if it is one of Att and its weights are there."""
    run = attention_page.run_with_weights(runs)
    if run is None:
        return None
    first = places[0]
    trail = [(first.source, first.page)]
    return attention_page.write(site, name.replace("runs-", "attention-"), run, first.label, trail)


def heat_maps(entry: Entry, maps: Maps) -> Section | None:
    """What leads to the attention of the table's rows, and of those that it analyses."""
    rows = [it for it in (*entry.page.results, *entry.analysed) if it.runs and row_name(it) in maps]
    if not rows:
        return None
    found = [maps[row_name(result)] for result in rows]
    return attention_page.section(found)


def limit(entry: Entry) -> Section | None:
    return table_page.picture(entry.page.trials) if entry.page.trials else None


def analysed(entry: Entry) -> Section | None:
    """What leads to the runs that an analysis is made from."""
    links = [(result.row.label, f"{row_name(result)}.html") for result in entry.analysed if result.runs]
    return Section("analysed", "The rows that are analysed", links=links) if links else None


def write_row(
    site: Site, name: str, runs: dict[int, Run], places: Sequence[Place], maps: Maps, errors: RowErrors
) -> None:
    """Its settings are the paper's if they are so in one of its tables."""
    first = places[0]
    data = next(iter(runs.values())).metrics["data"]["name"]
    sections = [*row_page.sections(runs), *of_row(errors)]
    drawn = attention_page.section([maps[name]]) if name in maps else None
    further = [drawn, row_page.worst_section(runs), row_page.settings(runs)]
    site.write(
        f"{name}.html",
        "table.html",
        {
            "heading": first.label,
            "source": f"{len(runs)} runs on {data}" if len(runs) > 1 else f"One run on {data}",
            "name": name.removeprefix("runs-"),
            "deviations": first.deviations if all(place.deviations for place in places) else "",
            "comparable": True,
            "stands_on": f"Stands in {'; '.join(map(str, places))}.",
            "sections": [*sections, *(it for it in further if it is not None)],
            "trail": [(first.source, first.page), (first.label, "")],
        },
    )
