"""Sections of a table's page: published and measured scores, plots, learning curves, cost and provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import fmean

from ner_experiments.analysis.statistics import summarize
from ner_experiments.report.entries import Entry
from ner_experiments.report.run_plots import BAND_TEXT, MAX_SEEDS, cost_plots, curve_limits, dev_curves
from ner_experiments.report.site import Section
from ner_experiments.tables.origin import comma_separated, devices
from ner_experiments.tables.pairs import mean
from ner_experiments.tables.plots import Plot, score_plots, seed_plots
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.table_view import MEANS
from ner_experiments.view import cells
from ner_experiments.view.table import Grid
from ner_experiments.xor import certificate
from ner_experiments.xor.certificate import cases, certificates
from ner_experiments.xor.picture import xor_chart
from ner_experiments.xor.results import HEADINGS, XorResults, table_lines

Links = Mapping[str, str]
"""Address of a row's page, by its label."""
COST_HEADINGS = (
    "",
    "parameters",
    "of the model",
    "epochs",
    "minutes per run",
    "s per epoch",
    "tokens per s",
    "peak memory, MB",
)


def sections(entry: Entry, links: Links) -> list[Section | None]:
    """Sections of a table's page that depend on its runs; None for those without content."""
    if entry.page.table.is_sweep:
        first = [
            answer_section(entry),
            *effects_sections(entry),
            differences_section(entry),
            results_section(entry, links),
        ]
    else:
        first = [results_section(entry, links), scores_section(entry), differences_section(entry)]
    return [
        *first,
        curves_section(entry),
        cost_section(entry, links),
    ]


def based_on(entry: Entry) -> str:
    """Sentence on the runs that the page is based on, and on what they cannot show."""
    if entry.page.table.command:
        return (
            f"Based on the output of {entry.page.table.command} in {comma_separated(entry.page.places)}."
            if entry.page.places
            else "Nothing has been measured yet."
        )
    if not entry.runs:
        kind, only = ("sweep", "") if entry.page.table.is_sweep else ("table", "; published numbers only")
        if any(result.missing for result in entry.page.results):
            return f"No run of this {kind} counts, for the reasons below{only}."
        return f"No run of this {kind} is finished{only}."
    count = f"{len(entry.runs)} runs" if len(entry.runs) > 1 else "one run"
    text = f"Based on {count} in {comma_separated(entry.page.places)}."
    if entry.has_archived_runs:
        text += (
            " Archived runs have no sentences, for the licenses of corpora, and no weights: sections that need"
            " either are left out (`ner-experiments report --runs DIR` has them for run folders)."
        )
    return " ".join(filter(None, [text, entry.view.standing]))


def answer_section(entry: Entry) -> Section | None:
    """The verdict on a sweep, and its seeds as points."""
    if not entry.page.runs:
        return None
    verdict = entry.view.verdict
    return Section(
        "answer",
        "The answer",
        [verdict] if verdict else [],
        plots=seed_plots(best_first(entry.page)),
        points=entry.view.looks,
    )


def best_first(page: Page) -> Page:
    """The page with the row of the highest mean on top."""
    measured = sorted((it for it in page.results if it.runs), key=mean, reverse=True)
    return replace(page, results=tuple(measured))


def effects_sections(entry: Entry) -> list[Section]:
    """Effects of the settings of a sweep that is a grid, with an interaction plot; one section for each corpus."""
    sections = []
    for number, it in enumerate(entry.view.effects):
        if (plot := it.plot) is not None:
            grids = [it.tests, it.differences] if it.analysis else []
            title = f"Effects of {it.title}"
            key = f"effects{number or ''}"
            texts = [it.sentence] if it.sentence else []
            sections.append(Section(key, title, texts, grids, [plot], points=it.notes))
    return sections


def differences_section(entry: Entry) -> Section | None:
    """Differences with the verdict behind the label, where a phone shows it; None without rows to compare."""
    differences = entry.view.differences
    if differences is None:
        return None
    *others, last = range(1, len(differences.grid.headings))
    are_all = entry.page.table.is_sweep and len(differences.pairs) == len(entry.view.pairs)
    pairs = "Each row minus each other" if are_all else "Differences between rows"
    grid = replace(
        differences.grid.of([0, last, *others]), caption=f"{pairs}, with intervals over seeds", text=1
    )
    notes = [differences.subject, *differences.explained()]
    grids = [grid]
    if (matrix := entry.view.matrix) is not None:
        grids.append(matrix)
        notes.insert(1, entry.view.matrix_legend)
    return Section("differences", "Differences between rows", grids=grids, notes=notes)


def results_section(entry: Entry, links: Links) -> Section:
    """The table itself, with rows in the paper's order."""
    page, view = entry.page, entry.view
    grid = view.results if page.table.is_published else view.results.renamed({"ours": "mean"})
    labels = {line[0]: result.row.label for line, result in zip(grid.lines, page.results, strict=True)}
    grid = replace(
        without_empty_end(grid),
        caption=page.table.title,
        links={text: links[label] for text, label in labels.items() if label in links},
        cited=frozenset(number for number, result in enumerate(page.results) if result.row.cited),
        text=int(publishes_text(entry)),
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


def without_empty_end(grid: Grid) -> Grid:
    """The grid without the empty columns at its end."""
    last = max(column for line in grid.lines for column, cell in enumerate(line) if cell)
    return grid.of(range(last + 1))


def publishes_text(entry: Entry) -> bool:
    """Whether a paper prints text rather than numbers."""
    return any(isinstance(row.published, str | tuple) for row in entry.page.table.rows)


def scores_section(entry: Entry) -> Section | None:
    plots = score_plots(entry.page)
    return Section("varied", "What the table varies", plots=plots) if plots else None


def curves_section(entry: Entry) -> Section | None:
    """Learning curves of the rows with runs, by corpus."""
    corpora: dict[tuple[str, str, str], list[Result]] = {}
    for result in entry.page.results:
        if result.runs:
            corpora.setdefault(scored_on(result), []).append(result)
    if not corpora:
        return None
    plots: list[Plot] = []
    for rows in corpora.values():
        limits = curve_limits([result.runs for result in rows])
        plots += [dev_curves(result.runs, result.row.label, limits) for result in rows]
    order = ", then ".join(dict.fromkeys(name for name, *_ in corpora))
    scale = "All rows share one scale."
    if len(corpora) > 1:
        scale = f"Rows on one corpus share one scale: first {order}."
    text = f"Dev score after each epoch, one line per seed. The marker is the epoch that dev chose. {scale}"
    if any(len(rows.runs) > MAX_SEEDS for rows in entry.page.results):
        text += f" {BAND_TEXT}"
    return Section("curves", "Learning curves", [text], plots=plots, small=True)


def scored_on(result: Result) -> tuple[str, str, str]:
    """Name and checksum of the corpus, and the primary metric."""
    primary_metric = next(iter(result.runs.values())).primary_metric
    return result.data["name"], result.data["checksum"], primary_metric


def cost_section(entry: Entry, links: Links) -> Section | None:
    lines = [cost_line(result) for result in entry.page.results if result.runs]
    if not lines:
        return None
    text = (
        f"On {devices(entry.runs)}. Mean over runs ± standard deviation. Times leave out compiling the kernels, but "
        "not in older archived runs, and depend on what else the machine was doing."
    )
    grid = Grid(COST_HEADINGS, lines, "Cost of a run of each row", links)
    return Section("cost", "Cost", [text], [grid], cost_plots(entry.page))


def cost_line(result: Result) -> list[str]:
    runs = [run.metrics for run in result.runs.values()]
    memory = [sum(run["peak_memory_bytes"].values()) / 1e6 for run in runs]
    speed = [run["tokens_per_second"] for run in runs]
    per_epoch = [run["seconds"] / run["epochs"] for run in runs]
    return [
        result.row.label,
        f"{runs[0]['parameters']:,}",
        f"{runs[0]['parameters_of'].get('model', 0):,}",
        f"{fmean(run['epochs'] for run in runs):.1f}",
        spread([run["seconds"] / 60 for run in runs], 1),
        cells.spread(result.cost()["seconds_per_epoch"], summarize(per_epoch).sd, 1),
        spread(speed, 0),
        f"{max(memory):,.0f}",
    ]


def spread(values: Iterable[float], digits: int) -> str:
    """Mean ± standard deviation."""
    summary = summarize(values)
    return cells.spread(summary.mean, summary.sd, digits)


def xor_section(results: XorResults) -> Section:
    """Picture and certificates of the XOR limit. The certificates are computed anew, and verify themselves."""
    proofs = certificates()
    plot = Plot(xor_chart(cases(proofs), results.models), Grid(HEADINGS, table_lines(results.models)))
    folded = [
        (f"Proof of section {it.program.section}: {it.program.name}", certificate.render(it))
        for it in cases(proofs)
    ]
    return Section("xor", "Proved, measured, trained", plots=[plot], folded=folded)


def provenance_section(entry: Entry) -> Section | None:
    """Command, machine, code and data of the runs."""
    made = entry.origin
    if made is None:
        return None
    points = [text for point, notes in made.points for text in (point, *notes)]
    folded = [("The command", made.command)] if made.command else []
    return Section("made", "How it was made", points=points, folded=folded)
