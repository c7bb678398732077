"""What a table varies, read from the overrides of its rows: a number to be the axis, or kinds of things."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ner_experiments import table_settings
from ner_experiments.table_runs import joined
from ner_experiments.table_scores import Page, Result
from ner_experiments.table_settings import named, numeric, varying
from ner_experiments.tables import Table

FEWEST = 3
"""Values that make an axis of a setting."""


@dataclass(frozen=True)
class Point:
    """A row's place on the axis. `series`: what else sets it apart from others."""

    x: float
    series: str
    result: Result


@dataclass(frozen=True)
class Axis:
    """A numeric setting, the rows along it, and the settings that change with it and say nothing new."""

    key: str
    points: tuple[Point, ...]
    coupled: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        with_it = f" (with {', '.join(map(named, self.coupled))})" if self.coupled else ""
        return named(self.key) + with_it


@dataclass(frozen=True)
class Panel:
    """Rows that are scored on one scale."""

    title: str
    results: tuple[Result, ...]


def settings(table: Table, result: Result) -> dict[str, str]:
    """The overrides that make the row, by key; nothing for one that is not run."""
    if result.row.run is None:
        return {}
    return table_settings.settings(joined(table.base, result.row.run))


def axis(page: Page) -> Axis | None:
    """The first number that the table varies along which there are at least three rows alike in all else.

    A setting that has another value in each of them, and is no number, is what the rows are about; the number
    is then no axis. Further such numbers are named with it.
    """
    rows = [(settings(page.table, it), it) for it in page.results if it.row.run is not None]
    keys = varying([row for row, _ in rows])
    numbers = numeric([row for row, _ in rows], keys)
    kinds = [key for key in keys if key not in numbers]
    found = []
    for key in numbers:
        points = [Point(float(row[key]), name(row, kinds), result) for row, result in rows]
        lines = Counter(point.series for point in points)
        distinct = len({(point.x, point.series) for point in points}) == len(points)
        if distinct and max(lines.values()) >= FEWEST:
            found.append(Axis(key, tuple(sorted(points, key=lambda point: point.x))))
    if not found:
        return None
    return replace(found[0], coupled=tuple(other.key for other in found[1:]))


def name(row: Mapping[str, str], keys: Sequence[str]) -> str:
    return ", ".join(row[key].rpartition("/")[2] for key in keys if key in row)


def panels(page: Page) -> list[Panel]:
    """The rows with a figure, by what they are scored on: the corpus, or the tag of a figure.

    A cited row belongs where its label says what only the labels of that panel say, such as "POS".
    """
    of_panel: dict[str, list[Result]] = {}
    names = {chosen(page, it): corpus(it) for it in reversed(page.results) if it.runs}
    for result in page.results:
        if is_figure(result) and not result.row.cited:
            of_panel.setdefault(scored_on(page, result, names), []).append(result)
    shared = {key: common(found) for key, found in of_panel.items()}
    for result in page.results:
        if is_figure(result) and result.row.cited:
            at_home = [key for key in of_panel if len(of_panel) == 1 or own(key, shared) & words(result)]
            for key in at_home[:1]:
                of_panel[key].append(result)
    order = {result.row.label: number for number, result in enumerate(page.results)}
    return [
        Panel(key, tuple(sorted(found, key=lambda it: order[it.row.label])))
        for key, found in of_panel.items()
    ]


def is_figure(result: Result) -> bool:
    return isinstance(result.row.published, int | float) or bool(result.scores)


def scored_on(page: Page, result: Result, names: Mapping[str, str]) -> str:
    """Of a row without runs the name that runs have with the same choice of data, if there are any."""
    measure = result.row.measure
    if measure is None:
        choice = chosen(page, result)
        return corpus(result) if result.runs else names.get(choice, choice)
    if measure.figure == "chunk":
        return f"tag {measure.key}"
    return measure.of.partition(",")[0]


def chosen(page: Page, result: Result) -> str:
    """The choice of data that makes the row, or that of the page's deviations."""
    return (settings(page.table, result) | table_settings.settings(page.deviations)).get("data", "")


def corpus(result: Result) -> str:
    return str(result.data["name"])


def words(result: Result) -> set[str]:
    return set(re.findall(r"\w+", result.row.label))


def common(results: Sequence[Result]) -> set[str]:
    return set.intersection(*map(words, results))


def own(key: str, shared: Mapping[str, set[str]]) -> set[str]:
    """What all labels of a panel say, and not all of another."""
    others = [found for other, found in shared.items() if other != key]
    return shared[key] - set().union(*others)
