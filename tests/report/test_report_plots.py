"""The report's pictures: legends of many rows, scales of learning curves, and the corpus in a title."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import drawn
import pytest

from ner_experiments.analysis.row_errors import Mean, MeanBucket
from ner_experiments.report import error_tables, run_plots, table_page
from ner_experiments.runs.run import Run
from ner_experiments.tables import plots, spec
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Row, Table
from ner_experiments.tables.table_view import TableView
from ner_experiments.view import vega


def test_ten_rows_are_drawn_side_by_side_each_with_a_mark_of_its_own() -> None:
    f1 = MeanBucket(Mean(0.8, 0.7, 0.9, 3, "seeds"), 0.8, 0.8, 10)
    plot = error_tables.f1_plot("type", {f"row {number}": {"NP": f1} for number in range(10)})
    assert plot.title == "F1 by type"
    assert drawn.data(plot.chart) == [
        {"row": "NP", "x": 80, "low": 70, "high": 90, "series": f"row {number}"} for number in range(10)
    ]
    looks = {(look.color, look.shape) for look in vega.looks(map(str, range(42))).values()}
    assert len(looks) == 42


@pytest.mark.parametrize("least", [0.001, 0.7])
def test_norms_have_a_logarithmic_axis(least: float) -> None:
    rows = [{"epoch": 1.0, "layer 1": least}, {"epoch": 2.0, "layer 1": 1.0}]
    plot = run_plots.line_plot(rows, "norm", "Gradient of each layer's output")
    assert plot.chart.panels[0]["encoding"]["y"]["scale"]["type"] == "log"
    low, high = drawn.domain(plot.chart, "y")
    assert 0 < low < least < 1 < high
    assert [row["y"] for row in drawn.data(plot.chart)] == [least, 1.0]


class Trained(Run):
    """A run whose dev scores are in its metrics, as is its data."""

    def epochs(self) -> list[dict[str, float]]:
        return [
            {"epoch": float(epoch), "dev_f1": f1} for epoch, f1 in enumerate(self.metrics["curve"], start=1)
        ]


def trained(data: str, *curve: float) -> Mapping[int, Run]:
    metrics = {"task": "mentions", "best_epoch": len(curve), "data": {"name": data, "checksum": data}}
    return {1: Trained(Path(), {**metrics, "curve": curve})}


def test_learning_curves_have_one_scale_for_each_corpus_and_the_page_says_so() -> None:
    """Scores of 92 to 95 and of 79 to 89, in turn: no picture shows what none of its corpus scored."""
    rows = [row for row in spec.load("huang2015_table2").rows if row.run and "POS" not in row.label][:4]
    chunks = [trained("conll2000", 0.92, 0.948), trained("conll2000", 0.93, 0.95)]
    names = [trained("conll2003", 0.79, 0.88), trained("conll2003", 0.80, 0.89)]
    in_turn = [chunks[0], names[0], chunks[1], names[1]]
    results = tuple(Result(row, runs=runs) for row, runs in zip(rows, in_turn, strict=True))
    table = spec.load("huang2015_table2")
    section = table_page.curves_section(TableView(Page(table, results)))
    assert section is not None
    assert [plot.title for plot in section.plots] == [rows[n].label for n in (0, 2, 1, 3)]
    ticks = [drawn.domain(plot.chart, "y") for plot in section.plots]
    assert ticks[0] == ticks[1]
    assert ticks[2] == ticks[3]
    assert min(ticks[0]) >= 90
    assert max(ticks[2]) <= 91
    assert section.texts[0].endswith("Rows on one corpus share one scale: first conll2000, then conll2003.")
    one = table_page.curves_section(TableView(Page(table, results[::2])))
    assert one is not None
    assert one.texts[0].endswith("All rows share one scale.")


def test_a_picture_is_named_after_the_corpus_that_was_scored() -> None:
    """With data=weibo a table of MSRA is no picture of MSRA; rows without runs stand beside the others."""
    table = spec.load("yang2020_table13")
    ran, *others = table.rows
    results = (Result(ran, {1: 50.0}, trained("weibo", 0.5), comparable=False), *map(Result, others))
    assert [group.title for group in plots.row_groups(Page(table, results, ("data=weibo",)))] == ["weibo"]
    assert [it.title for it in plots.row_groups(Page(table, tuple(map(Result, table.rows))))] == ["msra"]
    own = (replace(results[0], runs=trained("my files", 0.5)), *results[1:])
    (group,) = plots.row_groups(Page(table, own, ("data=conll",)))
    assert (group.title, len(group.results)) == ("my files", len(table.rows))
    assert plots.row_plot(group, "test F1").title == "test F1, row by row: my files"


def test_rows_of_the_report_are_drawn_at_their_scores_and_those_of_papers_beside_them() -> None:
    table = spec.load("yang2020_table13")
    results = tuple(Result(row, {1: 90.0, 2: 91.0}) for row in table.rows[:2])
    (rows,) = plots.row_groups(Page(table, results))
    plot = plots.row_plot(rows, "test F1")
    assert drawn.data(plot.chart) == [
        point
        for row in table.rows[:2]
        for point in (
            {"row": row.label, "x": row.published, "series": "published"},
            {"row": row.label, "x": 90.5, "low": 84.1469, "high": 96.8531, "series": "ours"},
        )
    ]
    assert plot.grid.headings == ("row", "published", "ours", "95 %")


def test_seeds_are_points_and_their_interval_is_drawn_as_far_as_there_is_room() -> None:
    """The interval of two seeds is 12.7 times as long as they differ; the axis has three times this difference."""
    table = Table(name="mine", title="t", source="s", rows=(Row(label="layers=1", run=("layers=1",)),))
    page = Page(table, (Result(table.rows[0], {1: 50.0, 2: 51.0}, trained("weibo", 0.5)),))
    (plot,) = plots.seed_plots(page)
    assert [(row["series"], row["x"]) for row in drawn.data(plot.chart)] == [
        ("mean, 95 % t-interval", 50.5),
        ("one seed", 50.0),
        ("one seed", 51.0),
    ]
    assert drawn.domain(plot.chart, "x") == pytest.approx([49 - 0.12, 52 + 0.12])
    assert [*plot.grid.headings] == ["row", "mean", "95 %"]


def test_the_axis_of_a_single_epoch_has_whole_numbers() -> None:
    plot = run_plots.dev_curves(trained("weibo", 0.5), "one epoch", (40.0, 60.0))
    assert drawn.domain(plot.chart, "x") == [0, 2]


def of_seeds(*curves: tuple[float, ...]) -> Mapping[int, Run]:
    return {seed: trained("weibo", *curve)[1] for seed, curve in enumerate(curves, start=1)}


def test_many_seeds_are_a_band_around_their_mean() -> None:
    count = run_plots.MAX_SEEDS + 1
    runs = of_seeds((0.1, 0.4), *((0.3, 0.6) for _ in range(count - 2)), (0.5,))
    plot = run_plots.dev_curves(runs, "many", (0.0, 100.0))
    first, second = (10 + 30 * (count - 2) + 50) / count, (40 + 60 * (count - 2)) / (count - 1)
    assert plot.grid.headings == ["epoch", "lowest", "mean", "highest"]
    assert plot.grid.lines == [
        ["1", "10.00", f"{first:.2f}", "50.00"],
        ["2", "40.00", f"{second:.2f}", "60.00"],
    ]
    mean = f"mean of {count} seeds"
    assert [(row["x"], row["low"], row["high"], row["series"]) for row in drawn.data(plot.chart)] == [
        (1, 10, 50, mean),
        (2, 40, 60, mean),
    ]
    assert "area" in [layer["mark"]["type"] for layer in plot.chart.panels[0]["layer"]]


def test_the_band_of_a_single_epoch_is_an_interval() -> None:
    runs = of_seeds(*((number / 100,) for number in range(20, 40)))
    plot = run_plots.dev_curves(runs, "one epoch", (0.0, 100.0))
    assert "area" not in [layer["mark"]["type"] for layer in plot.chart.panels[0]["layer"]]
    assert [(row["low"], row["high"]) for row in drawn.data(plot.chart)] == [(20, 39)]


def test_up_to_twelve_seeds_have_a_line_each() -> None:
    runs = of_seeds(*((0.1, 0.2) for _ in range(run_plots.MAX_SEEDS)))
    plot = run_plots.dev_curves(runs, "few", (0.0, 100.0))
    assert len(plot.grid.headings) == 1 + run_plots.MAX_SEEDS
    assert len({row["series"] for row in drawn.data(plot.chart)}) == run_plots.MAX_SEEDS
    assert [row["x"] for row in drawn.data(plot.chart) if "marked" not in row] == [2] * run_plots.MAX_SEEDS
