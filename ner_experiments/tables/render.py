"""A published table beside what was measured, as Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

from ner_experiments.analysis.randomization import Randomization
from ner_experiments.tables import code_remarks, dominant_sentence, sweep_registration
from ner_experiments.tables.looks import decide
from ner_experiments.tables.pairs import Pair, pairs_of, seeds_text, verdict_text
from ner_experiments.tables.reproducibility import reproducibility
from ner_experiments.tables.scores import Page, Result, groups
from ner_experiments.tables.significance import ALPHA, Comparison, Tested, compare_rows, difference_record
from ner_experiments.tables.spec import SMALLEST_EFFECT, Published
from ner_experiments.utils.text import markdown_table

EFFECT = f"the table's smallest effect ({SMALLEST_EFFECT:g} points unless its file sets another)"
OURS = "In percent. Ours: mean ± standard deviation (runs), and the 95 % t-interval of the mean over seeds."
LEGEND = (
    f'{OURS} "Expected": whether the published number lies in the 95 % prediction interval for as many runs '
    "of ours."
)
COEFFICIENT = (
    "How close published and measured scores are, by QRA++ (Belz 2025), as mean coefficient of variation (CV*) and "
    "Spearman's rank correlation:"
)
OF_A_SWEEP = (
    "In percent: mean ± standard deviation (runs), and the 95 % t-interval of the mean over seeds. "
    "test: the score at the epoch selected on dev."
)
TRIALS = (
    "Phrases learned, of 4. Ours: mean ± standard deviation (trainings), and the 95 % t-interval of the mean."
)
ANALYZED = f"{LEGEND} Differences are computed seed by seed, for the seeds that both rows have."
_TESTED = "in points; over seeds, where both rows have several, by Welch's t-test."
COMPARED = (
    "Each row minus the row on its data that has the best published number, or minus the first if none has one, "
    f"{_TESTED}"
)
PAIRS = f"Each row minus each other row, {_TESTED}"
VERDICT_LEVEL = "p corrected is at most 5 %;"
EXPLAINED = {
    "95 %": "95 %: t-interval over seeds, not corrected for the number of differences.",
    "p over seeds and sentences": "p over seeds and sentences: approximate randomization (Noreen 1989; Yeh 2000).",
    "p over sentences alone": (
        "p over sentences alone: given where a row has a single run. It tests these runs on other sentences and says "
        "nothing about other seeds, so no verdict rests on it."
    ),
    "p corrected": "p corrected: p over seeds, corrected for the number of differences (Holm 1979).",
    "q": (
        "q: corrected less strictly (Benjamini & Hochberg 1995). Of all differences with q of at most 5 %, one in "
        "twenty is a false claim on average."
    ),
    "95 %, spread assumed": (
        "95 %, spread assumed: an interval over seeds for a pair with a single run, on the assumption that its scores "
        "vary from seed to seed as those of the table's other rows on the same data. No verdict rests on it."
    ),
    "seeds needed": (
        "Seeds needed: per row, to detect a difference of this size with 80 % power; > 1,000 stands for any more."
    ),
    "detectable": (
        "Detectable: for an open verdict, the smallest true difference that a test with these seeds would detect with "
        "80 % power, at the strictest level of the correction."
    ),
    "verdict": (
        f"Verdict: ahead or behind if {VERDICT_LEVEL} equal if two one-sided tests, corrected likewise, "
        f"show that the difference is below {EFFECT}; otherwise open."
    ),
}
"""Columns of differences; LaTeX and HTML explain those that their table has."""
INLINE = ("p over sentences alone", "95 %, spread assumed", "verdict")
"""Columns that the foot of a table in Markdown explains, too."""
COLUMNS = "docs/statistics.md#the-columns-of-a-difference"
"""Where the others are explained, from the root of the checkout."""
LOOKS = "Each look has a level below 5 %, so that false verdicts over all looks and pairs together stay below 5 %."
ORACLE_EPOCH = (
    "Oracle-epoch gain: the best epoch on test minus the one chosen on dev, in points "
    "(audit.test_every_epoch=true)."
)

RESULT_HEADINGS = (
    *("", "published", "ours", "95 %", "ours - published", "expected", "parameters", "s per epoch"),
    "oracle-epoch gain",
)
COMPARISON_HEADINGS = (
    *("", "difference", "95 %", "p over seeds", "p over seeds and sentences", "p over sentences alone"),
    *("p corrected", "95 %, spread assumed", "seeds needed", "detectable", "verdict"),
)
PUBLISHED_HEADINGS = ("published", "ours - published", "expected")
PAIR_HEADINGS = (
    *("", "difference", "95 %", "p over seeds", "p over seeds and sentences", "p over sentences alone"),
    *("p corrected", "q", "seeds needed", "detectable", "verdict"),
)
OPTIONAL_HEADINGS = {*COMPARISON_HEADINGS, *PAIR_HEADINGS} - {"", "difference", "verdict"}
"""Columns that are left out where they are empty in every line."""
ORIGIN = "Runs marked archived are kept in results/; the others are run folders."
SUMMARY = ("mean", "sd", "n", "low", "high", "difference", "expected")
"""The columns of a CSV file for what was measured."""
LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "<": r"$<$",
    ">": r"$>$",
}


@dataclass(frozen=True)
class Grid:
    """Headings and lines of text; all columns but the first are numbers."""

    headings: Sequence[str]
    lines: Sequence[Sequence[str]]


def markdown(page: Page) -> str:
    """The whole table with differences between rows and notes; for a sweep of the user's own, with its answer first."""
    parts = [f"# {page.table.title}", f"{page.table.source}."]
    if page.deviations:
        parts.append(f"**{page.deviations_heading}:** `{' '.join(page.deviations)}`")
    if page.stand_ins:
        parts.append(f"**Not what the paper had:** {'; '.join(page.stand_ins)}.")
    table = results(page)
    if page.table.is_sweep and page.runs and (own := answer(page)):
        parts.append(own)
    elif text := sweep_registration.statement(page):
        parts.append(text)
    parts += [as_markdown(table), legend(page)]
    if close := closeness(page):
        parts.append(close)
    if has_both_origins(page):
        parts.append(ORIGIN)
    if RESULT_HEADINGS[-1] in table.headings:
        parts.append(ORACLE_EPOCH)
    if not page.table.is_sweep and (compared := compare_rows(page)):
        grid = comparisons(compared)
        parts += [as_markdown(grid), legend_of(grid, COMPARED)]
    if lines := notes(page):
        parts += ["Notes:", "\n".join(f"- {line}" for line in lines)]
    return "\n\n".join(parts) + "\n"


def answer(page: Page) -> str:
    """Answer of a sweep: its verdict, its rows as a strip plot in text, and all pairs of rows.

    Empty for a single score, which was printed with its run.
    """
    tested = pairs(page)
    parts = [verdict(page, tested), sweep_registration.statement(page)]
    drawn = [group for group in groups(page.results) if sum(len(row.scores) for row in group) > 1]
    parts += ["\n".join(f"    {line}" for line in strip_plot(group)) for group in drawn]
    if tested:
        grid = pair_grid(tested)
        parts += [as_markdown(grid), legend_of(grid, PAIRS, tested)]
    if page.table.looks:
        history = decide(page, page.table.looks, page.table.seeds[0]).history
        parts += [LOOKS, "\n".join(f"- {line}" for line in history)]
    return "\n\n".join(filter(None, parts))


def verdict(page: Page, tested: Sequence[Pair]) -> str:
    """Verdicts on the pairs of a sweep's rows, and a sentence if not all rows are on one test set."""
    parts = [verdict_text(tested)] if tested else []
    if (number := len(groups(page.results))) > 1:
        parts.append(f"The rows were scored on {number} test sets; rows on different ones are not compared.")
    return " ".join(parts)


def pairs(page: Page) -> list[Pair]:
    """All pairs of rows on one test set; in a sweep with looks, each as tested at the look that decided it."""
    if page.table.looks:
        return [*decide(page, page.table.looks, page.table.seeds[0]).pairs.values()]
    return pairs_of(page)


def latex(page: Page) -> str:
    """LaTeX for \\usepackage{booktabs}: a tabular, a second one if rows are compared, and the notes as text.

    A sweep of the user's own has its verdict and all pairs of rows in place of the comparisons with one row.
    """
    parts = [escaped(f"{page.table.title}. {page.table.source}.")]
    if page.deviations:
        parts.append(escaped(f"{page.deviations_heading}: {' '.join(page.deviations)}"))
    if page.stand_ins:
        parts.append(escaped(f"Not what the paper had: {'; '.join(page.stand_ins)}."))
    if text := sweep_registration.statement(page):
        parts.append(escaped(text))
    parts.append(as_latex(results(page)))
    if close := closeness(page):
        parts.append(escaped(close))
    if page.table.is_sweep:
        if tested := pairs(page):
            grid = pair_grid(tested)
            parts += [
                escaped(verdict(page, tested)),
                as_latex(grid),
                escaped(" ".join([PAIRS, *explained(grid, tested)])),
            ]
    elif compared := compare_rows(page):
        grid = comparisons(compared)
        parts += [as_latex(grid), escaped(" ".join([COMPARED, *explained(grid)]))]
    parts += map(escaped, notes(page))
    return "\n\n".join(parts) + "\n"


def as_csv(page: Page) -> str:
    """CSV with one line per row and one column per figure; cells without a figure are empty."""
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
    """JSON of a table. A sweep has a verdict instead of `comparisons`, whose tests differ from those of its pairs."""
    tested = pairs(page)
    content = {
        "name": page.table.name,
        "title": page.table.title,
        "source": page.table.source,
        "deviations": list(page.deviations),
        "stand_ins": page.stand_ins,
        "rows": records(page),
        **(
            {"verdict": verdict(page, tested)}
            if page.table.is_sweep
            else {"comparisons": [comparison_record(comparison) for comparison in compare_rows(page)]}
        ),
        "pairs": [pair.record() for pair in tested],
        "registration": sweep_registration.record(page),
        "reproducibility": [it.record() for it in reproducibility(page)],
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
    assumed = comparison.assumed
    return {
        "row": comparison.row.label,
        "reference": comparison.reference.label,
        **difference_record(comparison.test, comparison.over_sentences),
        "assumed": {"low": assumed.low, "high": assumed.high} if assumed else None,
        "seeds_needed": comparison.seeds,
    }


def legend(page: Page) -> str:
    """Explanation of the columns of the table, by the kind of table."""
    if page.table.command:
        return TRIALS
    if page.table.is_sweep:
        return OF_A_SWEEP
    if not page.table.is_published:
        return OURS
    return ANALYZED if page.table.analysis else LEGEND


def closeness(page: Page) -> str:
    """Coefficients of variation and rank correlations of published and measured scores; empty without such rows."""
    found = reproducibility(page)
    return f"{COEFFICIENT} {'; '.join(map(str, found))}." if found else ""


def results(page: Page) -> Grid:
    """The published and measured scores of all rows, without the columns that no row can fill.

    The last column is left out if no run has an oracle epoch, `PUBLISHED_HEADINGS` if nothing is published.
    """
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
    if page.table.is_published:
        return Grid(headings, lines)
    columns = [column for column, heading in enumerate(headings) if heading not in PUBLISHED_HEADINGS]
    names = [headings[column] for column in columns]
    if page.table.is_sweep:
        names[names.index("ours")] = "test"  # nothing is published, so all scores are ours
    return Grid(names, [[line[column] for column in columns] for line in lines])


def measured(page: Page, result: Result) -> str:
    """The row's mean as text; without runs, a note that names the data that it needs."""
    ours = result.measured
    if ours is not None:
        origin = origin_of(result) if has_both_origins(page) else ""
        return f"{ours.mean:.2f}{deviation(ours.sd, ours.n)}{brackets(result.also())}{origin}"
    if not result.reads:
        return ""
    needs = page.needs(result)
    return f"not run (reads {', '.join(needs)})" if needs else "not run"


def has_both_origins(page: Page) -> bool:
    """Whether some runs are archived in results/ and others are run folders."""
    return len({run.archived for run in page.runs}) > 1


def origin_of(result: Result) -> str:
    """`, archived`, `, 2 archived`, or nothing if no run of the row is."""
    number = sum(run.archived for run in result.runs.values())
    if not number:
        return ""
    return ", archived" if number == len(result.runs) else f", {number} archived"


def comparisons(compared: Sequence[Comparison]) -> Grid:
    lines = [
        [
            f"{it.row.label} - {it.reference.label}",
            *difference_cells(it.test, it.over_sentences),
            interval(it.assumed.low, it.assumed.high) if it.assumed else "",
            seeds_text(it.seeds),
            points(it.test.detectable),
            it.verdict,
        ]
        for it in compared
    ]
    return without_empty(Grid(COMPARISON_HEADINGS, lines), OPTIONAL_HEADINGS)


def pair_grid(tested: Sequence[Pair]) -> Grid:
    lines = [
        [
            " - ".join(it.labels),
            *difference_cells(it.test, it.over_sentences),
            probability(it.test.q),
            it.seeds_text,
            points(it.test.detectable),
            it.verdict,
        ]
        for it in tested
    ]
    return without_empty(Grid(PAIR_HEADINGS, lines), OPTIONAL_HEADINGS)


def difference_cells(test: Tested, sentences: Randomization) -> list[str]:
    """The difference, its interval, and p over seeds, over both, over sentences, and corrected."""
    ours = test.over_seeds
    return [
        f"{ours.mean:+.2f}",
        interval(ours.low, ours.high),
        probability(ours.p),
        probability(sentences.p_over_seeds_and_sentences),
        probability(sentences.p_over_sentences),
        probability(test.p_adjusted),
    ]


def without_empty(grid: Grid, optional: Collection[str]) -> Grid:
    """The grid without those optional columns that are empty in every line. optional: headings."""
    keep = [
        column
        for column, heading in enumerate(grid.headings)
        if heading not in optional or any(line[column] for line in grid.lines)
    ]
    return Grid([grid.headings[it] for it in keep], [[line[it] for it in keep] for line in grid.lines])


def explained(grid: Grid, tested: Sequence[Pair] = ()) -> list[str]:
    """A sentence about each column of a grid of differences; tested: its pairs, which may have levels of their own."""
    levels = sorted({pair.test.alpha for pair in tested})
    at_most = "at most 5 %"
    if levels not in ([], [ALPHA]):
        of = "the look" if len(levels) == 1 else "its look"
        at_most = f"at most the level of {of}, {' or '.join(f'{level:.4f}' for level in levels)}"
    texts = [text for heading, text in EXPLAINED.items() if heading in grid.headings]
    return [text.replace(VERDICT_LEVEL, f"p corrected is {at_most};") for text in texts]


def legend_of(grid: Grid, subject: str, tested: Sequence[Pair] = ()) -> str:
    """Markdown: the subject of a grid of differences, what verdicts rest on, and where columns are explained."""
    inline = Grid([heading for heading in grid.headings if heading in INLINE], ())
    lines = "\n".join(f"- {text}" for text in explained(inline, tested))
    return f"{subject} [The columns]({COLUMNS}).\n\n{lines}"


def strip_plot(rows: Sequence[Result], width: int = 48) -> list[str]:
    """The test scores of rows on one axis, in text: each seed, the mean, and its 95 % t-interval.

    The axis spans the points and not the intervals, since those of two seeds would dwarf them; an interval that goes
    beyond it ends in `<` or `>`. A seed is drawn over the end of an interval, and one at the mean as `O`.
    """
    points = [score for row in rows for score in row.scores.values()]
    low, high = min(points), max(points)
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    room = max(len(row.row.label) for row in rows)

    def column(value: float) -> int:
        return round((width - 1) * (value - low) / (high - low))

    lines = []
    for row in rows:
        ours, cells = row.measured, [" "] * (width + 2)
        assert ours is not None
        if ours.low is not None and ours.high is not None:
            left, right = max(-1, column(ours.low)), min(width, column(ours.high))
            cells[left + 1 : right + 2] = "-" * (right - left + 1)
            cells[left + 1], cells[right + 1] = "[<"[left < 0], "]>"[right == width]
        cells[column(ours.mean) + 1] = "|"
        for score in row.scores.values():
            cells[column(score) + 1] = "o" if cells[column(score) + 1] not in "|O" else "O"
        lines.append(f"{row.row.label:<{room}} {''.join(cells)} {ours.mean:.2f}")
    axis = f"{low:.2f}".ljust(width - len(f"{high:.2f}")) + f"{high:.2f}"
    return [
        *lines,
        f"{'':<{room}}  {axis}",
        f"{'':<{room}}  o: one seed; |: mean; O: both; [-]: 95 % t-interval",
    ]


def notes(page: Page) -> list[str]:
    """Notes on rows, by number, on the table and on the test sets, and why runs were not used."""
    table = page.table
    texts = [f"[{number}] {result.row.note}" for number, result in numbered(page) if result.row.note]
    texts += table.notes
    if table.analysis:
        texts.append(f"Computed from the runs of {table.analysis}.")
    if table.command:
        texts.append(f"Measured by `{table.command}`.")
    texts += [*code_remarks.remarks(page), *dominant_sentence.remarks(page)]
    labels: dict[str, list[str]] = {}
    for result in page.results:
        labels.setdefault(result.remark, []).append(result.row.label)
    texts += [f"{'; '.join(rows)}: {remark}." for remark, rows in labels.items() if remark]
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
    """Why the difference of two rows has no interval: too few seeds, or scores that do not vary."""
    if min(len(a), len(b)) > 1:
        return "scores do not vary"
    return "one seed" if len(a) == len(b) else f"seeds: {len(a)} against {len(b)}"


def probability(p: float | None) -> str:
    """p with three decimals, or `< 0.001`; empty for None."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def points(value: float | None) -> str:
    """A number of points with two decimals; empty for None."""
    return "" if value is None else f"{value:.2f}"


def marked_probability(test: Randomization) -> str:
    """p over seeds and sentences, or `0.012 (sentences alone)`."""
    return probability(test.p) + ("" if test.p_over_sentences is None else " (sentences alone)")


def as_markdown(grid: Grid) -> str:
    rules = [":--", *("--:" for _ in grid.headings[1:])]
    return markdown_table(grid.headings, rules, *grid.lines)


def as_latex(grid: Grid) -> str:
    lines = [" & ".join(map(escaped, line)) + r" \\" for line in (grid.headings, *grid.lines)]
    body = "\n".join(lines[1:])
    columns = "l" + "r" * (len(grid.headings) - 1)
    begin, end = f"\\begin{{tabular}}{{{columns}}}\n\\toprule", "\\bottomrule\n\\end{tabular}"
    return f"{begin}\n{lines[0]}\n\\midrule\n{body}\n{end}"


def escaped(text: str) -> str:
    return "".join(LATEX.get(character, character) for character in text)
