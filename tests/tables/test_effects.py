"""Grids of a sweep: which rows are one, what of it is analyzed, and which pairs are tested within a level."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from ner_experiments.analysis.factorial import analyze
from ner_experiments.analysis.randomization import Randomization
from ner_experiments.analysis.statistics import holm
from ner_experiments.report.table_page import differences_section, effects_sections
from ner_experiments.runs.run import Run
from ner_experiments.tables.effects import Effects, effects_of, matrix, pairs_within
from ner_experiments.tables.pairs import Pair, compare_seeds
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Row, Table
from ner_experiments.tables.table_view import TableView
from ner_experiments.utils.text import listed

SEEDS = (1, 2, 3)
CELLS = [*itertools.product(("2", "4", "10"), ("random", "glove"))]
"""Every combination of layers=2,4,10 and words=random,glove."""


def scores(layers: str, words: str, seeds: tuple[int, ...] = SEEDS) -> dict[int, float]:
    """Scores with an interaction: more layers help with GloVe alone."""
    gain = int(layers) / 2 if words == "glove" else 0
    return {seed: 80 + gain + (seed * 7 + int(layers)) % 5 / 10 for seed in seeds}


def page(of_cell: Mapping[tuple[str, str], dict[int, float]], *, looks: tuple[int, ...] = ()) -> Page:
    results = []
    for (layers, words), own in of_cell.items():
        row = Row(label=f"layers={layers} words={words}", run=(f"layers={layers}", f"words={words}"))
        metrics = {"data": {"name": "toy", "checksum": "a", "gold": "g"}, "task": "mentions"}
        results.append(Result(row, own, {seed: Run(Path("anywhere"), metrics) for seed in own}))
    rows = tuple(result.row for result in results)
    table = Table(name="t", title="", source="", rows=rows, recorded="2026-01-01", looks=looks)
    return Page(table, tuple(results))


def grid_of(of_cell: Mapping[tuple[str, str], dict[int, float]]) -> Effects:
    (grid,) = effects_of(page(of_cell))
    return grid


def test_a_full_grid_is_analyzed_with_its_seeds_as_blocks() -> None:
    full = {cell: scores(*cell) for cell in CELLS}
    grid = grid_of(full)
    assert dict(grid.levels) == {"layers": ["2", "4", "10"], "words": ["random", "glove"]}
    expected = analyze([*full.values()], (3, 2))
    assert grid.analysis == expected
    assert expected is not None
    assert expected.is_blocked
    assert expected.freedom == 5 * 2
    p_values = [term.p for term in expected.terms]
    assert None not in p_values
    assert grid.p_adjusted == pytest.approx(holm([p for p in p_values if p is not None]))
    assert [line[0] for line in grid.tests.lines] == ["layers", "words", "layers x words"]
    assert [line[:2] for line in grid.differences.lines[-2:]] == [
        ["(layers=4 - 2) x (words=glove - random)", "+1.00"],
        ["(layers=10 - 2) x (words=glove - random)", "+4.00"],
    ]
    assert grid.sentence == (
        "Effects shown: layers (< 0.001), words (< 0.001) and layers x words (< 0.001). In parentheses: p corrected."
    )
    assert [*grid.means.headings] == ["", "words=random", "words=glove"]
    assert [line[0] for line in grid.means.lines] == ["layers=2", "layers=4", "layers=10"]
    assert "score = mean of the row + seed + error" in grid.notes[0]
    assert "10 degrees of freedom" in grid.notes[0]
    plot = grid.plot
    assert plot is not None
    points = plot.panels[0]["data"]["values"]
    assert sorted((it["series"], it["x"]) for it in points) == sorted(
        (f"words={words}", float(layers)) for layers, words in CELLS
    )


def test_what_is_missing_is_said_and_the_rest_is_analyzed() -> None:
    ragged = {cell: scores(*cell) for cell in CELLS}
    ragged["10", "glove"] = {}
    ragged["2", "random"] = scores("2", "random", (1, 2))
    grid = grid_of(ragged)
    used = [("2", "random"), ("2", "glove"), ("4", "random"), ("4", "glove")]
    assert grid.analysis == analyze([scores(*cell, (1, 2)) for cell in used], (2, 2))
    text = " ".join(grid.notes)
    assert "Not measured: layers=10 words=glove." in text
    assert "Analyzed without layers=10, so that every combination is measured." in text
    assert "Analyzed without seed 3, which not all rows have." in text
    means = {line[0]: line[1:] for line in grid.means.lines}
    expected = [f"{fmean(scores('2', words, (1, 2)).values()):.2f}" for words in ("random", "glove")]
    assert [
        cell.split(" ± ")[0] for cell in means["layers=2"]
    ] == expected  # not of all seeds: as the contrasts
    assert [cell[-3:] for cell in (*means["layers=2"], *means["layers=10"])] == ["(2)", "(2)", "(3)", ""]
    view = TableView(grid.page)
    vars(view)["pairs"] = []
    assert "(runs), in percent, analyzed without seed 3, which not all rows have:" in view.answer()
    assert grid.record()["missing"] == [{"layers": "10", "words": "glove"}]
    assert pairs_within([grid], []) == []


def test_rows_that_are_not_counted_are_named_among_the_effects_and_beside_the_answer() -> None:
    whole = page({cell: scores(*cell) if cell[1] == "glove" else {} for cell in CELLS})
    assert TableView(whole).not_counted == ""  # rows that were never run
    old = [replace(it, missing="" if it.runs else "runs by other code: x") for it in whole.results]
    view = TableView(replace(whole, results=tuple(old)))
    rows = [" ".join((f"layers={layers}", f"words={words}")) for layers, words in CELLS if words == "random"]
    sentence = f"Not counted: {listed(rows)}: runs by other code: x."
    assert view.not_counted == sentence
    (grid,) = view.effects
    assert f"Not counted: {listed(rows)}." in grid.notes
    assert "Not measured" not in " ".join(grid.notes)
    assert grid.plot is not None
    assert grid.plot.title == "test F1 by layers x words: words=glove"  # a single line has no legend
    several = [replace(old[0], missing="runs by other code: y"), *old[1:]]
    view = TableView(replace(whole, results=tuple(several)))
    assert view.not_counted == f"Not counted: {listed(rows)} (see Notes)."
    assert view.page.not_counted == [
        f"{rows[0]}: runs by other code: y",
        f"{listed(rows[1:])}: runs by other code: x",
    ]


def test_other_seeds_in_every_row_are_no_blocks() -> None:
    apart = {cell: scores(*cell, (10 * n, 10 * n + 1)) for n, cell in enumerate(CELLS)}
    grid = grid_of(apart)
    assert grid.analysis == analyze([*apart.values()], (3, 2))
    assert grid.analysis is not None
    assert not grid.analysis.is_blocked
    assert grid.analysis.freedom == 6
    assert "The rows do not have the same seeds, so that seeds are no blocks." in grid.notes


def test_the_sentence_says_that_rows_have_one_run() -> None:
    ragged = {cell: scores(*cell, (1,) if cell == CELLS[0] else SEEDS) for cell in CELLS}
    assert grid_of(ragged).sentence.endswith(
        "Single runs: 1 of 6 rows, whose error is estimated from the others."
    )


@pytest.mark.parametrize(
    ("cells", "seeds", "reason"),
    [
        (CELLS, (1,), "no row has two seeds"),
        (CELLS[:1] + CELLS[2:3] + CELLS[4:5] + CELLS[1:2], SEEDS, "one level of a setting is left"),
    ],
)
def test_what_cannot_be_tested_says_why(
    cells: list[tuple[str, str]], seeds: tuple[int, ...], reason: str
) -> None:
    grid = grid_of({cell: scores(*cell, seeds) for cell in cells})
    assert grid.analysis is None
    assert grid.notes[-1] == f"Effects are not tested: {reason}."


def test_one_setting_settings_one_at_a_time_and_looks_are_no_grid() -> None:
    assert effects_of(page({cell: scores(*cell) for cell in CELLS if cell[1] == "glove"})) == []
    diagonal = [("2", "random"), ("4", "glove"), ("10", "glove")]
    assert effects_of(page({cell: scores(*cell) for cell in diagonal})) == []
    assert effects_of(page({cell: scores(*cell) for cell in CELLS}, looks=(3, 5))) == []


def all_pairs(of: Page) -> list[Pair]:
    found = list(itertools.combinations(of.results, 2))
    tests = compare_seeds([result.scores for result in of.results])
    sentences = Randomization(0.0, 0.001, None, 0.0, 2)
    return [Pair(a, b, test, sentences, None) for (a, b), test in zip(found, tests, strict=True)]


def test_pairs_within_a_level_are_corrected_with_all_pairs() -> None:
    of = page({cell: scores(*cell) for cell in CELLS})
    pairs = all_pairs(of)
    within = pairs_within(effects_of(of), pairs)
    expected = [(a, b) for a, b in itertools.combinations(CELLS, 2) if (a[0] != b[0]) + (a[1] != b[1]) == 1]
    assert [pair.labels for pair in within] == [
        tuple(f"layers={layers} words={words}" for layers, words in both) for both in expected
    ]
    assert len(within) == 9 < len(pairs) == 15
    assert [pair for pair in pairs if pair in within] == within


def test_the_matrix_has_a_sign_for_each_pair_from_either_side() -> None:
    pairs = all_pairs(page({cell: scores(*cell) for cell in CELLS}))
    grid = matrix(pairs)
    assert [line[0] for line in grid.lines] == [
        f"{n} layers={a} words={b}" for n, (a, b) in enumerate(CELLS, 1)
    ]
    sign = {"ahead": "+", "behind": "-", "equal": "=", "undecided": "."}
    places = {f"layers={a} words={b}": n for n, (a, b) in enumerate(CELLS)}
    for pair in pairs:
        a, b = (places[label] for label in pair.labels)
        assert grid.lines[a][b + 1] == sign[pair.verdict]
        assert grid.lines[b][a + 1] == sign[pair.swapped().verdict]
    assert [grid.lines[n][n + 1] for n in range(6)] == [""] * 6
    assert {"+", "-"} <= {it for line in grid.lines for it in line[1:]}


def test_text_and_report_have_the_effects_the_pairs_within_a_level_and_the_matrix() -> None:
    of = page({cell: scores(*cell) for cell in CELLS})
    view = TableView(of)
    vars(view)["pairs"] = all_pairs(of)
    text = view.answer()
    assert (
        "[Effects](docs/statistics.md#effects-of-a-grid) of layers x words.** Effects shown: layers" in text
    )
    assert "Of all 15 pairs of rows, for whose number p is corrected, those that differ in one" in text
    assert "All 15 pairs of rows, corrected for their number" in text
    (section,) = effects_sections(view)
    assert (section.key, len(section.grids), len(section.plots)) == ("effects", 2, 1)
    pairs = differences_section(view)
    assert pairs is not None
    assert [len(grid.lines) for grid in pairs.grids] == [9, 6]


def test_single_runs_have_no_matrix() -> None:
    of = page({cell: {1: 80.0 + float(cell[0])} for cell in CELLS})
    view = TableView(of)
    vars(view)["pairs"] = all_pairs(of)
    assert view.matrix is None


def test_rows_that_differ_in_a_file_alone_are_no_grid() -> None:
    of = page({cell: scores(*cell) for cell in CELLS})
    rows = [
        replace(
            it, row=replace(it.row, label=f"{it.row.label} {file}", run=(*(it.row.run or ()), f"file={file}"))
        )
        for it in of.results
        for file in ("/a", "/b")
    ]
    assert effects_of(replace(of, results=tuple(rows))) == []
