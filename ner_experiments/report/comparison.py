"""The HTML report of a comparison: the answer, errors side by side, a page per system, and one of disagreements."""

from __future__ import annotations

from pathlib import Path

from ner_experiments.comparison.comparison import Comparison
from ner_experiments.report import error_tables, pair_page, row_page, table_page
from ner_experiments.report.site import Head, Section, Site
from ner_experiments.tables.pairs import against_leaders
from ner_experiments.tables.scores import Result
from ner_experiments.utils.text import percent
from ner_experiments.view.table import Grid


def write(view: Comparison, folder: Path) -> Path:
    """Write the report into a folder, and return its first page. ValueError if the folder holds something else."""
    site = Site(folder, None, command="compare", home="Comparison")
    results = view.page.results
    pages = {it.row.label: f"system-{number}.html" for number, it in enumerate(results, start=1)}
    errors = {it.name: it for it in view.compared.rows}
    leader = against_leaders(view.pairs)[0][0].labels[0] if view.pairs else results[0].row.label
    seen_notes = [f"{view.seen_legend} {view.leakage}"]
    sections = [
        table_page.answer_section(view),
        table_page.differences_section(view),
        table_page.results_section(view, pages),
        Section("others", "Other scores", grids=[view.other_scores], notes=[view.other_legend]),
        Section("seen", "Mentions that train has", grids=[view.seen], notes=seen_notes)
        if view.seen
        else None,
        error_tables.table_section(errors, leader, 0),
        disagreements_section(site, view),
        Section("made", "How it was scored", points=[f"Signature: `{view.signature}`", *view.reading]),
    ]
    table = view.page.table
    site.write_sections(site.start, Head(table.title, table.source, f"Signature: {view.signature}"), sections)
    for result in results:
        label, of_row = result.row.label, errors[result.row.label]
        own = [files_section(result), *error_tables.row_sections(of_row), row_page.worst_section(of_row)]
        lead = f"{len(result.runs)} file{'s' * (len(result.runs) > 1)} on {view.compared.gold.path.name}"
        site.write_sections(pages[label], Head(label, lead, trail=[(label, "")]), own)
    return site.finish()


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


def files_section(result: Result) -> Section:
    """The files of a system, with their scores."""
    names = {"precision": "precision", "recall": "recall", "f1": "F1"}
    lines = [
        {
            "seed": f"{seed}",
            **{heading: percent(run.metrics["test"][name]) for name, heading in names.items()},
            "file": str(run.folder),
        }
        for seed, run in result.runs.items()
    ]
    return Section("seeds", "Files", grids=[Grid.by_heading(lines)])
