"""Places of what the report's own plots draw, computed here by hand, and ticks against Matplotlib's."""

import math
import re
from xml.etree import ElementTree as Tree

import pytest
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ner_experiments.report.run_plots import Bar, bar_plot, points
from ner_experiments.report.svg_charts import (
    RIGHT,
    SHAPES,
    LegendEntry,
    Panel,
    Picture,
    legend_lines,
    limits_of,
    marker,
    text_width,
    ticks,
)
from ner_experiments.tables.render import Grid
from ner_experiments.tables.svg import MARKERS, NUM_STYLES

SVG = "{http://www.w3.org/2000/svg}"


def panel() -> Panel:
    """100 pixels for 10 units to the right, and for 50 units upwards."""
    return Panel(20, 120, 5, 105, x=(0, 10), y=(-25, 25))


def drawn(of: Panel) -> Tree.Element:
    picture = Picture(130, 130)
    picture.panel(of)
    return Tree.fromstring(picture.svg("name", "a <title>", "what it shows"))


def lines(of: Panel) -> list[tuple[float, ...]]:
    nodes = drawn(of).iter(f"{SVG}line")
    return [tuple(float(node.attrib[key]) for key in ("x1", "y1", "x2", "y2")) for node in nodes]


def test_values_are_placed_in_proportion_and_upwards() -> None:
    assert [panel().px(value) for value in (0, 5, 10)] == [20, 70, 120]
    assert [panel().py(value) for value in (-25, 0, 25)] == [105, 55, 5]


def test_the_text_of_a_tick_stays_within_the_picture() -> None:
    one = panel()
    one.x_axis_at("", [(5, "0.012"), (10, "10"), (10, "0.024")])
    places = {node.text: float(node.attrib["x"]) for node in drawn(one).iter(f"{SVG}text") if node.text}
    end = one.right + RIGHT - text_width("0.024") / 2
    assert places == {"0.012": 70, "10": 120, "0.024": pytest.approx(end)}
    assert end < one.right


def test_an_interval_has_an_end_on_each_side_that_has_a_length() -> None:
    both, right = panel(), panel()
    both.interval(5, 0, 4, 7, upright=False)
    assert lines(both) == [(60, 55, 90, 55), (60, 52, 60, 58), (90, 52, 90, 58)]
    right.interval(5, 0, 5, 7, upright=False)
    assert lines(right) == [(70, 55, 90, 55), (90, 52, 90, 58)]
    upright = panel()
    upright.interval(5, 0, -25, 25, upright=True)
    assert lines(upright) == [(70, 105, 70, 5), (67, 105, 73, 105), (67, 5, 73, 5)]


def test_an_interval_that_goes_beyond_the_axis_ends_in_an_arrow_at_its_edge() -> None:
    right, up = panel(), panel()
    right.interval(5, 0, 4, 12, upright=False)
    assert lines(right) == [(60, 55, 140, 55), (60, 52, 60, 58), (120, 55, 115.5, 52), (120, 55, 115.5, 58)]
    up.interval(5, 0, 0, 50, upright=True)
    assert lines(up) == [(70, 55, 70, -45), (70, 5, 67, 9.5), (70, 5, 73, 9.5)]


def test_a_bar_starts_at_the_left_side_and_is_as_long_as_its_value() -> None:
    of = Panel(20, 120, 0, 100, x=(0, 10), y=(1.5, -0.5))
    of.bar(1, 7)
    bar = [node.attrib for node in drawn(of).iter(f"{SVG}rect")][1]
    assert [float(bar[key]) for key in ("x", "y", "width", "height")] == [20, 59.5, 70, 31]


def test_a_curve_has_a_gap_where_a_value_is_not_finite() -> None:
    of = panel()
    of.curve([0, 1, 2, 3, 4], [0, 0, math.nan, 0, 25], "stroke: red")
    (path,) = [node.get("d") for node in drawn(of).iter(f"{SVG}path")]
    assert path == "M20.00 55.00L30.00 55.00M50.00 55.00L60.00 5.00"


def test_a_text_with_markup_is_shown_as_it_is() -> None:
    of = panel()
    of.rows(["<b>"])
    assert [node.text for node in drawn(of).iter(f"{SVG}text")] == ["<b>"]
    assert next(drawn(of).iter(f"{SVG}title")).text == "a <title>"


@pytest.mark.parametrize(
    "limits", [(0, 100), (0, 102), (-0.05, 1.05), (83.21, 83.29), (-3, 2), (0, 1e-3), (1e5, 3e5)], ids=str
)
def test_ticks_are_those_of_matplotlib_with_distinct_labels(limits: tuple[float, float]) -> None:
    axes = Figure().subplots()
    axes.set_xlim(*limits)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    expected = [float(it) for it in axes.get_xticks() if limits[0] - 1e-12 <= it <= limits[1] + 1e-12]
    found = ticks(*limits, MaxNLocator(5))
    assert [value for value, _ in found] == pytest.approx(expected)
    texts = [text for _, text in found]
    assert len(set(texts)) == len(texts)
    read = [float(text.replace("\N{MINUS SIGN}", "-")) for text in texts]
    assert read == pytest.approx(expected, abs=1e-9 * (limits[1] - limits[0]))


def test_limits_hold_all_finite_values_with_a_margin_and_are_never_equal() -> None:
    assert limits_of([1, 3, math.nan, math.inf]) == pytest.approx((0.9, 3.1))
    for values in ([], [0.0], [5.0, 5.0], [math.nan]):
        low, high = limits_of(values)
        assert low < high


def test_each_series_has_a_marker_of_its_own() -> None:
    assert set(SHAPES) == set(MARKERS)
    assert len({marker(number) for number in range(NUM_STYLES)}) == NUM_STYLES


def test_a_legend_breaks_before_an_entry_that_does_not_fit_and_cuts_one_that_never_does() -> None:
    entries = [LegendEntry("<path />", text) for text in ("short", "short too", "l" * 99)]
    found = legend_lines(entries, 200, "title")
    assert [[entry.text for _, entry in of_line] for of_line in found] == [
        ["title", "short"],
        ["short too"],
        ["l" * 23 + "…"],
    ]
    assert [of_line[0][0] for of_line in found] == [0, 0, 0]


def test_a_bar_without_an_interval_takes_those_of_the_others_away() -> None:
    """An interval of some bars alone would look as if the others had none because they are exact."""
    grid = Grid((), [])
    whole = bar_plot([Bar("a", 5, 4, 6), Bar("b", 5, 4, 6)], "name", "F1", "title", grid)
    partly = bar_plot([Bar("a", 5, 4, 6), Bar("b", 5, None, None)], "name", "F1", "title", grid)
    assert whole.svg.count("stroke-width: 1.4") == 2
    assert partly.svg.count("stroke-width: 1.4") == 0


def test_identifiers_of_two_pictures_on_a_page_differ() -> None:
    bars = {"row": [Bar("PER", 80, 79, 81)]}
    ids = [
        re.findall(r' id="([^"]+)"', str(points(bars, name, "F1", "title", Grid((), [])).svg))
        for name in "ab"
    ]
    assert len(ids[0]) == 3
    assert not set(ids[0]) & set(ids[1])
