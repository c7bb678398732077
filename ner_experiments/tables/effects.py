"""Effects of the settings of a sweep that is a grid: F1 by each setting at each level of the others, and tests of them.

A grid is the rows on one corpus if they are more than half of the combinations of two or more settings' values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from ner_experiments.analysis import factorial, statistics
from ner_experiments.analysis.factorial import Factorial, Term
from ner_experiments.config.row_settings import CORPUS, compared, display_name, is_number
from ner_experiments.tables.pairs import Pair
from ner_experiments.tables.plots import OURS, ends, settings, unit_of
from ner_experiments.tables.scores import Page, Result, groups, named_seeds
from ner_experiments.tables.significance import ALPHA
from ner_experiments.utils.text import listed
from ner_experiments.view import cells, charts
from ner_experiments.view.table import Grid
from ner_experiments.view.vega import Chart

Cell = tuple[str, ...]
"""The value of each setting of a grid."""
MODEL = (
    "Analysis of variance of all rows together: score = mean of the row + {seed}error, with one variance of the errors "
    "and {freedom} degrees of freedom. Each level of a setting counts equally."
)
DIFFERENCES = (
    "Main effects: the mean over the other settings minus that of the first level. Interactions (with x): by how much "
    "that difference is larger at the second setting's level than at its first. In points, with 95 % t-intervals for "
    "new seeds on this test set, not corrected for their number. p corrected: of the F tests, by Holm."
)
DESCRIPTION = (
    "Means over seeds with 95 % t-intervals. Effects that do not depend on each other have parallel lines."
)
SIGNS = {"ahead": "+", "behind": "-", "equal": "=", "undecided": "."}


@dataclass(frozen=True)
class Effects:
    """A grid of rows.

    corpus: the choice of data, if the sweep has several. levels: the values of each setting that varies, by its key.
    rows: those in the grid by their cell, with or without runs.
    """

    page: Page
    corpus: str
    levels: Mapping[str, Sequence[str]]
    rows: Mapping[Cell, Result]

    @property
    def title(self) -> str:
        return f"{' x '.join(map(display_name, self.levels))}{f' on {self.corpus}' if self.corpus else ''}"

    @property
    def missing(self) -> list[Cell]:
        """The cells without a score."""
        return [cell for cell in product(*self.levels.values()) if not self.scores(cell)]

    def scores(self, cell: Cell) -> Mapping[int, float]:
        return self.rows[cell].scores if cell in self.rows else {}

    @cached_property
    def full(self) -> Mapping[str, Sequence[str]]:
        """The levels whose combinations all have scores: without those that miss most, one after another.

        Settings that are left with one level are kept.
        """
        levels = {key: [*values] for key, values in self.levels.items()}
        while missing := [cell for cell in product(*levels.values()) if not self.scores(cell)]:
            shares = {
                (key, value): sum(cell[place] == value for cell in missing) * len(levels[key])
                for place, key in enumerate(levels)
                for value in levels[key]
            }
            key, value = max(shares, key=shares.__getitem__)
            levels[key].remove(value)
            if not levels[key]:
                return {}
        return levels

    @cached_property
    def used(self) -> dict[Cell, dict[int, float]]:
        """Scores by seed of the cells that are analyzed: of the seeds that all have, if these are two or more."""
        found = {cell: dict(self.scores(cell)) for cell in product(*self.full.values())} if self.full else {}
        common = set.intersection(*map(set, found.values())) if found else set[int]()
        if len(common) < 2:
            return found
        return {cell: {seed: own[seed] for seed in sorted(common)} for cell, own in found.items()}

    def shown(self, cell: Cell) -> Result | None:
        """The row of a cell, if there is one; of those that are analyzed, with the seeds that are."""
        row = self.rows.get(cell)
        return row.at(self.used[cell]) if row and self.analysis and cell in self.used else row

    @property
    def without(self) -> str:
        """`without seed 3, which not all rows have`, if there are such seeds in the rows that are analyzed."""
        own = self.used.items() if self.analysis else ()
        others = sorted({seed for cell, used in own for seed in self.scores(cell) if seed not in used})
        return f"without {named_seeds(others)}, which not all rows have" if others else ""

    @property
    def factors(self) -> list[str]:
        """The settings with two or more levels among the cells that are analyzed."""
        return [key for key, values in self.full.items() if len(values) > 1]

    @cached_property
    def analysis(self) -> Factorial | None:
        """None if less than two settings are left, or if no cell has two seeds."""
        if len(self.factors) < 2:
            return None
        return factorial.analyze([*self.used.values()], [len(self.full[key]) for key in self.factors])

    @property
    def notes(self) -> list[str]:
        """Assumptions of the analysis, and the rows and seeds that it leaves out."""
        texts, found = [], self.analysis
        if found:
            seed = "seed + " if found.is_blocked else ""
            texts += [MODEL.format(seed=seed, freedom=found.freedom), DIFFERENCES]
            if not found.is_blocked:
                texts.append("The rows do not have the same seeds, so that seeds are no blocks.")
        if self.missing:
            states: dict[str, list[str]] = {}
            for cell in self.missing:
                state = "Not counted" if cell in self.rows and self.rows[cell].missing else "Not measured"
                states.setdefault(state, []).append(" ".join(cell_settings(self.levels, cell)))
            texts += [f"{state}: {listed(cells)}." for state, cells in states.items()]
            left_out = [
                f"{key}={value}"
                for key, values in self.levels.items()
                for value in values
                if value not in self.full.get(key, ())
            ]
            if found and left_out:
                texts.append(f"Analyzed without {listed(left_out)}, so that every combination is measured.")
        if self.without:
            texts.append(f"Analyzed {self.without}.")
        if not found:
            reason = "one level of a setting is left" if len(self.factors) < 2 else "no row has two seeds"
            texts.append(f"Effects are not tested: {reason}.")
        return texts

    @cached_property
    def p_adjusted(self) -> list[float | None]:
        """p of the F tests, corrected by Holm for their number."""
        terms = self.analysis.terms if self.analysis else ()
        return statistics.of_tested(statistics.holm, [term.p for term in terms])

    @property
    def sentence(self) -> str:
        """`Effects shown: layers (p corrected 0.001). Not shown: layers x words (0.197).`; empty without a test."""
        by_verdict: dict[bool, list[str]] = {True: [], False: []}
        for term, p in zip(self.analysis.terms if self.analysis else (), self.p_adjusted, strict=True):
            if p is not None:
                by_verdict[p <= ALPHA].append(f"{self.name(term)} ({cells.probability(p)})")
        parts = [("Effects shown", by_verdict[True]), ("Not shown", by_verdict[False])]
        text = " ".join(f"{heading}: {listed(names)}." for heading, names in parts if names)
        single = sum(len(own) == 1 for own in self.used.values())
        weak = (
            f" Single runs: {single} of {len(self.used)} rows, whose error is estimated from the others."
            if single
            else ""
        )
        return f"{text} In parentheses: p corrected.{weak}" if text else ""

    def name(self, term: Term) -> str:
        return " x ".join(display_name(self.factors[factor]) for factor in term.factors)

    @property
    def tests(self) -> Grid:
        """The F test of each term."""
        assert self.analysis is not None
        lines = [
            [
                self.name(term),
                "" if term.f is None else f"{term.f:.2f}",
                f"{term.freedom}, {self.analysis.freedom}",
                cells.probability(term.p),
                cells.probability(p),
            ]
            for term, p in zip(self.analysis.terms, self.p_adjusted, strict=True)
        ]
        return Grid(
            ("effect", "F", "degrees of freedom", "p", "p corrected"), lines, "F tests of the effects"
        )

    def contrasts(self) -> list[tuple[str, statistics.Difference]]:
        """Main effects and interactions of two settings, each with the levels that it compares."""
        found = []
        for term in self.analysis.terms if self.analysis else ():
            keys = [self.factors[factor] for factor in term.factors]
            for places, difference in term.contrasts.items() if len(keys) < 3 else ():
                parts = [
                    f"{key}={self.full[key][place]} - {self.full[key][0]}"
                    for key, place in zip(keys, places, strict=True)
                ]
                found.append(
                    (" x ".join(f"({it})" for it in parts) if len(parts) > 1 else parts[0], difference)
                )
        return found

    @property
    def differences(self) -> Grid:
        lines = [
            [name, cells.points(it.mean, "+"), cells.interval(it), cells.probability(it.p)]
            for name, it in self.contrasts()
        ]
        return Grid(
            ("contrast", "difference", "95 %", "p"), lines, "Main effects and interactions of two settings"
        )

    # F1 by each setting at each level of the others

    @cached_property
    def axis(self) -> str:
        """The setting along which scores are shown: that with the most levels, a number if there is one."""

        def rank(key: str) -> tuple[bool, int]:
            return all(map(is_number, self.levels[key])), len(self.levels[key])

        return max(self.levels, key=rank)

    @property
    def means(self) -> Grid:
        """A line per level of the axis and a column per combination of the others."""
        others = {key: values for key, values in self.levels.items() if key != self.axis}
        columns = [*product(*others.values())]
        lines = []
        for level in self.levels[self.axis]:
            by_key = [dict(zip(others, column, strict=True)) | {self.axis: level} for column in columns]
            results = [self.shown(tuple(own[key] for key in self.levels)) for own in by_key]
            lines.append(
                [f"{self.axis}={level}", *(cells.score(it.measured) if it else "" for it in results)]
            )
        headings = ["", *(" ".join(cell_settings(others, column)) for column in columns)]
        return Grid(headings, lines, self.title)

    @property
    def plot(self) -> Chart | None:
        """One line per combination of the other settings along the axis, an interaction plot; None without scores."""
        place = [*self.levels].index(self.axis)
        others = [key for key in self.levels if key != self.axis]
        is_numeric = all(map(is_number, self.levels[self.axis]))
        points = []
        for cell in product(*self.levels.values()):
            if (result := self.shown(cell)) is not None and result.measured:
                own = dict(zip(self.levels, cell, strict=True))
                series = " ".join(cell_settings(others, [own[key] for key in others]))
                x = float(cell[place]) if is_numeric else cell[place]
                points.append(charts.Point(x, result.measured.mean, series, *ends(result, OURS)))
        if not points:
            return None
        unit, log = unit_of(self.page.table, self.rows.values()), False
        if is_numeric:
            points.sort(key=lambda point: (point.series, point.x))
            log = charts.is_wide([float(point.x) for point in points])
        edges = [it for point in points for it in (point.low, point.y, point.high) if it is not None]
        panel = charts.lines(
            points,
            display_name(self.axis),
            unit,
            y_domain=charts.limits(edges),
            ticks=True,
            log_x=log,
            dodge=True,
        )
        description = f"{DESCRIPTION} Analyzed {self.without}." if self.without else DESCRIPTION
        lines = {point.series for point in points}
        only = f": {lines.pop()}" if len(lines) == 1 else ""  # which has no legend
        return Chart(f"{unit} by {self.title}{only}", description, (panel,), grid=self.means)

    # Pairs of rows

    def within(self, pair: Pair) -> bool:
        """Whether two rows of the grid differ in one setting alone."""
        of_label = {result.row.label: cell for cell, result in self.rows.items()}
        if any(label not in of_label for label in pair.labels):
            return False
        a, b = (of_label[label] for label in pair.labels)
        return sum(one != other for one, other in zip(a, b, strict=True)) == 1

    def record(self) -> dict[str, Any]:
        """Its values by name, as in `ner-experiments table --json`. Differences are in points."""
        found = self.analysis
        return {
            "levels": {key: [*values] for key, values in self.levels.items()},
            "corpus": self.corpus,
            "cells": [
                {
                    "settings": dict(zip(self.levels, cell, strict=True)),
                    "seeds": [*scores],
                    "mean": statistics.summarize(scores).mean,
                }
                for cell, scores in self.used.items()
            ],
            "missing": [dict(zip(self.levels, cell, strict=True)) for cell in self.missing],
            "seeds_are_blocks": found.is_blocked if found else None,
            "error": {"freedom": found.freedom, "sd": found.sd} if found else None,
            "tests": [
                {
                    "effect": [self.factors[it] for it in term.factors],
                    "f": term.f,
                    "freedom": term.freedom,
                    "p": term.p,
                    "p_adjusted": p,
                }
                for term, p in zip(found.terms if found else (), self.p_adjusted, strict=True)
            ],
            "differences": [
                {"contrast": name, "difference": it.mean, "low": it.low, "high": it.high, "p": it.p}
                for name, it in self.contrasts()
            ],
        }


def cell_settings(keys: Sequence[str] | Mapping[str, Any], values: Sequence[str]) -> list[str]:
    return [f"{key}={value}" for key, value in zip(keys, values, strict=True)]


def effects_of(page: Page) -> list[Effects]:
    """The grids of a sweep, one per corpus; none for a sweep with looks, whose seeds depend on scores."""
    if not page.table.is_sweep or page.table.looks:
        return []
    by_corpus: dict[str, list[tuple[dict[str, str], Result]]] = {}
    for result in page.results:
        if own := settings(page.table, result):
            by_corpus.setdefault(own.get(CORPUS, ""), []).append((own, result))
    found = []
    for corpus, rows in by_corpus.items():
        keys = compared([own for own, _ in rows])
        rows = [(own, result) for own, result in rows if all(key in own for key in keys)]
        levels = {key: [*dict.fromkeys(own[key] for own, _ in rows)] for key in keys}
        grid = Effects(
            page,
            corpus if len(by_corpus) > 1 else "",
            {
                key: sorted(values, key=float) if all(map(is_number, values)) else values
                for key, values in levels.items()
            },
            {tuple(own[key] for key in keys): result for own, result in rows},
        )
        if len(keys) < 2 or len(grid.rows) < len(rows):  # rows may differ in a file, which is no setting here
            continue
        combinations = prod(map(len, levels.values()))
        if 2 * len(rows) > combinations and len(groups([it for _, it in rows])) == 1:
            found.append(grid)
    return found


def pairs_within(grids: Sequence[Effects], pairs: Sequence[Pair]) -> list[Pair]:
    """The pairs whose rows differ in one setting alone; none unless all grids are full."""
    if not grids or any(grid.missing for grid in grids):
        return []
    return [pair for pair in pairs if any(grid.within(pair) for grid in grids)]


def matrix(pairs: Sequence[Pair]) -> Grid:
    """The verdicts of all pairs: one sign for each, of the line's row against the row of the column's number."""
    labels = list(dict.fromkeys(label for pair in pairs for label in pair.labels))
    signs = {
        both: SIGNS[it.verdict]
        for pair in pairs
        for both, it in ((pair.labels, pair), (pair.swapped().labels, pair.swapped()))
    }
    lines = [
        [f"{number} {label}", *(signs.get((label, other), "") for other in labels)]
        for number, label in enumerate(labels, start=1)
    ]
    return Grid(["", *map(str, range(1, len(labels) + 1))], lines, "Verdicts on all pairs of rows")
