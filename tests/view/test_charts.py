"""Every chart of view/charts.py: valid by the schema, with the numbers that it was given, and always the same."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import altair
import pytest

from ner_experiments.view import charts
from ner_experiments.view.charts import ForestRow
from ner_experiments.view.vega import Chart, domain_of


def forest() -> Chart:
    about = {"group": "A paper (2020)", "verdict": "holds", "note": "rung 0"}
    return charts.forest(
        [
            ForestRow(**about, claim="Residual is better", published=0.8, mean=1.2, low=0.4, high=2.0),
            ForestRow(**about, claim="Four is better", published=None, mean=-0.3, low=-0.9, high=0.3),
            ForestRow(**about, claim="Not run", published=0.5, mean=None, low=None, high=None),
        ],
        "Claims",
        "points of F1",
    )


CHARTS: dict[Callable[[], Chart], set[float]] = {
    forest: {0.8, 1.2, 0.4, 2.0, -0.3, -0.9, 0.3, 0.5},
}
"""Each chart, and the numbers that it has to draw."""


def numbers(node: Any) -> Iterator[float]:
    """All numbers of the data sets of a specification."""
    if isinstance(node, dict):
        for row in node.get("data", {}).get("values", []) if isinstance(node.get("data"), dict) else []:
            yield from (value for value in row.values() if isinstance(value, int | float))
        for value in node.values():
            yield from numbers(value)
    if isinstance(node, list):
        for value in node:
            yield from numbers(value)


def test_no_chart_is_missing_here() -> None:
    functions = {
        name
        for name, it in vars(charts).items()
        if getattr(it, "__annotations__", {}).get("return") == "Chart"
    }
    assert functions == {make.__name__ for make in CHARTS}


@pytest.mark.parametrize("make", CHARTS, ids=lambda make: make.__name__)
def test_a_chart_is_valid_vega_lite_and_draws_all_its_numbers(make: Callable[[], Chart]) -> None:
    chart = make()
    altair.Chart.from_dict(chart.specification(), validate=True)
    drawn = [*numbers(list(chart.panels))]
    for number in CHARTS[make]:
        assert any(math.isclose(number, it, rel_tol=1e-3) for it in drawn), number


@pytest.mark.parametrize("make", CHARTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("width", [390, 830])
def test_a_picture_is_the_same_again_has_the_width_asked_for_and_no_variable_of_a_page(
    make: Callable[[], Chart], width: int
) -> None:
    svg = make().svg(width)
    assert svg == make().svg(width)
    assert "var(" not in svg
    assert 0.8 * width <= float(svg.partition('width="')[2].partition('"')[0]) <= 1.1 * width


def test_an_axis_has_room_for_intervals_up_to_three_times_the_range_of_the_values() -> None:
    low, high = domain_of([80, 90], [60, 91])
    assert (low, high) == pytest.approx((70 - 0.84, 91 + 0.84))
