"""The HTML report of a comparison: the answer, errors side by side, a page per system, and one of disagreements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ner_experiments.comparison.comparison import Comparison
from ner_experiments.report import error_tables, pair_page, row_page, table_page
from ner_experiments.report.entries import Entry
from ner_experiments.report.site import Section, Site
from ner_experiments.report.write import check_replaceable
from ner_experiments.tables.pairs import against_leaders
from ner_experiments.tables.scores import Result
from ner_experiments.view.table import Grid

START = "index.html"


@dataclass(frozen=True)
class ComparisonEntry(Entry):
    """A comparison as an entry of a report, whose sections are those of a sweep."""

    comparison: Comparison

    @property
    def view(self) -> Comparison:
        return self.comparison


def write(view: Comparison, folder: Path) -> Path:
    """Write the report into a folder, and return its first page. ValueError if the folder holds something else."""
    check_replaceable(folder)
    entry = ComparisonEntry(view.page, view)
    site = Site(folder, None, START, command="compare", home="Comparison")
    results = view.page.results
    pages = {it.row.label: f"system-{number}.html" for number, it in enumerate(results, start=1)}
    errors = {it.name: it for it in view.compared.rows}
    leader = against_leaders(view.pairs)[0][0].labels[0] if view.pairs else results[0].row.label
    sections = [
        table_page.answer_section(entry),
        table_page.differences_section(entry),
        table_page.results_section(entry, pages),
        Section("others", "Other scores", grids=[view.other_scores], notes=[view.other_legend]),
        seen_section(view),
        error_tables.table_section(errors, leader, 0),
        disagreements_section(site, view),
        made_section(view),
    ]
    site.write(
        START,
        "table.html",
        context(view.page.table.title, view.page.table.source, sections, signature=view.signature),
    )
    for result in results:
        of_row = errors[result.row.label]
        own = [files_section(result), *error_tables.row_sections(of_row), row_page.worst_section(of_row)]
        lead = f"{len(result.runs)} file{'s' * (len(result.runs) > 1)} on {view.compared.gold.path.name}"
        site.write(
            pages[result.row.label],
            "table.html",
            context(result.row.label, lead, own, trail=[(result.row.label, "")]),
        )
    site.finish()
    return folder / START


def context(
    heading: str,
    lead: str,
    sections: list[Section | None],
    trail: Sequence[tuple[str, str]] = (),
    signature: str = "",
) -> dict[str, object]:
    """Variables of the template."""
    return {
        "heading": heading,
        "lead": lead,
        "variants": (),
        "deviations": "",
        "deviations_heading": "",
        "stand_ins": (),
        "comparable": True,
        "based_on": f"Signature: {signature}" if signature else "",
        "sections": [it for it in sections if it is not None],
        **({"trail": trail} if trail else {}),
    }


def seen_section(view: Comparison) -> Section | None:
    if not view.seen:
        return None
    notes = [f"{view.seen_legend} {view.leakage}"]
    return Section("seen", "Mentions that train has", grids=[view.seen], notes=notes)


def disagreements_section(site: Site, view: Comparison) -> Section | None:
    """Write the page of sentences on which systems differ; return the link to it."""
    if len(view.page.results) < 2:
        return None
    content = pair_page.context(view.page.results)
    head = {
        "heading": "Correct in one system, wrong in another",
        "lead": view.page.table.title,
        "trail": [("Disagreements", "")],
    }
    site.write("disagreements.html", "pair.html", {**head, **content})
    text = "For each pair of systems: the sentences that one tags correctly and the other does not."
    link = (
        f"Pairs of {len(view.page.results)} systems: {len(content['cases'])} sentences",
        "disagreements.html",
    )
    return Section("pairs", "Correct in one system, wrong in another", [text], links=[link])


def made_section(view: Comparison) -> Section:
    """How the files were read, and the signature."""
    return Section("made", "How it was scored", points=[f"Signature: `{view.signature}`", *view.reading])


def files_section(result: Result) -> Section:
    """The files of a system, with their scores."""
    names = ("precision", "recall", "f1")
    lines = [
        [f"{seed}", *(f"{100 * run.metrics['test'][name]:.2f}" for name in names), str(run.folder)]
        for seed, run in result.runs.items()
    ]
    return Section("seeds", "Files", grids=[Grid(["seed", "precision", "recall", "F1", "file"], lines)])
