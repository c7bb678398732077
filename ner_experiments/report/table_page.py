"""The XOR limit on its table's page: the picture, drawn from what `ner-experiments xor` left.

A table's own page: published beside ours, what is varied, curves, cost, and how it was made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from ner_experiments.analysis.statistics import summarize
from ner_experiments.report import plots as plot_curves
from ner_experiments.report.entries import Entry
from ner_experiments.report.plots import cost_plots
from ner_experiments.report.site import Section, Shown
from ner_experiments.tables import render
from ner_experiments.tables.pages import data_origin, devices, hours, listed, short_commit, trials_origin
from ner_experiments.tables.plots import score_plots
from ner_experiments.tables.render import Grid
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.svg import Plot, inline
from ner_experiments.xor import certificate as proofs
from ner_experiments.xor.certificate import cases, certificates
from ner_experiments.xor.experiment import HEADINGS, lines
from ner_experiments.xor.picture import drawn
from ner_experiments.xor.results import Trials

DESCRIPTION = (
    "Left: how many of four phrases a sum of past and future can tag, by certificate. Middle: the largest "
    "interaction of past and future at random weights. Right: the most phrases that training got right."
)


def picture(trials: Trials) -> Section:
    """Its proofs are made again; they check themselves."""
    proved, found = certificates(), trials.found
    title = "The XOR limit: proved, measured and trained"
    svg = inline(drawn(cases(proved), found), "xor", title, DESCRIPTION)
    plot = Plot(svg, title, Grid(HEADINGS, lines(found)))
    folded = [
        (f"Proof of section {it.program.section}: {it.program.name}", proofs.render(it))
        for it in cases(proved)
    ]
    return Section("xor", "Proved, measured, trained", plots=[plot], folded=folded)


Links = Mapping[str, str]
"""The page of a row, by its label."""
OF_THE_PAPER = ("published", "ours - published", "expected")
"""Columns of what a paper prints."""


def results(entry: Entry, links: Links) -> Section:
    """The table itself, in the paper's order."""
    page = entry.page
    grid = render.results(page)
    of_line = {
        line[0]: links[it.row.label]
        for line, it in zip(grid.lines, page.results, strict=True)
        if it.row.label in links
    }
    cited = frozenset(number for number, it in enumerate(page.results) if it.row.cited)
    shown = Shown(filled(page, grid), page.table.title, of_line, cited, text=int(in_words(entry)))
    legend = render.legend(page) if is_printed(page) else render.OURS
    texts = [legend] if any(it.scores for it in page.results) else []
    texts += [render.ORACLE_EPOCH] if grid.headings == render.RESULT_HEADINGS else []
    title = " and ".join(name for name in ("published", "ours") if name in shown.grid.headings)
    points = render.notes(page)
    return Section("results", title.capitalize() or "Rows", grids=[shown], notes=texts, points=points)


def filled(page: Page, grid: Grid) -> Grid:
    """Up to the last column with something in it; of what is published none, if nothing is."""
    last = max(place for line in grid.lines for place, cell in enumerate(line) if cell)
    hidden = () if is_printed(page) else OF_THE_PAPER
    places = [place for place, name in enumerate(grid.headings) if place <= last and name not in hidden]
    return Grid(
        [grid.headings[place] for place in places],
        [[line[place] for place in places] for line in grid.lines],
    )


def is_printed(page: Page) -> bool:
    """Whether a paper has a figure, or sentences, for a row."""
    return any(row.published is not None for row in page.table.rows)


def in_words(entry: Entry) -> bool:
    """Whether what is published are sentences."""
    return any(isinstance(row.published, str | list) for row in entry.page.table.rows)


def varied(entry: Entry) -> Section | None:
    plots = score_plots(entry.page)
    return Section("varied", "What the table varies", plots=plots) if plots else None


def compared(entry: Entry) -> Section | None:
    found = entry.page.comparisons()
    if not found:
        return None
    grid = render.comparisons(found)
    caption = "Differences of rows, with their intervals over seeds"
    return Section(
        "differences", "What separates the rows", grids=[Shown(grid, caption)], notes=[render.COMPARED]
    )


def curves(entry: Entry) -> Section | None:
    """Of the rows with runs, corpus by corpus."""
    corpora: dict[tuple[str, str, str], list[Result]] = {}
    for result in entry.page.results:
        if result.runs:
            corpora.setdefault(scored_on(result), []).append(result)
    if not corpora:
        return None
    plots: list[Plot] = []
    for rows in corpora.values():
        limits = plot_curves.limits([it.runs for it in rows])
        for it in rows:
            plots.append(plot_curves.dev(it.runs, f"curve-{len(plots)}", it.row.label, limits))
    order = ", then ".join(dict.fromkeys(name for name, *_ in corpora))
    scale = "All rows have one scale."
    if len(corpora) > 1:
        scale = f"Rows on one corpus have one scale: first {order}."
    text = f"Dev after each epoch, a line for each seed; the mark is the epoch that dev chose. {scale}"
    return Section("curves", "Learning curves", [text], plots=plots, small=True)


def scored_on(result: Result) -> tuple[str, str, str]:
    """The corpus, its checksum, and what is counted of it."""
    primary_metric = next(iter(result.runs.values())).primary_metric
    return result.data["name"], result.data["checksum"], primary_metric


def cost(entry: Entry, links: Links) -> Section | None:
    lines = [cost_line(result) for result in entry.page.results if result.runs]
    if not lines:
        return None
    headings = (
        "",
        "parameters",
        "of the model",
        "epochs",
        "minutes a run",
        "s per epoch",
        "tokens per s",
        "most memory, MB",
    )
    text = (
        f"On {devices(entry.runs)}. Means over runs ± standard deviation; "
        "the seconds depend on what else the machine did."
    )
    shown = Shown(Grid(headings, lines), "What a run of each row costs", links)
    return Section("cost", "Cost", [text], [shown], cost_plots(entry.page))


def cost_line(result: Result) -> list[str]:
    runs = [run.metrics for run in result.runs.values()]
    memory = [sum(run["peak_memory_bytes"].values()) / 1e6 for run in runs if "peak_memory_bytes" in run]
    speed = [run["tokens_per_second"] for run in runs if "tokens_per_second" in run]
    per_epoch = [run["seconds"] / run["epochs"] for run in runs]
    return [
        result.row.label,
        f"{runs[0]['parameters']:,}",
        f"{runs[0]['parameters_of'].get('model', 0):,}" if "parameters_of" in runs[0] else "",
        f"{fmean(run['epochs'] for run in runs):.1f}",
        spread([run["seconds"] / 60 for run in runs], 1),
        around(result.cost()["seconds_per_epoch"], summarize(per_epoch).sd, 1),
        spread(speed, 0),
        f"{max(memory):,.0f}" if memory else "",
    ]


def spread(values: Sequence[float], digits: int) -> str:
    if not values:
        return ""
    found = summarize(values)
    return around(found.mean, found.sd, digits)


def around(mean: float, sd: float | None, digits: int) -> str:
    return f"{mean:,.{digits}f}" + ("" if sd is None else f" ± {sd:,.{digits}f}")


def made(entry: Entry) -> Section | None:
    """The command, the machine, the code and the data."""
    runs, trials = entry.runs, entry.page.trials
    if trials:
        folded = [("The command", entry.page.table.command)]
        return Section("made", "How it was made", points=trials_origin(trials), folded=folded)
    if not runs:
        return None
    torch = listed({f"torch {run.metrics['versions']['torch']}" for run in runs if "versions" in run.metrics})
    points = [
        f"{len(runs)} runs, {hours(runs):.1f} hours of training in all, on {devices(runs)}; {torch}.",
        f"Code: checksum {listed({run.metrics['code'][:12] for run in runs})}, "
        f"commit {listed({short_commit(run.metrics) for run in runs})}.",
    ]
    for name, checksum, notes in sorted({data_origin(run.metrics["data"]) for run in runs}):
        points.append(f"Data: {name}, checksum {checksum[:12]}.")
        points += notes
    return Section("made", "How it was made", points=points, folded=entry.commands)


def stands_on(entry: Entry) -> str:
    """Which runs a page is made of, and what these cannot show."""
    if entry.page.table.command:
        return (
            f"Stands on what {entry.page.table.command} left in {listed(entry.places)}."
            if entry.places
            else "Nothing was measured yet."
        )
    if not entry.runs:
        if any(it.missing for it in entry.page.results):
            return "No run of this table counts; below are the published numbers, and why."
        return "No run of this table is finished; below are the published numbers."
    count = f"{len(entry.runs)} runs" if len(entry.runs) > 1 else "one run"
    text = f"Stands on {count} in {listed(entry.places)}."
    if entry.sealed:
        text += (
            " Kept runs have no sentences, for the licences of corpora, and no weights: what needs either"
            " is left out (`ner-experiments report --runs DIR` shows it of run folders)."
        )
    return text


def all_sections(entry: Entry, links: Links) -> list[Section]:
    found = [results(entry, links), varied(entry), compared(entry), curves(entry), cost(entry, links)]
    return [section for section in found if section is not None]
