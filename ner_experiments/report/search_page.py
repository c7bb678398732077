"""Pages of searches (`hydra/sweeper=optuna`): best trials, importance of settings, and expected best score."""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

from ner_experiments.analysis import search_trials
from ner_experiments.analysis.search_trials import (
    Search,
    expected_best,
    expected_grid,
    importance_grid,
    trials_grid,
)
from ner_experiments.report.entries import file_name
from ner_experiments.report.run_plots import SMALL_HEIGHT
from ner_experiments.report.site import Head, Section, Site
from ner_experiments.utils.text import percent
from ner_experiments.view import charts
from ner_experiments.view.charts import Point
from ner_experiments.view.table import Grid
from ner_experiments.view.vega import SERIES, Chart, Look, Spec

log = logging.getLogger(__name__)

MAX_NAME = 60
NO_TEST = "Trials are ranked by dev score, and not scored on test; the command below scores the best settings on test."
EXPECTED = (
    "The mean of the best score over all ways to draw N of these trials, with replacement (Dodge et al. 2019): "
    "the expected result of a search of N trials. It treats the trials as independent draws, which only those of "
    "random search are."
)
IMPORTANCE = (
    "The share of the variance of dev scores that each setting explains alone (fANOVA, Hutter et al. 2014), "
    "estimated by a random forest on {count} trials. The rest is due to interactions and chance."
)


@dataclass(frozen=True)
class FoundSearch:
    """A search, and where its files are."""

    place: str
    search: Search

    @property
    def page(self) -> str:
        name = file_name(self.place.replace("searches/", ""))
        if len(name) > MAX_NAME:
            name = f"{name[-MAX_NAME:]}-{sha256(self.place.encode()).hexdigest()[:8]}"
        return f"search-{name}.html"


def find(outputs: Path) -> list[FoundSearch]:
    """All searches below a folder that have a trial. A file that cannot be read is left out with a warning."""
    searches = []
    for path in sorted(outputs.rglob(f"{search_trials.FOLDER}/*/{search_trials.FILE}")):
        try:
            search = search_trials.read(path)
        except (ValueError, OSError) as error:
            log.warning("left out of the report: %s", error)
            continue
        if search.trials:
            place = (outputs.name / path.parent.relative_to(outputs)).as_posix()
            searches.append(FoundSearch(place, search))
    return searches


def index_lines(searches: Sequence[FoundSearch]) -> list[dict[str, Any]]:
    """Variables of the index's template, one line per search."""
    return [
        {
            "title": title(each.search),
            "name": each.search.name,
            "link": each.page,
            "trials": len(each.search.ranked),
            "failed": len(each.search.failed) or "",
            "best": percent(each.search.ranked[0].score) if each.search.ranked else "",
            "hours": f"{hours(each.search):.1f}",
        }
        for each in searches
    ]


def title(search: Search) -> str:
    return f"Search over {', '.join(search.keys)}"


def hours(search: Search) -> float:
    return sum(trial.seconds for trial in search.trials) / 3600


def write_all(site: Site, searches: Sequence[FoundSearch]) -> None:
    for each in searches:
        search = each.search
        based_on = f"{len(search.ranked)} trials by dev {search.metric}, {search.sampler}."
        trail = [("Searches", "index.html#searches"), (search.name, "")]
        head = Head(title(search), f"{each.place} · {search.name}", based_on, trail)
        site.write_sections(each.page, head, sections(search))


def sections(search: Search) -> list[Section | None]:
    ranked = [best_section(search)] if search.ranked else []
    compared = [settings_section(search), expected_section(search)] if len(search.ranked) > 1 else []
    return [*ranked, *compared, failed_section(search), origin_section(search)]


def best_section(search: Search) -> Section:
    """All complete trials, best first, and their scores in the order in which they were proposed."""
    command = shlex.join(search.command(search.ranked[0]))
    return Section(
        "best",
        "Best trials",
        [NO_TEST],
        [trials_grid(search)],
        [history_plot(search)] if len(search.ranked) > 1 else [],
        folded=[("Score the best settings on test", command)],
    )


def settings_section(search: Search) -> Section:
    """Dev score by the values of each setting, and the importance of the settings."""
    texts = [IMPORTANCE.format(count=len(search.ranked))] if search.importance else []
    grids = [importance_grid(search)] if search.importance else []
    plots = [setting_plot(search, number) for number in range(len(search.keys))]
    return Section("settings", "Settings", texts, grids, plots, small=True)


def expected_section(search: Search) -> Section:
    best = [100 * score for score in expected_best(search.scores)]
    points = [Point(number, score) for number, score in enumerate(best, start=1)]
    panel = charts.lines(points, "trials", f"dev {search.metric}")
    drawn = plot(search, "Expected best dev score", "trials", panel, expected_grid(search))
    return Section("expected", "Expected best score by number of trials", [EXPECTED], plots=[drawn])


def failed_section(search: Search) -> Section | None:
    if not search.failed:
        return None
    lines = [[str(trial.number), *trial.varied_values, trial.error] for trial in search.failed]
    headings = ("trial", *search.keys, "error")
    grid = Grid(headings, lines, "Failed trials", text=len(headings) - 1)
    return Section("failed", "Failed trials", grids=[grid])


def origin_section(search: Search) -> Section:
    points = [
        f"Settings of all trials: `{' '.join(search.fixed) or 'the defaults'}`.",
        *(f"Range: `{item}`." for item in search.ranges),
        f"Seeds of each trial: {', '.join(map(str, search.seeds))}; a trial's score is their mean.",
        f"Sampler: {search.sampler}; {search.n_trials} trials were requested.",
        f"{hours(search):.1f} hours of training.",
    ]
    return Section("made", "How it was made", points=points)


# Plots


def history_plot(search: Search) -> Chart:
    complete = [trial for trial in search.trials if trial.score is not None]
    scores = [100 * score for score in search.scores]
    best = accumulate(scores, max)
    points, lines = [], []
    for trial, score, so_far in zip(complete, scores, best, strict=True):
        points += [
            Point(trial.number, score, "trial"),
            Point(trial.number, so_far, "best so far", marked=False),
        ]
        lines.append([str(trial.number), f"{score:.2f}", f"{so_far:.2f}"])
    grid = Grid(("trial", f"dev {search.metric}", "best so far"), lines)
    looks = {"trial": Look(SERIES[0], dash=(0, 1)), "best so far": Look(SERIES[1])}
    panel = charts.lines(points, "trial", f"dev {search.metric}", look_of=looks, line="step-after")
    return plot(search, "Dev score of each trial, and the best so far", "trial", panel, grid)


def setting_plot(search: Search, number: int) -> Chart:
    """Dev score by the value of one setting, on a logarithmic axis if its range is logarithmic."""
    key, metric = search.keys[number], f"dev {search.metric}"
    values = [trial.varied_values[number] for trial in search.ranked]
    scores = [100 * (trial.score or 0.0) for trial in search.ranked]
    grid = Grid((key, metric), [[it, f"{score:.2f}"] for it, score in zip(values, scores, strict=True)])
    numbers = numbers_of(values)
    log = numbers is not None and "log" in search.ranges[number].partition("=")[2] and min(numbers) > 0
    pairs = zip(numbers, scores, strict=True) if numbers else sorted(zip(values, scores, strict=True))
    points = [Point(x, score) for x, score in pairs]
    panel = charts.lines(points, key, metric, line="", log_x=log, height=SMALL_HEIGHT)
    return plot(search, key, key, panel, grid)


def numbers_of(values: Sequence[str]) -> list[float] | None:
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def plot(search: Search, title: str, x: str, panel: Spec, grid: Grid) -> Chart:
    return Chart(title, f"One point per trial, dev {search.metric} by {x}.", (panel,), grid=grid)
