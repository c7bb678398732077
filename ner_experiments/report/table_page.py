"""Sections of a table's page: published and measured scores, plots, learning curves, cost and provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import fmean

from ner_experiments.analysis.statistics import summarize
from ner_experiments.report.run_plots import BAND_TEXT, MAX_SEEDS, cost_plots, curve_limits, dev_curves
from ner_experiments.report.site import Section
from ner_experiments.tables.origin import Origin, comma_separated, devices
from ner_experiments.tables.pairs import mean
from ner_experiments.tables.plots import score_plots, seed_plots
from ner_experiments.tables.scores import Result
from ner_experiments.tables.table_view import MEANS, TableView
from ner_experiments.view import cells
from ner_experiments.view.table import Grid
from ner_experiments.view.vega import Chart
from ner_experiments.xor import certificate
from ner_experiments.xor.certificate import cases, certificates
from ner_experiments.xor.picture import xor_chart
from ner_experiments.xor.results import HEADINGS, XorResults, table_lines

Links = Mapping[str, str]
"""Address of a row's page, by its label."""


def sections(view: TableView, links: Links) -> list[Section | None]:
    """Sections of a table's page that depend on its runs; None for those without content."""
    if view.page.table.is_sweep:
        first = [
            answer_section(view),
            *effects_sections(view),
            differences_section(view),
            results_section(view, links),
        ]
    else:
        first = [results_section(view, links), scores_section(view), differences_section(view)]
    return [
        *first,
        curves_section(view),
        cost_section(view, links),
    ]


def based_on(view: TableView, *, elsewhere: bool = False) -> str:
    """Sentence on the runs that the page is based on, and on what they cannot show.

    elsewhere: whether the page links to those of the table's runs with other settings.
    """
    if view.page.table.command:
        return (
            f"Based on the output of {view.page.table.command} in {comma_separated(view.page.places)}."
            if view.page.places
            else "Nothing has been measured yet."
        )
    if not view.page.runs_used:
        kind, only = ("sweep", "") if view.page.table.is_sweep else ("table", "; published numbers only")
        if any(result.missing for result in view.page.results):
            return f"No run of this {kind} counts, for the reasons below{only}."
        return "Published numbers only." if elsewhere else f"No run of this {kind} is finished{only}."
    count = f"{len(view.page.runs_used)} runs" if len(view.page.runs_used) > 1 else "one run"
    text = f"Based on {count} in {comma_separated(view.page.places)}."
    if any(run.archived for run in view.page.runs_used):
        text += (
            " Archived runs have no sentences, for the licenses of corpora, and no weights: sections that need"
            " either are left out (`ner-experiments report --runs DIR` has them for run folders)."
        )
    return " ".join(filter(None, [text, view.standing]))


def answer_section(view: TableView) -> Section | None:
    """The verdict on a sweep, and its seeds as points."""
    if not view.page.runs:
        return None
    best_first = tuple(sorted((it for it in view.page.results if it.runs), key=mean, reverse=True))
    return Section(
        "answer",
        "The answer",
        [*filter(None, [view.verdict, view.not_counted])],
        plots=seed_plots(replace(view.page, results=best_first)),
        points=view.looks,
    )


def effects_sections(view: TableView) -> list[Section]:
    """Effects of the settings of a sweep that is a grid, with an interaction plot; one section for each corpus."""
    sections = []
    for number, it in enumerate(view.effects):
        if (plot := it.plot) is not None:
            grids = [it.tests, it.differences] if it.analysis else []
            title = f"Effects of {it.title}"
            key = f"effects{number or ''}"
            texts = [it.sentence] if it.sentence else []
            sections.append(Section(key, title, texts, grids, [plot], points=it.notes))
    return sections


def differences_section(view: TableView) -> Section | None:
    """Differences with the verdict behind the label, where a phone shows it; None without rows to compare."""
    differences = view.differences
    if differences is None:
        return None
    *others, last = range(1, len(differences.grid.headings))
    are_all = view.page.table.is_sweep and len(differences.pairs) == len(view.pairs)
    pairs = "Each row minus each other" if are_all else "Differences between rows"
    grid = replace(
        differences.grid.of([0, last, *others]), caption=f"{pairs}, with intervals over seeds", text=1
    )
    notes = [differences.subject, *differences.explained()]
    grids = [grid]
    if (matrix := view.matrix) is not None:
        grids.append(matrix)
        notes.insert(1, view.matrix_legend)
    return Section("differences", "Differences between rows", grids=grids, notes=notes)


def results_section(view: TableView, links: Links) -> Section:
    """The table itself, with rows in the paper's order."""
    page = view.page
    grid = view.results if page.table.is_published else view.results.renamed({"ours": "mean"})
    labels = {line[0]: result.row.label for line, result in zip(grid.lines, page.results, strict=True)}
    filled = max(number for line in grid.lines for number, cell in enumerate(line) if cell)
    grid = replace(
        grid.of(range(filled + 1)),
        caption=page.table.title,
        links={text: links[label] for text, label in labels.items() if label in links},
        cited=frozenset(number for number, result in enumerate(page.results) if result.row.cited),
        text=int(any(isinstance(row.published, str | tuple) for row in page.table.rows)),
    )
    legend = view.explanation if page.table.is_published else MEANS
    texts = [
        legend if any(result.scores for result in page.results) else "",
        view.closeness,
        view.oracle_epoch,
    ]
    title = " and ".join(name for name in ("published", "ours") if name in grid.headings)
    return Section(
        "results",
        title.capitalize() or ("Rows" if page.table.is_published else "Scores"),
        grids=[grid],
        notes=[*filter(None, texts)],
        points=view.notes,
    )


def scores_section(view: TableView) -> Section | None:
    plots = score_plots(view.page)
    return Section("varied", "What the table varies", plots=plots) if plots else None


def curves_section(view: TableView) -> Section | None:
    """Learning curves of the rows with runs, by corpus."""
    corpora: dict[tuple[str, str, str], list[Result]] = {}
    for result in view.page.results:
        if result.runs:
            corpora.setdefault(scored_on(result), []).append(result)
    if not corpora:
        return None
    plots: list[Chart] = []
    for rows in corpora.values():
        limits = curve_limits([result.runs for result in rows])
        plots += [dev_curves(result.runs, result.row.label, limits) for result in rows]
    order = ", then ".join(dict.fromkeys(name for name, *_ in corpora))
    scale = "All rows share one scale."
    if len(corpora) > 1:
        scale = f"Rows on one corpus share one scale: first {order}."
    text = f"Dev score after each epoch, one line per seed. The marker is the epoch that dev chose. {scale}"
    if any(len(rows.runs) > MAX_SEEDS for rows in view.page.results):
        text += f" {BAND_TEXT}"
    return Section("curves", "Learning curves", [text], plots=plots, small=True)


def scored_on(result: Result) -> tuple[str, str, str]:
    """Name and checksum of the corpus, and the primary metric."""
    primary_metric = next(iter(result.runs.values())).primary_metric
    return result.data["name"], result.data["checksum"], primary_metric


def cost_section(view: TableView, links: Links) -> Section | None:
    lines = [cost_line(result) for result in view.page.results if result.runs]
    if not lines:
        return None
    text = (
        f"On {devices(view.page.runs_used)}. Mean over runs ± standard deviation. Times leave out compiling the "
        "kernels, but not in older archived runs, and depend on what else the machine was doing."
    )
    grid = replace(Grid.by_heading(lines), caption="Cost of a run of each row", links=links)
    return Section("cost", "Cost", [text], [grid], cost_plots(view.page))


def cost_line(result: Result) -> dict[str, str]:
    runs = [run.metrics for run in result.runs.values()]

    def spread(values: Iterable[float], digits: int, mean: float | None = None) -> str:
        summary = summarize(values)
        return cells.spread(summary.mean if mean is None else mean, summary.sd, digits)

    per_epoch = [run["seconds"] / run["epochs"] for run in runs]
    return {
        "": result.row.label,
        "parameters": f"{runs[0]['parameters']:,}",
        "of the model": f"{runs[0]['parameters_of'].get('model', 0):,}",
        "epochs": f"{fmean(run['epochs'] for run in runs):.1f}",
        "minutes per run": spread([run["seconds"] / 60 for run in runs], 1),
        "s per epoch": spread(per_epoch, 1, result.cost()["seconds_per_epoch"]),
        "tokens per s": spread([run["tokens_per_second"] for run in runs], 0),
        "peak memory, MB": f"{max(sum(run['peak_memory_bytes'].values()) for run in runs) / 1e6:,.0f}",
    }


def xor_section(results: XorResults) -> Section:
    """Picture and certificates of the XOR limit. The certificates are computed anew, and verify themselves."""
    proofs = certificates()
    plot = replace(xor_chart(cases(proofs), results.models), grid=Grid(HEADINGS, table_lines(results.models)))
    folded = [
        (f"Proof of section {it.program.section}: {it.program.name}", certificate.render(it))
        for it in cases(proofs)
    ]
    return Section("xor", "Proved, measured, trained", plots=[plot], folded=folded)


def provenance_section(made: Origin | None) -> Section | None:
    """Command, machine, code and data of the runs."""
    if made is None:
        return None
    points = [text for point, notes in made.points for text in (point, *notes)]
    folded = [("The command", made.command)] if made.command else []
    return Section("made", "How it was made", points=points, folded=folded)
