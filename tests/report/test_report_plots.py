"""The report's pictures: legends of many rows, scales of learning curves, and the corpus in a title."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest

from ner_experiments.analysis.row_errors import Mean, MeanBucket
from ner_experiments.report import error_tables, run_plots, score_plots, table_page
from ner_experiments.report.entries import Entry
from ner_experiments.report.run_plots import Bar
from ner_experiments.runs.run import Run
from ner_experiments.tables import plots, spec, svg
from ner_experiments.tables.render import Grid
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Row, Table
from ner_experiments.tables.svg import Plot

TYPES = ("ADJP", "NP", "VP")


def points_of(labels: list[str]) -> Plot:
    rows = {label: [Bar(name, 80 + n, 79 + n, 81 + n) for name in TYPES] for n, label in enumerate(labels)}
    return run_plots.points(rows, "p", "test F1", "F1 by type", Grid((), []))


def size(plot: Plot) -> tuple[float, float]:
    _, _, width, height = Tree.fromstring(plot.svg).get("viewBox", "").split()
    return float(width), float(height)


def axes_of(plot: Plot) -> tuple[float, float]:
    """Width and height of what is drawn in, by its clipping rectangle."""
    (frame,) = re.findall(r'<rect [^>]*width="([\d.]+)" height="([\d.]+)"', str(plot.svg))
    return float(frame[0]), float(frame[1])


@pytest.mark.parametrize("count", [1, 5, 10])
def test_a_legend_of_many_rows_makes_a_picture_taller_and_its_axes_no_smaller(count: int) -> None:
    short = points_of([f"{number}" for number in range(count)])
    labels = [f"random, BI-LSTM-CRF, chunks of row {number}" for number in range(count)]
    long = points_of(labels)
    assert size(long)[0] == size(short)[0]
    assert axes_of(long) == pytest.approx(axes_of(short), abs=1)
    assert axes_of(long)[0] > 400
    texts = [node.text for node in Tree.fromstring(long.svg).iter() if node.text]
    assert [label for label in labels if label not in texts] == []


def test_a_label_that_no_legend_holds_is_cut_and_the_axes_stay_as_wide() -> None:
    long = points_of(["a row of a table that says all of its settings, one after the other, " * 2, "b"])
    assert axes_of(long)[0] == pytest.approx(axes_of(points_of(["a", "b"]))[0], abs=1)
    (cut,) = {node.text for node in Tree.fromstring(long.svg).iter() if (node.text or "").endswith("…")}
    assert cut.startswith("a row of a table that says all")


@pytest.mark.parametrize("least", [0.001, 0.7])
def test_a_logarithmic_axis_has_numbers_that_can_be_read(least: float) -> None:
    rows = [{"epoch": 1.0, "layer 1": least}, {"epoch": 2.0, "layer 1": 1.0}]
    plot = run_plots.line_plot(rows, "g", "norm", "Gradient of each layer's output")
    texts = [node.text or "" for node in Tree.fromstring(plot.svg).iter() if node.tag.endswith("}text")]
    numbers = [text for text in texts if re.search(r"\d", text) and text != "layer 1"]
    assert [text for text in numbers if not re.fullmatch(r"[\d.e-]+", text)] == []
    assert len({float(text) for text in numbers if float(text) <= 1}) >= 3


def test_ten_rows_are_drawn_side_by_side_each_with_a_mark_of_its_own() -> None:
    f1 = MeanBucket(Mean(0.8, 0.7, 0.9, 3, "seeds"), 0.8, 0.8, 10)
    plot = error_tables.f1_plot("type", {f"row {number}": {"NP": f1} for number in range(10)}, 0)
    assert plot.title == "F1 by type"
    looks = [tuple(svg.series_style(number).values()) for number in range(svg.NUM_STYLES)]
    assert len(set(looks)) == len(looks) >= 10


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
    section = table_page.curves_section(Entry(Page(table, results)))
    assert section is not None
    assert [plot.title for plot in section.plots] == [rows[n].label for n in (0, 2, 1, 3)]
    ticks = [scale_of(plot) for plot in section.plots]
    assert ticks[0] == ticks[1]
    assert ticks[2] == ticks[3]
    assert min(ticks[0]) >= 91
    assert max(ticks[2]) <= 90
    assert section.texts[0].endswith("Rows on one corpus share one scale: first conll2000, then conll2003.")
    one = table_page.curves_section(Entry(Page(table, results[::2])))
    assert one is not None
    assert one.texts[0].endswith("All rows share one scale.")


def scale_of(plot: Plot) -> list[float]:
    """The numbers at its y axis: those that epochs cannot be."""
    texts = [node.text or "" for node in Tree.fromstring(plot.svg).iter() if node.tag.endswith("}text")]
    return [float(text) for text in texts if re.fullmatch(r"[\d.]+", text) and float(text) > 50]


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
    assert plots.row_plot(group, "rows", "test F1").title == "test F1, row by row: my files"


def test_rows_of_the_report_are_drawn_at_their_scores_and_those_of_papers_beside_them() -> None:
    table = spec.load("yang2020_table13")
    results = tuple(Result(row, {1: 90.0, 2: 91.0}) for row in table.rows[:2])
    (rows,) = plots.row_groups(Page(table, results))
    plot = score_plots.row_plot(rows, "rows", "test F1")
    places = [tuple(map(float, it)) for it in re.findall(r"translate\(([\d.]+) ([\d.]+)\)", str(plot.svg))]
    inside = [it for it in places if it[1] > 30]
    published, ours = inside[:2], inside[2:]
    assert len(published) == len(ours) == 2
    assert ours[0][0] == ours[1][0] < min(x for x, _ in published)
    assert all(above[1] < below[1] for above, below in zip(published, ours, strict=True))
    assert plot.grid.headings == ("row", "published", "ours", "95 %")


def test_seeds_are_points_and_the_axis_spans_them_though_their_interval_is_wider() -> None:
    table = Table(name="mine", title="t", source="s", rows=(Row(label="layers=1", run=("layers=1",)),))
    page = Page(table, (Result(table.rows[0], {1: 50.0, 2: 51.0}, trained("weibo", 0.5)),))
    (plot,) = score_plots.seed_plots(page)
    texts = [node.text for node in Tree.fromstring(plot.svg).iter() if node.tag.endswith("}text")]
    assert {"mean", "one seed", "layers=1", "test F1"} <= set(texts)
    assert "ours" not in texts
    assert [*plot.grid.headings] == ["row", "mean", "95 %"]
    ticks = [float(text) for text in texts if re.fullmatch(r"[\d.]+", text or "")]
    assert 49 < min(ticks) <= max(ticks) < 52


def test_the_axis_of_a_single_epoch_has_whole_numbers() -> None:
    runs = trained("weibo", 0.5)
    plot = run_plots.dev_curves(runs, "curve", "one epoch", (40.0, 60.0))
    texts = [node.text or "" for node in Tree.fromstring(plot.svg).iter() if node.tag.endswith("}text")]
    assert {"0", "1", "2"} <= set(texts)


def of_seeds(*curves: tuple[float, ...]) -> Mapping[int, Run]:
    return {seed: trained("weibo", *curve)[1] for seed, curve in enumerate(curves, start=1)}


def test_many_seeds_are_a_band_around_their_mean() -> None:
    count = run_plots.MAX_SEEDS + 1
    runs = of_seeds((0.1, 0.4), *((0.3, 0.6) for _ in range(count - 2)), (0.5,))
    plot = run_plots.dev_curves(runs, "curve", "many", (0.0, 100.0))
    first, second = (10 + 30 * (count - 2) + 50) / count, (40 + 60 * (count - 2)) / (count - 1)
    assert plot.grid.headings == ["epoch", "lowest", "mean", "highest"]
    assert plot.grid.lines == [
        ["1", "10.00", f"{first:.2f}", "50.00"],
        ["2", "40.00", f"{second:.2f}", "60.00"],
    ]
    shapes = [node for node in Tree.fromstring(plot.svg).iter() if node.tag.endswith("}path")]
    (band,) = [node for node in shapes if "opacity" in node.get("style", "")]
    points = [tuple(map(float, it.split())) for it in re.findall(r"[\d.]+ [\d.]+", band.get("d", ""))]
    height = points[0][1] - points[3][1]  # 40 points between the lowest and the highest of the first epoch
    assert height / 40 == pytest.approx((points[1][1] - points[2][1]) / 20, abs=0.01)
    texts = [node.text for node in Tree.fromstring(plot.svg).iter() if node.tag.endswith("}text")]
    assert f"mean of {count} seeds" in texts


def test_the_band_of_a_single_epoch_is_an_interval() -> None:
    runs = of_seeds(*((number / 100,) for number in range(20, 40)))
    svg = run_plots.dev_curves(runs, "curve", "one epoch", (0.0, 100.0)).svg
    assert "opacity" not in svg
    assert svg.count("stroke-width: 1.4") == 1


def test_up_to_twelve_seeds_have_a_line_each() -> None:
    runs = of_seeds(*((0.1, 0.2) for _ in range(run_plots.MAX_SEEDS)))
    plot = run_plots.dev_curves(runs, "curve", "few", (0.0, 100.0))
    assert len(plot.grid.headings) == 1 + run_plots.MAX_SEEDS
    assert "opacity" not in plot.svg
