"""The report's parts: what a table varies, and pictures."""

from pathlib import Path

import drawn
import pytest

from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.report import attention_page, site, table_page
from ner_experiments.runs.run import Run
from ner_experiments.tables import plots, spec
from ner_experiments.tables.scores import Page, Result


def published(name: str) -> Page:
    table = spec.load(name)
    return Page(table, tuple(map(Result, table.rows)))


def test_a_number_that_rows_vary_is_the_axis() -> None:
    """Against the papers: layers of two stacks, units of one size, units and sizes at once, sizes."""
    layers = plots.axis_of(published("yang2020_table12"))
    assert layers is not None
    of_series = {
        series: [point.x for point in layers.points if point.series == series]
        for series in ("stacked", "residual")
    }
    assert (layers.label, of_series) == ("layers", {"stacked": [2, 3, 4], "residual": [2, 3, 4, 5, 6]})
    units = plots.axis_of(published("zukov2018_table2"))
    assert units is not None
    assert (units.label, [point.x for point in units.points]) == ("parallel units", [1, 2, 4, 8, 16, 32])
    both = plots.axis_of(published("zukov2018_table3"))
    assert both is not None
    assert both.label == "parallel units (with size of a unit)"
    assert [point.x for point in both.points] == [2**power for power in range(8)]
    sizes = plots.axis_of(published("zukov2018_table4"))
    assert sizes is not None
    assert [(point.x, point.result.row.published) for point in sizes.points] == [
        (8, 89.78),
        (16, 89.77),
        (32, 90.26),
        (64, 91.48),
        (128, 89.28),
    ]


@pytest.mark.parametrize(
    "name", ["yang2020_table10", "yang2020_table13", "huang2015_table2", "li2020_table1"]
)
def test_a_number_that_goes_with_a_choice_is_no_axis(name: str) -> None:
    assert plots.axis_of(published(name)) is None


def test_rows_are_drawn_beside_those_on_the_same_scale_and_none_is_lost() -> None:
    found = plots.row_groups(published("huang2015_table2"))
    for group, word in zip(found, ("POS", "chunks", "NER"), strict=True):
        assert all(word in result.row.label for result in group.results)
    assert sum(len(group.results) for group in found) == len(spec.load("huang2015_table2").rows)
    heads = plots.row_groups(published("li2020_table5"))
    assert [(group.title, len(group.results)) for group in heads] == [(f"tag {tag}", 9) for tag in "OSBIE"]


def test_the_paper_is_drawn_beside_ours_with_both_numbers_in_the_table() -> None:
    table = spec.load("zukov2018_table4")
    scores = {1: 90.0, 2: 91.0, 3: 92.0}
    page = Page(table, tuple(Result(row, scores if "64" in row.label else {}) for row in table.rows))
    axis = plots.axis_of(page)
    assert axis is not None
    plot = plots.axis_plot(axis, "test F1")
    assert ["size 64", "91.48 ± 0.22 (10)", "91.00 ± 1.00 (3)", "88.52 to 93.48"] in plot.grid.lines
    points = {(row["series"], row["x"]): row["y"] for row in drawn.data(plot.chart)}
    assert points == {("ours", 64): 91.0} | {
        ("published", it.x): it.result.row.published for it in axis.points
    }


def test_what_one_would_not_see_is_written_out() -> None:
    assert site.visible("a\u202eb\u200b") == "a⟨U+202E⟩b⟨U+200B⟩"
    assert site.visible("北京 é <b>") == "北京 é <b>"


def test_rows_without_a_published_number_are_drawn_by_ours_alone() -> None:
    """Table 14 publishes sentences."""
    rows = spec.load("yang2020_table14").rows
    group = plots.RowGroup("toy", tuple(Result(row, {1: 50.0, 2: 60.0}, comparable=False) for row in rows))
    plot = plots.row_plot(group, "test F1")
    assert {row["series"] for row in drawn.data(plot.chart)} == {"mean"}
    assert [line[2] for line in plot.grid.lines] == ["55.00 ± 7.07 (2)"] * 3


def test_seconds_per_epoch_are_those_of_the_published_table() -> None:
    metrics = ({"seconds": 10, "epochs": 1}, {"seconds": 90, "epochs": 3})
    same = {"parameters": 5, "parameters_of": {}, "peak_memory_bytes": {"main": 1}, "tokens_per_second": 1.0}
    runs = {seed: Run(Path(), {**same, **it}) for seed, it in enumerate(metrics)}
    result = Result(spec.load("yang2020_table13").rows[0], runs=runs)
    assert table_page.cost_line(result)["s per epoch"] == f"{result.cost()['seconds_per_epoch']:.1f} ± 14.1"


def test_attention_is_drawn_of_no_sentence_longer_than_the_limit() -> None:
    def corpus(*lengths: int) -> Corpus:
        test = [Sentence(("Rome",) * length, ("S-LOC",) * length) for length in lengths]
        return Corpus("mine", "mentions", {"test": test}, "")

    assert [place.number for place in attention_page.sentences_to_draw(corpus(31, 30))] == [2]
    with pytest.raises(
        ValueError, match="mine: no sentence of test or dev with a mention has at most 30 tokens"
    ):
        attention_page.sentences_to_draw(corpus(31, 40))
