"""Sections of a table's page: published and measured scores, plots, learning curves, cost and provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from ner_experiments.analysis.statistics import summarize
from ner_experiments.report.entries import Entry
from ner_experiments.report.run_plots import BAND_TEXT, MAX_SEEDS, cost_plots, curve_limits, dev_curves
from ner_experiments.report.site import PageTable, Section
from ner_experiments.tables import render, sweep_registration
from ner_experiments.tables.looks import decide
from ner_experiments.tables.pairs import Pair
from ner_experiments.tables.plots import Plot, score_plots, seed_plots
from ner_experiments.tables.render import Grid
from ner_experiments.tables.results_folder import (
    comma_separated,
    data_origin,
    devices,
    hours,
    short_commit,
    trials_origin,
)
from ner_experiments.tables.scores import Result
from ner_experiments.tables.significance import compare_rows
from ner_experiments.xor import certificate
from ner_experiments.xor.certificate import cases, certificates
from ner_experiments.xor.picture import xor_chart
from ner_experiments.xor.results import HEADINGS, XorResults, table_lines

MEANS = "In percent: mean ± standard deviation (runs), and the 95 % t-interval of the mean over seeds."
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
        first = [answer_section(entry), pairs_section(entry), results_section(entry, links)]
    else:
        first = [results_section(entry, links), scores_section(entry), comparisons_section(entry)]
    return [
        *first,
        curves_section(entry),
        cost_section(entry, links),
    ]


def based_on(entry: Entry) -> str:
    """Sentence on the runs that the page is based on, and on what they cannot show."""
    if entry.page.table.command:
        return (
            f"Based on the output of {entry.page.table.command} in {comma_separated(entry.places)}."
            if entry.places
            else "Nothing has been measured yet."
        )
    if not entry.runs:
        kind, only = ("sweep", "") if entry.page.table.is_sweep else ("table", "; published numbers only")
        if any(result.missing for result in entry.page.results):
            return f"No run of this {kind} counts, for the reasons below{only}."
        return f"No run of this {kind} is finished{only}."
    count = f"{len(entry.runs)} runs" if len(entry.runs) > 1 else "one run"
    text = f"Based on {count} in {comma_separated(entry.places)}."
    if entry.has_archived_runs:
        text += (
            " Archived runs have no sentences, for the licenses of corpora, and no weights: sections that need"
            " either are left out (`ner-experiments report --runs DIR` has them for run folders)."
        )
    return " ".join(filter(None, [text, sweep_registration.statement(entry.page)]))


def answer_section(entry: Entry) -> Section | None:
    """The verdict on a sweep, and its seeds as points."""
    page = entry.page
    if not page.runs:
        return None
    verdict = entry.verdict
    points = decide(page, page.table.looks, page.table.seeds[0]).history if page.table.looks else []
    return Section(
        "answer", "The answer", [verdict] if verdict else [], plots=seed_plots(page), points=points
    )


def pairs_section(entry: Entry) -> Section | None:
    """All pairs of the rows of a sweep; None for fewer than two rows with runs on one corpus."""
    if not entry.pairs:
        return None
    return differences_section(
        render.pair_grid(entry.pairs), "Each row minus each other", render.PAIRS, entry.pairs
    )


def verdict_first(line: Sequence[str]) -> list[str]:
    """A line with its last cell, the verdict, moved behind the first."""
    return [line[0], line[-1], *line[1:-1]]


def results_section(entry: Entry, links: Links) -> Section:
    """The table itself, with rows in the paper's order."""
    page = entry.page
    grid = render.results(page)
    if not page.table.is_published:
        grid = Grid(["mean" if it == "ours" else it for it in grid.headings], grid.lines)
    row_links = {
        line[0]: links[result.row.label]
        for line, result in zip(grid.lines, page.results, strict=True)
        if result.row.label in links
    }
    cited = frozenset(number for number, result in enumerate(page.results) if result.row.cited)
    table = PageTable(
        without_empty_columns(grid), page.table.title, row_links, cited, text=int(publishes_text(entry))
    )
    legend = render.legend(page) if page.table.is_published else MEANS
    texts = [legend] if any(result.scores for result in page.results) else []
    texts += [close] if (close := render.closeness(page)) else []
    texts += [render.ORACLE_EPOCH] if render.RESULT_HEADINGS[-1] in grid.headings else []
    title = " and ".join(name for name in ("published", "ours") if name in table.grid.headings)
    points = render.notes(page)
    return Section(
        "results",
        title.capitalize() or ("Rows" if page.table.is_published else "Scores"),
        grids=[table],
        notes=texts,
        points=points,
    )


def without_empty_columns(grid: Grid) -> Grid:
    """The grid without the empty columns at its end."""
    last = max(column for line in grid.lines for column, cell in enumerate(line) if cell)
    return Grid(grid.headings[: last + 1], [line[: last + 1] for line in grid.lines])


def publishes_text(entry: Entry) -> bool:
    """Whether a paper prints text rather than numbers."""
    return any(isinstance(row.published, str | list) for row in entry.page.table.rows)


def scores_section(entry: Entry) -> Section | None:
    plots = score_plots(entry.page)
    return Section("varied", "What the table varies", plots=plots) if plots else None


def comparisons_section(entry: Entry) -> Section | None:
    comparisons = compare_rows(entry.page)
    if not comparisons:
        return None
    return differences_section(render.comparisons(comparisons), "Differences between rows", render.COMPARED)


def differences_section(grid: Grid, caption: str, subject: str, tested: Sequence[Pair] = ()) -> Section:
    """Differences with the verdict behind the label, where a phone shows it."""
    shown = Grid(verdict_first(grid.headings), [verdict_first(line) for line in grid.lines])
    table = PageTable(shown, f"{caption}, with intervals over seeds", text=1)
    notes = [subject, *render.explained(grid, tested)]
    return Section("differences", "Differences between rows", grids=[table], notes=notes)


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
        f"On {devices(entry.runs)}. Mean over runs ± standard deviation. Times include compiling the kernels, once "
        "per machine, and depend on what else the machine was doing."
    )
    table = PageTable(Grid(COST_HEADINGS, lines), "Cost of a run of each row", links)
    return Section("cost", "Cost", [text], [table], cost_plots(entry.page))


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
        mean_and_sd(result.cost()["seconds_per_epoch"], summarize(per_epoch).sd, 1),
        spread(speed, 0),
        f"{max(memory):,.0f}",
    ]


def spread(values: Sequence[float], digits: int) -> str:
    if not values:
        return ""
    summary = summarize(values)
    return mean_and_sd(summary.mean, summary.sd, digits)


def mean_and_sd(mean: float, sd: float | None, digits: int) -> str:
    return f"{mean:,.{digits}f}" + ("" if sd is None else f" ± {sd:,.{digits}f}")


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
    runs, trials = entry.runs, entry.page.trials
    if trials:
        folded = [("The command", entry.page.table.command)]
        return Section("made", "How it was made", points=trials_origin(trials), folded=folded)
    if not runs:
        return None
    torch = comma_separated(
        {f"torch {run.metrics['versions']['torch']}" for run in runs if "versions" in run.metrics}
    )
    points = [
        f"{len(runs)} runs, {hours(runs):.1f} hours of training in total, on {devices(runs)}; {torch}.",
        f"Code: checksum {comma_separated({run.metrics['code'][:12] for run in runs})}, "
        f"commit {comma_separated({short_commit(run.metrics) for run in runs})}.",
    ]
    for name, checksum, notes in sorted({data_origin(run.metrics["data"]) for run in runs}):
        points.append(f"Data: {name}, checksum {checksum[:12]}.")
        points += notes
    return Section("made", "How it was made", points=points, folded=entry.commands)
