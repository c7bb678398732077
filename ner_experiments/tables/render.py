"""A published table beside what was measured, as Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from ner_experiments.tables.comparisons import Comparison, compare_rows
from ner_experiments.tables.dominant_sentence import remarks
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Published
from ner_experiments.utils.text import markdown_table

OURS = "In percent. Ours: mean ± standard deviation (runs), and the 95 % t-interval of the mean over seeds."
LEGEND = (
    f'{OURS} "Expected": whether the published number lies in the 95 % prediction interval for as many runs '
    "of ours."
)
TRIALS = (
    "Phrases learned, of 4. Ours: mean ± standard deviation (trainings), and the 95 % t-interval of the mean."
)
ANALYZED = f"{LEGEND} Differences are computed seed by seed, for the seeds that both rows have."
COMPARED = (
    "Each row is compared with the row on its data that has the best published number, or with the first if none "
    "has one. p over seeds: paired t-test or Welch's; over seeds and sentences: approximate randomization (Noreen "
    "1989; Yeh 2000). Last column: seeds per row that detect a difference of this size with 80 % power."
)
ORACLE_EPOCH = (
    "Oracle epoch gain: the best epoch on test minus the one chosen on dev, in points (audit.peek=true)."
)

RESULT_HEADINGS = (
    *("", "published", "ours", "95 %", "ours - published", "expected", "parameters", "s per epoch"),
    "oracle epoch gain",
)
COMPARISON_HEADINGS = (
    *("", "difference", "95 %", "p over seeds", "p over seeds and sentences", "seeds needed"),
)
SUMMARY = ("mean", "sd", "n", "low", "high", "difference", "expected")
"""The columns of a CSV file for what was measured."""
LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "<": r"$<$",
}


@dataclass(frozen=True)
class Grid:
    """Headings and lines of text; all columns but the first are numbers."""

    headings: Sequence[str]
    lines: Sequence[Sequence[str]]


def markdown(page: Page) -> str:
    parts = [f"# {page.table.title}", f"{page.table.source}."]
    if page.deviations:
        parts.append(f"**Not the paper's settings:** `{' '.join(page.deviations)}`")
    table = results(page)
    parts += [as_markdown(table), legend(page)]
    if table.headings == RESULT_HEADINGS:
        parts.append(ORACLE_EPOCH)
    if compared := compare_rows(page):
        parts += [as_markdown(comparisons(compared)), COMPARED]
    if lines := notes(page):
        parts.append("\n".join(f"- {line}" for line in lines))
    return "\n\n".join(parts) + "\n"


def latex(page: Page) -> str:
    """For \\usepackage{booktabs}: a tabular, a second one if rows are compared, and the notes as text."""
    parts = [escaped(f"{page.table.title}. {page.table.source}.")]
    if page.deviations:
        parts.append(escaped(f"Not the paper's settings: {' '.join(page.deviations)}"))
    parts.append(as_latex(results(page)))
    if compared := compare_rows(page):
        parts.append(as_latex(comparisons(compared)))
    parts += map(escaped, notes(page))
    return "\n\n".join(parts) + "\n"


def as_csv(page: Page) -> str:
    """One line per row and one column per figure; empty cells where there is none."""
    lines = records(page)
    file = io.StringIO()
    published = [key for key in lines[0] if key not in ("measured", "also", "reads")]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*published, *SUMMARY])
    for line in lines:
        measured = line["measured"] or {}
        writer.writerow([line[key] for key in published] + [measured.get(key) for key in SUMMARY])
    return file.getvalue()


def as_json(page: Page) -> str:
    content = {
        "name": page.table.name,
        "title": page.table.title,
        "source": page.table.source,
        "deviations": list(page.deviations),
        "rows": records(page),
        "comparisons": [comparison_record(comparison) for comparison in compare_rows(page)],
        "notes": notes(page),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def records(page: Page) -> list[dict[str, Any]]:
    return [
        {
            "label": result.row.label,
            "published": result.row.published,
            "published_sd": result.row.sd,
            "published_runs": result.row.runs,
            "also": dict(result.row.also),
            "cited": result.row.cited,
            "reads": list(result.reads),
            "measured": measured_record(result),
        }
        for result in page.results
    ]


def measured_record(result: Result) -> dict[str, Any] | None:
    ours, against = result.measured, result.against
    if ours is None:
        return None
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


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    return {
        "row": comparison.row.label,
        "reference": comparison.reference.label,
        "difference": comparison.over_seeds.mean,
        "low": comparison.over_seeds.low,
        "high": comparison.over_seeds.high,
        "test_over_seeds": comparison.over_seeds.test,
        "p_over_seeds": comparison.over_seeds.p,
        "p_over_seeds_and_sentences": comparison.over_sentences.p,
        "seeds_needed": comparison.seeds,
    }


def legend(page: Page) -> str:
    if page.table.command:
        return TRIALS
    return ANALYZED if page.table.analysis else LEGEND


def results(page: Page) -> Grid:
    """The published and measured scores of all rows; without the last column if no run has an oracle epoch."""
    lines, gains = [], [result.oracle_epoch_gain() for result in page.results]
    headings = RESULT_HEADINGS[:-1] if set(gains) == {None} else RESULT_HEADINGS
    for (number, result), gain in zip(numbered(page), gains, strict=True):
        row, ours, against, cost = result.row, result.measured, result.against, result.cost()
        lines.append(
            [
                f"{row.label}{', cited' if row.cited else ''}{f' [{number}]' if row.note else ''}",
                printed(row.published) + deviation(row.sd, row.runs) + brackets(row.also),
                measured(page, result),
                interval(ours.low, ours.high) if ours else "",
                f"{against.difference:+.2f}" if against else "",
                {None: "", True: "yes", False: "no"}[against.inside if against else None],
                f"{cost['parameters']:,}" if cost else "",
                f"{cost['seconds_per_epoch']:.1f}" if cost else "",
                "" if gain is None else f"{gain:+.2f}",
            ][: len(headings)]
        )
    return Grid(headings, lines)


def measured(page: Page, result: Result) -> str:
    """The row's mean, or that it was not run, with what a run needs that no other row has read."""
    ours = result.measured
    if ours is not None:
        return f"{ours.mean:.2f}{deviation(ours.sd, ours.n)}{brackets(result.also())}"
    if not result.reads:
        return ""
    needs = page.needs(result)
    return f"not run: needs {', '.join(needs)}" if needs else "not run"


def comparisons(compared: Sequence[Comparison]) -> Grid:
    lines = [
        [
            f"{comparison.row.label} - {comparison.reference.label}",
            f"{comparison.over_seeds.mean:+.2f}",
            interval(comparison.over_seeds.low, comparison.over_seeds.high),
            "" if comparison.over_seeds.p is None else probability(comparison.over_seeds.p),
            probability(comparison.over_sentences.p),
            "" if comparison.seeds is None else f"{comparison.seeds:,}",
        ]
        for comparison in compared
    ]
    return Grid(COMPARISON_HEADINGS, lines)


def notes(page: Page) -> list[str]:
    """Notes on rows, by number, on the table and on the test sets, and why runs were not used."""
    table = page.table
    texts = [f"[{number}] {result.row.note}" for number, result in numbered(page) if result.row.note]
    texts += table.notes
    if table.analysis:
        texts.append(f"Computed from the runs of {table.analysis}.")
    if table.command:
        texts.append(f"Measured by `{table.command}`.")
    texts += remarks(page)
    reasons = dict.fromkeys(result.missing for result in page.results if result.missing)
    return texts + [f"Not measured: {reason}" for reason in reasons]


def numbered(page: Page) -> list[tuple[int, Result]]:
    """Each row with the number of its note; a row without one has the number of the next note."""
    pairs, number = [], 1
    for result in page.results:
        pairs.append((number, result))
        number += bool(result.row.note)
    return pairs


def printed(published: Published) -> str:
    if isinstance(published, list):
        return " / ".join(published)
    return f"{published:.2f}" if isinstance(published, float) else str("" if published is None else published)


def deviation(sd: float | None, runs: int | None) -> str:
    return ("" if sd is None else f" ± {sd:.2f}") + ("" if runs is None else f" ({runs})")


def brackets(figures: Mapping[str, float]) -> str:
    return f" [{', '.join(f'{name} {value:.2f}' for name, value in figures.items())}]" if figures else ""


def interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.2f} to {high:.2f}"


def seed_counts(a: Sized, b: Sized) -> str:
    """The numbers of seeds of two rows, shown where there are too few for the interval of their difference."""
    return "one seed" if len(a) == len(b) else f"seeds: {len(a)} against {len(b)}"


def probability(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def as_markdown(grid: Grid) -> str:
    rules = [":--", *("--:" for _ in grid.headings[1:])]
    lines = ([cell.replace("|", "\\|") for cell in line] for line in grid.lines)
    return markdown_table(grid.headings, rules, *lines)


def as_latex(grid: Grid) -> str:
    lines = [" & ".join(map(escaped, line)) + r" \\" for line in (grid.headings, *grid.lines)]
    body = "\n".join(lines[1:])
    columns = "l" + "r" * (len(grid.headings) - 1)
    begin, end = f"\\begin{{tabular}}{{{columns}}}\n\\toprule", "\\bottomrule\n\\end{tabular}"
    return f"{begin}\n{lines[0]}\n\\midrule\n{body}\n{end}"


def escaped(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)
