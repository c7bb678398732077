"""Plots of a published table: the paper's points beside ours, along a number that the table varies, or row by row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ner_experiments.config import row_settings
from ner_experiments.config.row_settings import display_name, joined, numeric, varying
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import CHUNK, Table
from ner_experiments.view import cells, charts
from ner_experiments.view.table import Grid
from ner_experiments.view.vega import MUTED, SERIES, SHAPES, Chart, Look

PAPER, CITED, OURS = "published", "cited by the paper", "ours"
MEAN, MEAN_OF_SEEDS, SEED = "mean", "mean, 95 % t-interval", "one seed"
LOOKS = {
    PAPER: Look(SERIES[1], "diamond", filled=False),
    CITED: Look(MUTED, "diamond", filled=False),
    OURS: Look(SERIES[0]),
    MEAN: Look(SERIES[0]),
    MEAN_OF_SEEDS: Look(SERIES[0]),
    SEED: Look(SERIES[1], filled=False),
}
MIN_POINTS = 3
"""Rows alike in all other settings that make a numeric setting an axis."""
BARS = (
    "Filled: our mean over seeds with its 95 % t-interval. Open: the published number, with the paper's standard "
    "deviation if it states one."
)
DESCRIPTION = f"{BARS} The numbers are in the table below the picture."
SEED_DESCRIPTION = (
    "Open points: the seeds. Filled points: their means, with 95 % t-intervals. An arrow marks one that leaves the "
    "axis. The numbers are in the table below the picture."
)


@dataclass(frozen=True)
class Axis:
    """A numeric setting, the rows along it, and the settings coupled to it, which add no information."""

    key: str
    points: tuple[Point, ...]
    coupled: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        coupled = f" (with {', '.join(map(display_name, self.coupled))})" if self.coupled else ""
        return display_name(self.key) + coupled


@dataclass(frozen=True)
class Point:
    """A row's position on the axis. `series`: the settings that distinguish it from other rows there."""

    x: float
    series: str
    result: Result


@dataclass(frozen=True)
class RowGroup:
    """Rows that are scored on one scale."""

    title: str
    results: tuple[Result, ...]


def score_plots(page: Page) -> list[Chart]:
    """One plot along the number that the table varies; without one, a plot for each group of rows."""
    if axis := axis_of(page):
        return [axis_plot(axis, unit_of(page.table, page.results))]
    return [row_plot(group, unit_of(page.table, group.results)) for group in row_groups(page)]


def unit_of(table: Table, results: Iterable[Result]) -> str:
    """The unit of the scores, from the runs of the results, or without runs from the table's title."""
    if table.command:
        return "phrases of 4"
    if table.analysis:
        chunks = any(row.measure and row.measure.figure == CHUNK for row in table.rows)
        return "points of recall" if chunks else "points of F1"
    metrics = {run.score_name for result in results for run in result.runs.values()}
    metrics = metrics or {name for _, name in PRIMARY_METRIC.values() if name in table.title}
    return f"test {metrics.pop()}" if len(metrics) == 1 else "test score"


def axis_of(page: Page) -> Axis | None:
    """The first number that the table varies, with at least `MIN_POINTS` rows alike in all else, or None.

    A non-numeric setting with a different value in each of these rows is what the rows are about; then the number is
    no axis. Other numbers that qualify are coupled to the first.
    """
    rows = [(settings(page.table, result), result) for result in page.results if result.row.run is not None]
    keys = varying([row for row, _ in rows])
    numbers = numeric([row for row, _ in rows], keys)
    choices = [key for key in keys if key not in numbers]
    candidates = []
    for key in numbers:
        points = [Point(float(row[key]), series_name(row, choices), result) for row, result in rows]
        sizes = Counter(point.series for point in points)
        distinct = len({(point.x, point.series) for point in points}) == len(points)
        if distinct and max(sizes.values()) >= MIN_POINTS:
            candidates.append(Axis(key, tuple(sorted(points, key=lambda point: point.x))))
    if not candidates:
        return None
    return replace(candidates[0], coupled=tuple(other.key for other in candidates[1:]))


def settings(table: Table, result: Result) -> dict[str, str]:
    """The overrides that make the row, by key; empty for a row that is not run."""
    if result.row.run is None:
        return {}
    return row_settings.settings(joined(table.base, result.row.run))


def series_name(row: Mapping[str, str], keys: Sequence[str]) -> str:
    return ", ".join(row[key].rpartition("/")[2] for key in keys if key in row)


def row_groups(page: Page) -> list[RowGroup]:
    """The rows with a score, grouped by what they are scored on: the corpus, or the tag of a figure.

    A cited row belongs to the group whose labels alone share a word with its label, such as "POS".
    """
    names = {data_choice(page, result): corpus(result) for result in reversed(page.results) if result.runs}
    by_title: dict[str, list[Result]] = {}
    for result in page.results:
        if has_score(result) and not result.row.cited:
            by_title.setdefault(scored_on(page, result, names), []).append(result)
    common_words = {title: set.intersection(*map(words, results)) for title, results in by_title.items()}
    for result in page.results:
        if has_score(result) and result.row.cited:
            for title in by_title:
                if len(by_title) == 1 or unique_words(title, common_words) & words(result):
                    by_title[title].append(result)
                    break
    order = {result.row.label: number for number, result in enumerate(page.results)}
    return [
        RowGroup(title, tuple(sorted(results, key=lambda result: order[result.row.label])))
        for title, results in by_title.items()
    ]


def has_score(result: Result) -> bool:
    return isinstance(result.row.published, int | float) or bool(result.scores)


def scored_on(page: Page, result: Result, names: Mapping[str, str]) -> str:
    """The title of the row's group. `names` maps choices of data to the corpus names of their runs, if any."""
    measure = result.row.measure
    if measure is None:
        choice = data_choice(page, result)
        return corpus(result) if result.runs else names.get(choice, choice)
    if measure.figure == CHUNK:
        return f"tag {measure.key}"
    return measure.of.partition(",")[0]


def data_choice(page: Page, result: Result) -> str:
    """The choice of data in the page's deviations or, without one, in the row."""
    return (settings(page.table, result) | row_settings.settings(page.deviations)).get("data", "")


def corpus(result: Result) -> str:
    return str(result.data["name"])


def words(result: Result) -> set[str]:
    return set(re.findall(r"\w+", result.row.label))


def unique_words(title: str, common_words: Mapping[str, set[str]]) -> set[str]:
    """The words that all labels of one group share, without those that all labels of another share."""
    others = [words_of_other for other, words_of_other in common_words.items() if other != title]
    return common_words[title] - set().union(*others)


def axis_plot(axis: Axis, unit: str) -> Chart:
    """Chart with one line along the axis per series; published and ours in two panels if they are of different data."""
    kinds = [kind for kind in (PAPER, OURS) if any(center(it.result, kind) is not None for it in axis.points)]
    comparable = all(point.result.comparable for point in axis.points)
    looks = {}
    for number, series in enumerate(dict.fromkeys(point.series for point in axis.points)):
        color, shape = SERIES[number % len(SERIES)], SHAPES[number % len(SHAPES)]
        looks[series_of(series, PAPER)] = Look(color, shape, filled=False, dash=(6, 3))
        looks[series_of(series, OURS)] = Look(color, shape)
    panels = []
    for side in [kinds] if comparable else [[kind] for kind in kinds]:
        points = [
            charts.Point(it.x, middle, series_of(it.series, kind), *ends(it.result, kind))
            for kind in side
            for it in axis.points
            if (middle := center(it.result, kind)) is not None
        ]
        label = unit if comparable else f"{unit}, {side[0]}"
        log = charts.is_wide([point.x for point in axis.points])
        panels.append(charts.lines(points, axis.label, label, look_of=looks, ticks=True, log_x=log))
    grid = score_grid([point.result for point in axis.points], MEAN)
    return Chart(f"{unit} by {axis.label}", DESCRIPTION, tuple(panels), grid=grid)


def series_of(series: str, kind: str) -> str:
    return f"{series}, {kind}" if series else kind


def row_plot(group: RowGroup, unit: str) -> Chart:
    """Chart with one line per row, the first on top; published and ours in two panels if they are not comparable."""
    is_published = any(center(it, PAPER) is not None for it in group.results)
    comparable = all(result.comparable for result in group.results)
    sides = [[PAPER, CITED, OURS]] if comparable else [[PAPER, CITED], [OURS]]
    panels = []
    for side in sides:
        values = []
        for result in group.results:
            for kind in (PAPER, OURS):
                name = CITED if kind == PAPER and result.row.cited else kind
                score = center(result, kind)
                if name in side and score is not None:
                    low, high = ends(result, kind)
                    shown_as = name if is_published else MEAN
                    values.append(charts.Value(result.row.label, score, low, high, shown_as))
        if values:
            label = unit if comparable else f"{unit}, {OURS if side == [OURS] else PAPER}"
            panels.append(charts.dots(values, label, look_of=LOOKS))
    title = f"{unit}, row by row" + (f": {group.title}" if group.title else "")
    return Chart(title, DESCRIPTION, tuple(panels), grid=score_grid(group.results, MEAN))


def seed_plots(page: Page) -> list[Chart]:
    """Plots of a sweep, one per corpus: every seed as a small point, with the mean and its interval, row by row."""
    return [seed_plot(group, unit_of(page.table, group.results)) for group in row_groups(page)]


def seed_plot(group: RowGroup, unit: str) -> Chart:
    values = []
    for result in group.results:
        low, high = ends(result, OURS)
        values.append(charts.Value(result.row.label, center(result, OURS) or 0.0, low, high, MEAN_OF_SEEDS))
        values += [charts.Value(result.row.label, score, series=SEED) for score in result.scores.values()]
    title = f"{unit} of each seed" + (f": {group.title}" if group.title else "")
    panel = charts.dots(values, unit, look_of=LOOKS)
    return Chart(title, SEED_DESCRIPTION, (panel,), grid=score_grid(group.results, MEAN))


def center(result: Result, kind: str) -> float | None:
    if kind == OURS:
        return result.measured.mean if result.measured else None
    published = result.row.published
    return float(published) if isinstance(published, int | float) else None


def ends(result: Result, kind: str) -> tuple[float, float] | tuple[None, None]:
    """Both ends of the bar through a point: the paper's standard deviation, or our 95 % interval; None without."""
    if kind == PAPER:
        published, sd = center(result, PAPER), result.row.sd
        return (published - sd, published + sd) if published is not None and sd else (None, None)
    ours = result.measured
    if ours is None or ours.low is None or ours.high is None:
        return None, None
    return ours.low, ours.high


def score_grid(results: Sequence[Result], measured: str = OURS) -> Grid:
    """Published and measured scores. measured: heading of ours where nothing is published."""
    lines = []
    for result in results:
        ours, row = result.measured, result.row
        lines.append(
            [
                row.label,
                cells.published(row.published, row.sd, row.runs),
                cells.score(ours),
                cells.interval(ours),
            ]
        )
    if any(line[1] for line in lines):
        return Grid(("row", PAPER, OURS, "95 %"), lines)
    return Grid(("row", measured, "95 %"), [[line[0], *line[2:]] for line in lines])
