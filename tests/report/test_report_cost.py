"""The report's plots of score against cost: which points they have, and where."""

import itertools
from pathlib import Path
from statistics import stdev
from xml.etree import ElementTree as Tree

import numpy as np
import pytest

from ner_experiments.report import plots, table_page
from ner_experiments.report.entries import Entry
from ner_experiments.runs.run import Run
from ner_experiments.tables import spec
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.svg import Plot, drawing

TABLE = spec.load("huang2015_table2")
ROWS = {row.label: row for row in TABLE.rows}


def measured(label: str, data: str, parameters: int, **seconds: float) -> Result:
    """A row that took so many seconds with each seed; it scored 80 with seed 1, 81 with seed 2."""
    same = {
        "identity": label,
        "task": "tags" if data == "ptb" else "mentions",
        "data": {"name": data, "checksum": data},
        "parameters": parameters,
        "epochs": 2,
        "device": "cpu",
        "threads": 1,
    }
    runs = {int(seed[1:]): Run(Path(label), {**same, "seconds": its}) for seed, its in seconds.items()}
    return Result(ROWS[label], {seed: 79.0 + seed for seed in runs}, runs)


@pytest.fixture
def page() -> Page:
    """Two rows on each of two corpora, and one alone on a third."""
    return Page(
        TABLE,
        (
            measured("random, LSTM, POS", "ptb", 1000, s1=10, s2=30),
            measured("random, LSTM, chunks", "conll2000", 2000, s1=50),
            measured("random, BI-LSTM, POS", "ptb", 1500, s1=40, s2=40),
            measured("random, LSTM, NER", "conll2003", 3000, s1=60),
            measured("random, BI-LSTM, chunks", "conll2000", 2000, s1=50),
        ),
    )


def texts(plot: Plot) -> list[str]:
    return [node.text for node in Tree.fromstring(plot.svg).iter() if node.text]


def test_rows_on_one_corpus_are_points_of_one_picture(page: Page) -> None:
    pos, chunks = plots.cost_plots(page)
    assert pos.title == "test accuracy against parameters and seconds: ptb"
    assert chunks.title == "test F1 against parameters and seconds: conll2000"
    assert pos.grid.headings == ("", "test accuracy", "trained parameters", "seconds of a run")
    scored = f"80.50 ± {stdev([80, 81]):.2f}"
    assert pos.grid.lines == [
        ["1. random, LSTM, POS", scored, "1,000", f"20 ± {stdev([10, 30]):.0f}"],
        ["2. random, BI-LSTM, POS", scored, "1,500", "40"],
    ]
    assert [line[1:] for line in chunks.grid.lines] == [["80.00", "2,000", "50"]] * 2
    for plot in (pos, chunks):
        assert {line[0] for line in plot.grid.lines} <= set(texts(plot))
        assert [texts(plot).count(number) for number in "123"] == [2, 2, 0]  # against each of the two costs


def test_the_cost_of_a_table_is_shown_with_its_scores(page: Page) -> None:
    section = table_page.cost_section(Entry(page), {})
    assert section is not None
    assert [plot.title for plot in section.plots] == [plot.title for plot in plots.cost_plots(page)]
    alone = table_page.cost_section(Entry(Page(TABLE, page.results[:2])), {})
    assert alone is not None
    assert alone.plots == []


def test_a_point_lies_at_the_means_with_bars_as_long_as_the_deviations(page: Page) -> None:
    with drawing(400, 300) as figure:
        axes = figure.subplots()
        plots.draw_costs(axes, page.results[:1], "seconds", ["a row"])
        ((points, _, (x, y)),) = (container.lines for container in axes.containers)
    assert points.get_xydata().tolist() == [[20, 80.5]]
    assert x.get_segments()[0][:, 0] == pytest.approx([20 - stdev([10, 30]), 20 + stdev([10, 30])])
    assert y.get_segments()[0][:, 1] == pytest.approx([80.5 - stdev([80, 81]), 80.5 + stdev([80, 81])])


@pytest.mark.parametrize(("parameters", "scale"), [((100, 1500), "linear"), ((100, 1600), "log")])
def test_costs_that_differ_much_are_shown_on_a_logarithmic_axis(
    parameters: tuple[int, int], scale: str
) -> None:
    rows = [measured(label, "ptb", count, s1=1) for label, count in zip(ROWS, parameters, strict=False)]
    with drawing(400, 300) as figure:
        axes = figure.subplots()
        plots.draw_costs(axes, rows, "parameters", ["a", "b"])
        assert axes.get_xscale() == scale


@pytest.mark.parametrize("spread", [0.0, 0.02, 1.0])
def test_numbers_do_not_stand_on_each_other(spread: float) -> None:
    points = spread * np.random.default_rng(5).random((6, 2))
    with drawing(300, 280) as figure:
        axes = figure.subplots()
        axes.plot(*points.T, "o")
        axes.set(xlim=(-0.1, 1.1), ylim=(-0.1, 1.1))
        figure.draw_without_rendering()
        plots.number_points(axes, [tuple(point) for point in points])
        boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == len(points)
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)


@pytest.mark.parametrize("corner", [*itertools.product((0.0, 1.0), repeat=2)])
def test_no_number_leaves_the_picture(corner: tuple[float, float]) -> None:
    """A plot with many points crowded at its edge."""
    with drawing(300, 280) as figure:
        axes = figure.subplots()
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_axis_off()
        figure.draw_without_rendering()
        plots.number_points(axes, [corner] * 5)
        boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 5
    for box in boxes:
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1
