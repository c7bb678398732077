"""The report's plots of score against cost: which points they have, and where."""

import itertools
import re
from pathlib import Path
from statistics import stdev
from xml.etree import ElementTree as Tree

import numpy as np
import pytest

from ner_experiments.report import run_plots, table_page
from ner_experiments.report.entries import Entry
from ner_experiments.report.svg_charts import Panel
from ner_experiments.runs.run import Run
from ner_experiments.tables import spec
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.svg import Plot

TABLE = spec.load("huang2015_table2")
ROWS = {row.label: row for row in TABLE.rows}


def measured(label: str, data: str, parameters: int, **seconds: float) -> Result:
    """A row that took so many seconds with each seed; it scored 80 with seed 1, 81 with seed 2."""
    same = {
        "identity": label,
        "task": "tags" if data == "ptb" else "mentions",
        "data": {"name": data, "checksum": data, "gold": data},
        "parameters": parameters,
        "parameters_of": {"model": parameters},
        "peak_memory_bytes": {"main": 2_000_000},
        "tokens_per_second": 500.0,
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
    pos, chunks = run_plots.cost_plots(page)
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
    assert [plot.title for plot in section.plots] == [plot.title for plot in run_plots.cost_plots(page)]
    alone = table_page.cost_section(Entry(Page(TABLE, page.results[:2])), {})
    assert alone is not None
    assert alone.plots == []


def test_a_point_lies_at_the_means_with_bars_as_long_as_the_deviations(page: Page) -> None:
    panel = Panel(0, 100, 0, 100, x=(0, 1), y=(78, 83))
    run_plots.draw_costs(panel, page.results[:1], "seconds")
    (mark,) = (piece for piece in panel.clipped if piece.startswith("<path"))
    assert f"translate({panel.px(20):.2f} {panel.py(80.5):.2f})" in mark
    seconds, scores = stdev([10, 30]), stdev([80, 81])
    bars = [
        [float(re.search(rf' {key}="([-\d.]+)"', piece)[1]) for key in ("x1", "y1", "x2", "y2")]
        for piece in panel.clipped
        if piece.startswith("<line") and "stroke-width: 1.4" in piece
    ]
    across = [panel.px(20 - seconds), panel.py(80.5), panel.px(20 + seconds), panel.py(80.5)]
    upwards = [panel.px(20), panel.py(80.5 - scores), panel.px(20), panel.py(80.5 + scores)]
    assert bars[0] == pytest.approx(across, abs=0.01)
    assert bars[1] == pytest.approx(upwards, abs=0.01)


@pytest.mark.parametrize(("parameters", "logarithmic"), [((100, 1500), False), ((100, 1600), True)])
def test_costs_that_differ_much_are_shown_on_a_logarithmic_axis(
    parameters: tuple[int, int], logarithmic: bool
) -> None:
    rows = [measured(label, "ptb", count, s1=1) for label, count in zip(ROWS, parameters, strict=False)]
    panel = Panel(0, 100, 0, 100, x=(0, 1), y=(78, 83))
    run_plots.draw_costs(panel, rows, "parameters")
    assert (panel.x[1] < 10) == logarithmic
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", "".join(panel.unclipped))
    assert ("200" in texts and "500" in texts and "1 k" in texts) == logarithmic


def overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two numbers of one letter, some 8 by 11 pixels, stand on each other."""
    return abs(one[0] - other[0]) < 8 and abs(one[1] - other[1]) < 11


@pytest.mark.parametrize("spread", [0.0, 5.0, 200.0])
def test_numbers_do_not_stand_on_each_other(spread: float) -> None:
    points = 100 + spread * np.random.default_rng(5).random((6, 2))
    places = run_plots.number_places([tuple(point) for point in points.tolist()], (0, 0, 400, 400))
    assert len(places) == len(points)
    assert not any(overlap(*both) for both in itertools.combinations(places, 2))


@pytest.mark.parametrize("corner", [*itertools.product((0.0, 1.0), repeat=2)])
def test_no_number_leaves_the_picture(corner: tuple[float, float]) -> None:
    """Many points crowded at the edge of a plot."""
    left, top, right, bottom = 10, 20, 310, 220
    center = (left + corner[0] * (right - left), top + corner[1] * (bottom - top))
    places = run_plots.number_places([center] * 5, (left, top, right, bottom))
    assert len(places) == 5
    for x, y in places:
        assert left + 4 <= x <= right - 4
        assert top + 5 <= y <= bottom - 5
