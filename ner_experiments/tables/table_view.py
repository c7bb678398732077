"""A table beside what was measured, with all that its outputs show."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from ner_experiments.analysis import statistics
from ner_experiments.tables import dominant_sentence, short_runs
from ner_experiments.tables.differences import (
    ALL_PAIRS,
    MATRIX,
    WITH_THE_BEST,
    WITHIN_A_LEVEL,
    Differences,
)
from ner_experiments.tables.effects import Effects, effects_of, matrix, pairs_within
from ner_experiments.tables.looks import Decision, decide
from ner_experiments.tables.origin import origin, remarks_on_code
from ner_experiments.tables.pairs import Pair, compare_rows, pairs_of, text_on_references, verdict_text
from ner_experiments.tables.reproducibility import reproducibility
from ner_experiments.tables.scores import Page, Result, groups, named_seeds
from ner_experiments.tables.spec import named_rows
from ner_experiments.tables.sweep_registration import Standing, standing
from ner_experiments.utils.text import listed
from ner_experiments.view import cells, pages
from ner_experiments.view.table import Grid
from ner_experiments.xor.results import HEADINGS, PICTURE, table_lines

MEANS = "In percent: mean ± standard deviation (runs), and the 95 % t-interval of the mean over seeds."
OURS = "In percent. Ours: mean ± standard deviation (runs), and the 95 % t-interval of the mean over seeds."
LEGEND = (
    f'{OURS} "Expected": whether the published number lies in the 95 % prediction interval for as many runs '
    "of ours."
)
COEFFICIENT = (
    "How close published and measured scores are, by QRA++ (Belz 2025), as mean coefficient of variation (CV*) and "
    "Spearman's rank correlation:"
)
OF_A_SWEEP = f"{MEANS} test: the score at the epoch selected on dev."
TRIALS = (
    "Phrases learned, of 4. Ours: mean ± standard deviation (trainings), and the 95 % t-interval of the mean."
)
ANALYZED = f"{LEGEND} Differences are computed seed by seed, for the seeds that both rows have."
BOTH_ORIGINS = "Runs marked archived are kept in results/; the others are run folders."
PAIRS_OF_A_MATRIX = 6
"""Number of pairs from which their verdicts are shown as a matrix, too: those of four rows."""
GAIN = "oracle-epoch gain"
ORACLE_EPOCH = (
    "Oracle-epoch gain: the best epoch on test minus the one chosen on dev, in points "
    "(audit.test_every_epoch=true)."
)
OPTIONAL = (GAIN,)
"""Headings of columns that are left out where no row fills them."""
PLOT_WIDTH, MIN_AXIS = 76, 24
"""Longest line of a plot in text, which is indented by 4, and smallest width of its axis, in characters."""
PUBLISHED_HEADINGS = ("published", "ours - published", "expected")
OF_A_ROW = ("label", "published", "published_sd", "published_runs", "cited")
SUMMARY = ("mean", "sd", "n", "low", "high", "difference", "expected")
"""The columns of a CSV file: for what was published, and for what was measured."""


@dataclass(frozen=True)
class TableView:
    """A table of which every output, from the terminal to the report, is a template.

    What takes tests of all rows is computed when an output first asks for it.
    """

    page: Page
    of_a_row: ClassVar[Sequence[str]] = OF_A_ROW

    @cached_property
    def registration(self) -> Standing:
        return standing(self.page)

    @cached_property
    def standing(self) -> str:
        """Whether the runs are registered or exploratory; empty for published tables without a registration."""
        is_sweep = self.page.table.is_sweep and self.page.runs
        return str(self.registration) if self.registration.registration or is_sweep else ""

    # The answer of a sweep

    @cached_property
    def decision(self) -> Decision[Pair] | None:
        """The state of the looks of a sweep that has some."""
        table = self.page.table
        return decide(self.page, table.looks, table.seeds[0]) if table.looks else None

    @cached_property
    def pairs(self) -> list[Pair]:
        """All pairs of rows on one test set; in a sweep with looks, each as tested at the look that decided it."""
        return [*self.decision.pairs.values()] if self.decision else pairs_of(self.page)

    @cached_property
    def tested(self) -> list[Pair]:
        """The pairs that the table compares: all of a sweep; of a published table, each row and its reference."""
        return self.pairs if self.page.table.is_sweep else compare_rows(self.page)

    @property
    def added_seeds(self) -> str:
        """A sentence on seeds that count although they were not planned, if rows are compared.

        Those of archived runs were chosen when these were archived.
        """
        table, it = self.page.table, self.registration.registration
        planned = {*table.seeds, *(it.seeds if it else ())}
        own = {seed for row in self.page.results for seed, run in row.runs.items() if not run.archived}
        if not (table.seeds and (more := sorted(own - planned)) and self.tested) or table.looks:
            return ""
        place = "of the recorded sweep" if table.is_sweep else "in the table's seeds"
        why = "the p values assume that seeds were not added because of scores"
        return f"{named_seeds(more).capitalize()} counted too, though not {place}: {why}."

    @cached_property
    def verdict(self) -> str:
        """Verdicts on the tested pairs, and sentences on seeds that were not planned and on several test sets."""
        is_sweep = self.page.table.is_sweep
        parts = [verdict_text(self.pairs) if is_sweep else text_on_references(self.tested), self.added_seeds]
        if (number := len(groups(self.page.results))) > 1:
            parts.append(
                f"The rows were scored on {number} test sets; rows on different ones are not compared."
            )
        return " ".join(filter(None, parts))

    @property
    def not_counted(self) -> str:
        """The rows that the answer of a sweep leaves out although they have runs; several reasons are in the notes."""
        left_out = self.page.not_counted
        if len(left_out) > 1:
            left_out = [f"{named_rows([it.row.label for it in self.page.results if it.missing])} (see Notes)"]
        return f"Not counted: {left_out[0]}." if left_out else ""

    @property
    def looks(self) -> list[str]:
        """The decision of each look."""
        return self.decision.history if self.decision else []

    @property
    def strip_plots(self) -> list[str]:
        """The rows on each test set as a plot in text; none for a single score, which was printed with its run."""
        drawn = [it for it in groups(self.page.results) if sum(len(row.scores) for row in it) > 1]
        return ["\n".join(f"    {line}" for line in strip_plot(group)) for group in drawn]

    @cached_property
    def effects(self) -> list[Effects]:
        """Effects of the settings of a sweep that is a grid, one for each corpus."""
        return effects_of(self.page)

    @cached_property
    def matrix(self) -> Grid | None:
        """The verdicts of all pairs of a sweep's rows, if some are tested, and enough to be lost in a list."""
        tested = any(pair.test.p_adjusted is not None for pair in self.pairs)
        is_large = self.page.table.is_sweep and len(self.pairs) >= PAIRS_OF_A_MATRIX
        return matrix(self.pairs) if tested and is_large else None

    @property
    def matrix_legend(self) -> str:
        return MATRIX.format(number=len(self.pairs))

    @cached_property
    def differences(self) -> Differences | None:
        """All pairs of rows of a sweep, or in a full grid those that differ in one setting alone.

        Of a published table, each row and the one with the best published number.
        """
        if self.page.table.is_sweep:
            if within := pairs_within(self.effects, self.pairs):
                return Differences(WITHIN_A_LEVEL.format(number=len(self.pairs)), within)
            return Differences(ALL_PAIRS, self.pairs) if self.pairs else None
        return Differences(WITH_THE_BEST, self.tested) if self.tested else None

    # The table

    @cached_property
    def results(self) -> Grid:
        """The published and measured scores of all rows, without the columns that nothing fills."""
        left_out = [] if self.page.table.is_published else [*PUBLISHED_HEADINGS]
        lines = [self.cells_of(number, result) for number, result in numbered(self.page)]
        grid = Grid.by_heading(lines).without(left_out).without_empty(OPTIONAL)
        # of a sweep nothing is published, so all scores are ours
        return grid.renamed({"ours": "test"}) if self.page.table.is_sweep else grid

    def cells_of(self, number: int, result: Result) -> dict[str, str]:
        """The cells of a row by the headings of their columns. number: that of its note."""
        row, ours, against, cost = result.row, result.measured, result.against, result.cost()
        cited, note = ", cited" if row.cited else "", f" [{number}]" if row.note else ""
        return {
            "": f"{row.label}{cited}{note}",
            "published": cells.published(row.published, row.sd, row.runs) + cells.figures(row.also),
            "ours": self.measured(result),
            "95 %": cells.interval(ours),
            "ours - published": cells.points(against.difference, "+") if against else "",
            "expected": {None: "", True: "yes", False: "no"}[against.inside if against else None],
            "parameters": f"{cost['parameters']:,}" if cost else "",
            "s per epoch": f"{cost['seconds_per_epoch']:.1f}" if cost else "",
            GAIN: cells.points(result.oracle_epoch_gain(), "+"),
        }

    def measured(self, result: Result) -> str:
        """The row's mean as text."""
        if result.measured is not None:
            archived = sum(run.archived for run in result.runs.values()) if self.has_both_origins else 0
            number = "" if archived == len(result.runs) else f"{archived} "
            kept = f", {number}archived" if archived else ""
            return cells.score(result.measured) + cells.figures(result.also()) + kept
        return "not counted" if result.missing else "not run" if result.reads else ""

    @cached_property
    def has_both_origins(self) -> bool:
        """Whether some runs are archived in results/ and others are run folders."""
        return len({run.archived for run in self.page.runs}) > 1

    @property
    def of_the_files(self) -> list[str]:
        """Sentences for an article on files of predictions; none where rows are trained."""
        return []

    @property
    def explanation(self) -> str:
        """Explanation of the columns of scores, by the kind of table."""
        table = self.page.table
        if table.command:
            return TRIALS
        if table.is_sweep:
            return OF_A_SWEEP
        if not table.is_published:
            return OURS
        return ANALYZED if table.analysis else LEGEND

    @cached_property
    def closeness(self) -> str:
        """Coefficients of variation and rank correlations of published and measured scores, if there are any."""
        found = reproducibility(self.page)
        return f"{COEFFICIENT} {'; '.join(map(str, found))}." if found else ""

    @property
    def oracle_epoch(self) -> str:
        return ORACLE_EPOCH if GAIN in self.results.headings else ""

    @property
    def legend(self) -> list[str]:
        """Paragraphs below the table of scores."""
        origins = BOTH_ORIGINS if self.has_both_origins else ""
        return [*filter(None, [self.explanation, self.closeness, origins, self.oracle_epoch])]

    @property
    def remarks(self) -> list[str]:
        """Remarks on the rows' data and seeds, each with the rows that have it."""
        labels: dict[str, list[str]] = {}
        for result in self.page.results:
            labels.setdefault(result.remark, []).append(result.row.label)
        return [f"{'; '.join(rows)}: {remark}." for remark, rows in labels.items() if remark]

    @cached_property
    def notes(self) -> list[str]:
        """Notes on rows, by number, on the table and on the test sets, and why runs were not used."""
        page, table = self.page, self.page.table
        texts = [f"[{number}] {result.row.note}" for number, result in numbered(page) if result.row.note]
        texts += table.notes
        if not table.is_sweep and self.added_seeds:  # a sweep's verdict has it
            texts.append(self.added_seeds)
        if table.analysis:
            texts.append(f"Computed from the runs of {table.analysis}.")
        if table.command:
            texts.append(f"Measured by `{table.command}`.")
        texts += [*remarks_on_code(page), *dominant_sentence.remarks(page)]
        texts += self.remarks
        if page.needs:
            texts.append(f"The rows that were not run need {listed(page.needs)}.")
        return texts + self.warnings

    @cached_property
    def warnings(self) -> list[str]:
        """Rows whose runs were short, failed or do not count."""
        rows = self.page.results
        metrics = {it.row.label: [run.metrics for run in it.runs.values()] for it in rows}
        return [
            *short_runs.hints(metrics),
            *(f"{it.row.label}: {it.failed}" for it in rows if it.failed),
            *(f"Not counted: {rows_and_reason}" for rows_and_reason in self.page.not_counted),
        ]

    # Its outputs

    def markdown(self) -> str:
        """The whole table with differences between rows and notes; of a sweep, with its answer first."""
        return pages.page("table.md.j2", view=self, page=self.page, root="", origin=None)

    def results_page(self, root: str) -> str:
        """The page in results/, with the provenance of its numbers. root: that of the checkout, seen from the page."""
        made = origin(self.page, self.page.runs)
        trials = self.page.trials
        models = Grid(HEADINGS, table_lines(trials.models)) if trials else None
        return pages.page(
            "table.md.j2", view=self, page=self.page, root=root, origin=made, models=models, picture=PICTURE
        )

    def answer(self) -> str:
        """Answer of a sweep in Markdown: its verdict, its rows as plots in text, all pairs of rows, and remarks."""
        return pages.page("answer.md.j2", view=self, page=self.page, root="", remarks=self.remarks)

    def latex(self) -> str:
        """LaTeX for \\usepackage{booktabs}: a tabular, a second one if rows are compared, and the notes as text."""
        return pages.page("table.tex.j2", view=self, page=self.page)

    def csv(self) -> str:
        """CSV with one line per row and one column per figure; cells without a figure are empty."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*self.of_a_row, *SUMMARY])
        for line in map(row_record, self.page.results):
            measured = line["measured"] or {}
            writer.writerow([*(line[key] for key in self.of_a_row), *(measured.get(key) for key in SUMMARY)])
        return file.getvalue()

    def json(self) -> str:
        return json.dumps(self.record(), indent=2, ensure_ascii=False) + "\n"

    def record(self) -> dict[str, Any]:
        """The table by name. A sweep has a verdict instead of `comparisons`, whose tests differ from those of pairs."""
        page = self.page
        content = {
            "name": page.table.name,
            "title": page.table.title,
            "source": page.table.source,
            "deviations": list(page.deviations),
            "stand_ins": page.stand_ins,
            "rows": [*map(row_record, page.results)],
        }
        if self.page.table.is_sweep:
            content["verdict"] = self.verdict
            content["effects"] = [it.record() for it in self.effects]
        else:
            compared = self.differences.pairs if self.differences else []
            content["comparisons"] = [pair.comparison() for pair in compared]
        return content | {
            "pairs": [pair.record() for pair in self.pairs],
            "registration": self.registration.record(),
            "reproducibility": [it.record() for it in reproducibility(page)],
            "notes": self.notes,
        }


def row_record(result: Result) -> dict[str, Any]:
    """The row of a table by name: what was published, and what was measured."""
    row = result.row
    return {
        "label": row.label,
        "published": row.published,
        "published_sd": row.sd,
        "published_runs": row.runs,
        "also": dict(row.also),
        "cited": row.cited,
        "reads": list(result.reads),
        "measured": measured_record(result),
    }


def measured_record(result: Result) -> dict[str, Any] | None:
    if not result.scores:
        return None
    ours, against = statistics.summarize(result.scores), result.against
    return {
        "mean": ours.mean,
        "sd": ours.sd,
        "n": ours.n,
        "low": ours.low,
        "high": ours.high,
        "difference": against.difference if against else None,
        "expected": against.inside if against else None,
        "also": result.also(),
        "cost": result.cost(),
        "oracle_epoch_gain": result.oracle_epoch_gain(),
        "scores": dict(result.scores),
        "folders": {seed: str(run.folder) for seed, run in result.runs.items()},
    }


def strip_plot(rows: Sequence[Result]) -> list[str]:
    """The test scores of rows on one axis, in text: each seed, the mean, and its 95 % t-interval.

    The axis spans the points and not the intervals, since those of two seeds would dwarf them; an interval that goes
    beyond it ends in `<` or `>`. A seed is drawn over the end of an interval, and one at the mean as `O`. Lines have
    at most `PLOT_WIDTH` characters: long labels are wrapped, and the legend moves to the left.
    """
    points = [score for row in rows for score in row.scores.values()]
    low, high = min(points), max(points)
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    wrapped = [
        textwrap.wrap(row.row.label, PLOT_WIDTH - MIN_AXIS - 9) for row in rows
    ]  # 9: edges and the mean
    room = max(len(part) for label in wrapped for part in label)
    width = min(48, PLOT_WIDTH - room - 9)

    def column(value: float) -> int:
        return round((width - 1) * (value - low) / (high - low))

    lines, cut = [], False
    for row, (label, *more) in zip(rows, wrapped, strict=True):
        ours, cells = row.measured, [" "] * (width + 2)
        assert ours is not None
        if ours.low is not None and ours.high is not None:
            left, right = max(-1, column(ours.low)), min(width, column(ours.high))
            cells[left + 1 : right + 2] = "-" * (right - left + 1)
            cells[left + 1], cells[right + 1] = "[<"[left < 0], "]>"[right == width]
        cells[column(ours.mean) + 1] = "|"
        for score in row.scores.values():
            cells[column(score) + 1] = "o" if cells[column(score) + 1] not in "|O" else "O"
        lines += [f"{label:<{room}} {''.join(cells)} {ours.mean:.2f}", *more]
        cut |= cells[0] == "<" or cells[-1] == ">"
    axis = f"{low:.2f}".ljust(width - len(f"{high:.2f}")) + f"{high:.2f}"
    legend = ["o: one seed; |: mean; O: both; [-]: 95 % t-interval"]
    legend += ["< or >: the interval goes beyond the axis"] * cut
    indent = min(room + 2, PLOT_WIDTH - max(map(len, legend)))
    return [*lines, f"{'':<{room}}  {axis}", *(f"{'':<{indent}}{line}" for line in legend)]


def numbered(page: Page) -> list[tuple[int, Result]]:
    """Each row with the number of its note; a row without one has the number of the next note."""
    pairs, number = [], 1
    for result in page.results:
        pairs.append((number, result))
        number += bool(result.row.note)
    return pairs
