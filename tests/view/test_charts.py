"""Every chart of view/charts.py: valid by the schema, with the numbers that it was given, and always the same."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_type_hints

import altair
import pytest

from ner_experiments.view import charts
from ner_experiments.view.charts import ForestRow, Point, Spread, Value
from ner_experiments.view.vega import Chart, Spec, domain_of, fitted, still

LONG = "a label that is so long that no picture of a telephone has room for it in one line"
ROWS = [
    Value("PER", 80.5, 79.25, 81.75, "ours"),
    Value(LONG, 60.5, 20.25, 99.75, "ours"),
    Value("PER", 82, series="x"),
]
POINTS = [Point(1, 0.5, "a", 0.25, 0.75), Point(64, 70.5, "a", 69.5, 71.5), Point(2, 3.5, "b", marked=False)]


def forest() -> Spec:
    about = {"group": "A paper (2020)", "verdict": "holds", "note": "rung 0"}
    rows = [
        ForestRow(**about, claim=LONG, published=0.8, mean=1.2, low=0.4, high=2.0),
        ForestRow(**about, claim="Four is better", published=None, mean=-0.3, low=-0.9, high=0.3),
        ForestRow(**about, claim="Not run", published=0.5, mean=None, low=None, high=None),
    ]
    (panel,) = charts.forest(rows, "Claims", "points of F1").panels
    return panel


def cloud() -> Spec:
    return charts.cloud(
        [Spread("a", 1000, None, 80.5, 0.5), Spread("b", 90000, 50, 81.5, None)], "cost", "F1"
    )


def matrix() -> Spec:
    shares = [[0.25, 0.75], [1.0, 0.5]]
    return charts.matrix(
        ["PER", "none"], ["PER", "none"], shares, texts=[["1", "3"], ["2", "1"]], framed=[(0, 1)]
    )


CHARTS: Mapping[Callable[..., Any], tuple[Callable[[], Spec], set[float]]] = {
    charts.forest: (forest, {0.8, 1.2, 0.4, 2.0, -0.3, -0.9, 0.3, 0.5}),
    charts.dots: (
        lambda: charts.dots(ROWS, "F1", band=(70, 80), rule=75),
        {80.5, 79.25, 81.75, 60.5, 20.25, 99.75, 82},
    ),
    charts.bars: (lambda: charts.bars(ROWS, "F1"), {80.5, 79.25, 81.75, 60.5, 20.25, 99.75, 82}),
    charts.lines: (
        lambda: charts.lines(POINTS, "units", "F1", ticks=True, log_x=True),
        {1, 64, 2, 0.5, 0.25, 0.75, 70.5, 69.5, 71.5, 3.5},
    ),
    charts.cloud: (cloud, {1000, 80.5, 80, 81, 90000, 89950, 90050, 81.5}),
    charts.matrix: (matrix, {0.25, 0.75, 1.0, 0.5}),
}
"""Each chart: an example, and the numbers that it has to draw."""
every_chart = pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.__name__)


def example(chart: Callable[..., Any]) -> Chart:
    return Chart("A chart", "What it shows.", (CHARTS[chart][0](),))


def numbers(node: Any) -> Iterator[float]:
    """All numbers of the data of a specification."""
    if isinstance(node, list):
        for item in node:
            yield from numbers(item)
    elif isinstance(node, dict):
        values = node["data"]["values"] if "data" in node else []
        yield from (number for row in values for number in row.values() if isinstance(number, int | float))
        yield from numbers([*node.values()])


def test_no_chart_is_missing_here() -> None:
    functions = {it for name, it in vars(charts).items() if callable(it) and it.__module__ == charts.__name__}
    makers = {it for it in functions if get_type_hints(it).get("return") in (Chart, Spec)}
    parts = {charts.row_data, charts.rows_panel, charts.intervals, charts.point_data, charts.along}
    assert makers - parts == {*CHARTS}


@every_chart
def test_a_chart_is_valid_vega_lite_and_draws_all_its_numbers(chart: Callable[..., Any]) -> None:
    made = example(chart)
    altair.Chart.from_dict(made.specification(titled=True))
    altair.Chart.from_dict(Chart("Two", "", made.panels * 2).specification())
    drawn = [*numbers([*made.panels])]
    assert [number for number in CHARTS[chart][1] if not any(math.isclose(number, it) for it in drawn)] == []


@every_chart
@pytest.mark.parametrize("width", [390, 830])
def test_a_picture_is_the_same_again_has_the_width_asked_for_and_no_variable_of_a_page(
    chart: Callable[..., Any], width: int
) -> None:
    svg = example(chart).svg(width)
    assert svg == example(chart).svg(width)
    assert "var(" not in svg
    if chart is not charts.matrix:  # its cells are as large as they are
        assert float(svg.partition('width="')[2].partition('"')[0]) == pytest.approx(width, rel=0.1)


def test_a_hostile_label_is_text() -> None:
    svg = Chart("", "", (charts.dots([Value("<script>alert(1)</script>", 1.0)], "F1"),)).svg()
    assert "&lt;script&gt;" in svg
    assert "<script" not in svg


def test_an_axis_has_room_for_intervals_up_to_three_times_the_range_of_the_values() -> None:
    assert domain_of([80, 90], [60, 91]) == pytest.approx([70 - 0.84, 91 + 0.84])


def test_an_interval_that_leaves_the_axis_ends_in_an_arrow() -> None:
    panel = charts.dots([Value("a", 80, 20, 99), Value("b", 81, 80, 82)], "F1")
    (arrows,) = [layer for layer in panel["layer"] if layer["mark"].get("shape") == "triangle-up"]
    low, high = panel["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert [(row["row"], row["x"]) for row in arrows["data"]["values"]] == [("a", high), ("a", low)]


def test_on_a_phone_labels_have_more_lines_and_legends_fewer_columns() -> None:
    values = [Value(LONG, 1.0, series=f"series number {number}") for number in range(4)]

    def fit(width: int) -> tuple[float, int]:
        panel = fitted(still(charts.dots(values, "F1")), width)
        return panel["height"], panel["layer"][-1]["encoding"]["shape"]["legend"]["columns"]

    (step, columns), (narrow_step, narrow_columns) = fit(1000), fit(300)
    assert narrow_step > step
    assert narrow_columns < columns


def test_what_is_not_finite_is_a_gap() -> None:
    panel = charts.lines([Point(1, 1.0), Point(2, math.nan), Point(3, math.inf)], "epoch", "loss")
    assert [row["y"] for row in panel["data"]["values"]] == [1.0, None, None]
