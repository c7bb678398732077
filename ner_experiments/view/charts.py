"""Every chart of the suite: functions from plain values to the panels of a `Chart`."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ner_experiments.view.vega import (
    INK,
    LINE,
    LINE_HEIGHT,
    MUTED,
    PAPER,
    SERIES,
    Chart,
    Look,
    Spec,
    arrows,
    axis,
    between,
    channel,
    colors,
    domain_of,
    layer,
    looks,
    marker,
    number,
    rows_axis,
    shown,
    switches,
    text,
    with_params,
    zoom,
)

ROW, GROUP_GAP, SERIES_GAP = 26, 14, 11
"""Pixels of a row of one or two series; with more, of the gap between rows, and of each series."""
DODGED = 20
"""Most pixels from the first to the last of the series that stand side by side at one x."""
HEIGHT = 230
"""Pixels of a panel without rows."""
SPARSE: Spec = {"tickCount": {"expr": "ceil(width / 80)"}}
"""An x axis with a number each 80 pixels or so."""
LABEL_ROOM = 16
"""Pixels beside the points of a cloud, for the number of the last."""
LOG_RATIO = 16
"""Largest over smallest value from which an axis is logarithmic."""
VERDICTS = {
    **dict.fromkeys(("holds", "replicates", "smaller", "larger"), SERIES[0]),
    "opposite": SERIES[1],
    **dict.fromkeys(("equal", "no such difference"), SERIES[3]),
    "undecided": MUTED,
}
"""Color of each verdict; a verdict of other words is as gray as an undecided one."""
FEW = 10
"""Number of whole numbers up to which each has a tick."""
ROTATED = 40
"""Letters of all choices of an axis together, from which their names are slanted."""


class Value(NamedTuple):
    """A value in a row of a chart, with its interval if there is one. note: beside it, such as a number of seeds."""

    row: str
    value: float
    low: float | None = None
    high: float | None = None
    series: str = ""
    note: str = ""


class Point(NamedTuple):
    """A point of a series, with its interval if there is one. marked: whether it has a marker, if its series has."""

    x: float | str
    y: float
    series: str = ""
    low: float | None = None
    high: float | None = None
    marked: bool = True


class Spread(NamedTuple):
    """A labeled point with standard deviations in both directions; None for a single run."""

    label: str
    x: float
    x_sd: float | None
    y: float
    y_sd: float | None


def series_of(
    values: Sequence[Value] | Sequence[Point], look_of: Mapping[str, Look] | None
) -> dict[str, Look]:
    """The looks of the series that have values."""
    names = dict.fromkeys(value.series for value in values)
    return looks(names) if look_of is None else {name: it for name, it in look_of.items() if name in names}


def dots(
    values: Sequence[Value],
    unit: str,
    *,
    look_of: Mapping[str, Look] | None = None,
    domain: Sequence[float] = (),
    band: Sequence[float] = (),
    rule: float | None = None,
    scale: Spec | None = None,
    x_axis: Spec | None = None,
    apart: bool = True,
) -> Spec:
    """One line per row, the first on top, with a point for each value and a line for its interval.

    band, rule: values of the axis between which it is shaded, and where a dotted line is. scale, x_axis: settings of
    scale and axis, such as type and ticks. apart: whether the series of a row stand below each other.
    """
    look_of = series_of(values, look_of)
    data = [row_data(value) for value in values]
    ends = [end for value in values for end in (value.low, value.high) if end is not None]
    domain = domain or domain_of([value.value for value in values], ends)
    x = axis("x", unit, domain, scale=scale or {}) | {"axis": x_axis or SPARSE}
    stroke = colors(look_of)
    tooltip = [text("row", "row"), *row_tooltip(look_of), *value_tooltip("x", unit, bool(ends))]
    everywhere: Spec = {"y": {"value": 0}, "y2": {"value": "height"}, "yOffset": {"value": 0}}
    layers: list[Spec] = []
    if band:
        edges: Spec = {"x": {"datum": band[0], "type": "quantitative"}, "x2": {"datum": band[1]}}
        layers.append(layer("rect", edges | everywhere, color=LINE))
    if rule is not None:
        at: Spec = {"x": {"datum": rule, "type": "quantitative"}}
        layers.append(layer("rule", at | everywhere, color=MUTED, strokeDash=[2, 2]))
    drawn = {"stroke": stroke, "opacity": shown(look_of)}
    if ends:
        layers.append(intervals(between(x) | drawn))
        layers.append(arrows(data, domain, {"x": x} | drawn))
    if any(value.note for value in values):
        note = {"x": x, "text": text("note", ""), "opacity": shown(look_of)}
        layers.append(layer("text", note, align="left", dx=6, fontSize=10))
    layers.append(layer("point", {"x": x, "tooltip": tooltip} | marker(look_of)))
    return rows_panel(data, with_params(layers, switches(look_of)), look_of if apart else {})


def intervals(encoding: Spec, width: float = 1.8) -> Spec:
    """The layer of intervals, cut at the ends of the axis."""
    return layer("rule", encoding, strokeWidth=width, clip=True)


def bars(
    values: Sequence[Value], unit: str, *, look_of: Mapping[str, Look] | None = None, apart: bool = False
) -> Spec:
    """A bar from 0 for each value, with its interval, on an axis up to 100, or less if the values are small.

    apart: whether the bars of a row stand below each other.
    """
    look_of = series_of(values, look_of)
    data = [row_data(value) for value in values]
    most = max(value.value if value.high is None else value.high for value in values)
    x = axis("x", unit, (0, 100 if most > 50 else max(1.0, 1.05 * most))) | {"axis": SPARSE}
    color = colors(look_of)
    ends = any(value.low is not None for value in values)
    tooltip = [text("row", "row"), *row_tooltip(look_of), *value_tooltip("x", unit, ends)]
    opacity = shown(look_of, 0.55 if ends else 0.85)
    height: Spec = {} if apart else {"height": {"band": 0.7}}
    bar = {"x": x, "fill": color, "opacity": opacity, "tooltip": tooltip}
    layers = [layer("bar", bar, clip=True, **height)]
    if ends:
        layers.append(intervals(between(x) | {"stroke": color, "opacity": shown(look_of)}))
        layers.append(layer("point", {"x": x, "fill": color, "opacity": shown(look_of)}, strokeWidth=0))
    else:
        has_notes = all(value.note for value in values)
        label = {"x": x, "text": text("note", "") if has_notes else number("x", None, ".1f")}
        layers.append(layer("text", label | {"opacity": shown(look_of)}, align="left", dx=3, fontSize=10))
    return rows_panel(data, with_params(layers, switches(look_of)), look_of if apart else {})


def row_data(value: Value) -> Spec:
    row: Spec = {"row": value.row, "x": rounded(value.value), "series": value.series}
    if value.low is not None:
        row |= {"low": rounded(value.low), "high": rounded(value.high)}
    return row | {"note": value.note} if value.note else row


def rows_panel(data: Sequence[Spec], layers: Sequence[Spec], apart: Collection[str]) -> Spec:
    """Layers over an axis of rows. apart: the series that stand below each other in a row."""
    place: Spec = {"y": rows_axis(list(dict.fromkeys(row["row"] for row in data)), grid=True)}
    step = ROW
    if len(apart) > 1:
        place["yOffset"] = {"field": "series", "type": "nominal", "scale": {"domain": [*apart]}}
        step = ROW if len(apart) == 2 else GROUP_GAP + SERIES_GAP * len(apart)
    return {"data": {"values": data}, "height": {"step": step}, "encoding": place, "layer": [*layers]}


def row_tooltip(look_of: Mapping[str, Look]) -> list[Spec]:
    return [text("series", "series")] if len(look_of) > 1 else []


def value_tooltip(field: str, title: str, interval: bool) -> list[Spec]:
    ends = [number("low", "from"), number("high", "to")] if interval else []
    return [number(field, title), *ends]


def lines(
    points: Sequence[Point],
    x: str,
    y: str,
    *,
    look_of: Mapping[str, Look] | None = None,
    x_domain: Sequence[float] = (),
    y_domain: Sequence[float] = (),
    ticks: bool = False,
    log_x: bool = False,
    log_y: bool = False,
    line: Literal["linear", "step-after", ""] = "linear",
    band: bool = False,
    diagonal: bool = False,
    legend: str | None = None,
    dodge: bool = False,
    height: int = HEIGHT,
) -> Spec:
    """A line through the points of each series, with a gap where a value is not finite.

    x, y: labels of the axes; texts on the x axis are categories. ticks: the x axis has a tick at each value. line: how
    points are joined; empty: not at all. band: intervals are an area. diagonal: a dotted line on which y is x. legend:
    its title. dodge: what series have at the same x stands side by side.
    """
    look_of = series_of(points, look_of)
    data = [point_data(point) for point in points]
    ends = [end for point in points for end in (point.low, point.high) if end is not None]
    y_domain = y_domain or limits([point.y for point in points], ends, log=log_y)
    place = {
        "x": along(points, x, x_domain, ticks=ticks, log=log_x),
        "y": axis("y", y, y_domain, scale={"type": "log"} if log_y else {})
        | ({"axis": {"format": "~g", "tickCount": 5, "grid": False}} if log_y else {}),
    }
    stroke = colors(look_of, legend)
    dashes = channel({name: [*look.dash] for name, look in look_of.items()}, legend)
    tooltip = [
        *row_tooltip(look_of),
        {"field": "x", "type": place["x"]["type"], "title": x},
        *value_tooltip("y", y, bool(ends)),
    ]
    if log_y:
        tooltip[-1 - 2 * bool(ends)]["format"] = ".3g"
    layers: list[Spec] = []
    if diagonal:
        ruler = [{"x": end, "y": end} for end in (0, 100)]
        dotted = {"type": "line", "color": MUTED, "strokeDash": [1, 3], "strokeWidth": 1.5}
        layers.append({"data": {"values": ruler}, "mark": dotted})
    drawn = {"stroke": stroke, "opacity": shown(look_of)}
    if ends and band:
        layers.append(layer("area", between(place["y"], "y") | {"fill": stroke}, opacity=0.25, clip=True))
    elif ends:
        layers.append(intervals(between(place["y"], "y") | drawn, 1.6))
        layers.append(arrows(data, y_domain, drawn, upright=True))
    if line:
        layers.append(layer("line", drawn | {"strokeDash": dashes}, interpolate=line, clip=True))
    if not all(point.marked for point in points):
        layers.append(layer("point", {"tooltip": tooltip}, size=90, opacity=0, clip=True))
    some = {"transform": [{"filter": "datum.marked !== 0"}]}
    seen = {"tooltip": tooltip} | marker(look_of, legend)
    layers.append(some | layer("point", seen, clip=True, strokeWidth=1.6))
    if dodge and (last := len(look_of) - 1):
        step = min(SERIES_GAP, DODGED / last)
        if place["x"]["type"] != "nominal":  # between categories there is room
            place["x"]["scale"]["padding"] = DODGED / 2
        aside = json.dumps({name: step * (place - last / 2) for place, name in enumerate(look_of)})
        # not the channel xOffset, which an axis of numbers ignores
        layers = [
            it | {"mark": it["mark"] | {"xOffset": {"expr": f"{aside}[datum.series]"}}} for it in layers
        ]
    zoomed = zoom("x", "y") if place["x"]["type"] != "nominal" else zoom("y")
    layers = with_params(layers, [*switches(look_of), zoomed])
    return {"data": {"values": data}, "height": height, "encoding": place, "layer": layers}


def point_data(point: Point) -> Spec:
    x = point.x if isinstance(point.x, str) else rounded(point.x)
    row: Spec = {"x": x, "y": rounded(point.y), "series": point.series}
    if point.low is not None:
        row |= {"low": rounded(point.low), "high": rounded(point.high)}
    return row if point.marked else row | {"marked": 0}


def along(points: Sequence[Point], title: str, domain: Sequence[float], *, ticks: bool, log: bool) -> Spec:
    """The x axis of points: of numbers, or with the names of choices."""
    values = [point.x for point in points if not isinstance(point.x, str)]
    if len(values) < len(points):
        names = list(dict.fromkeys(str(point.x) for point in points))
        angle = -30 if sum(map(len, names)) > ROTATED else 0
        look: Spec = {"labelAngle": angle, "labelLimit": 120, "grid": False}
        return {"field": "x", "type": "nominal", "title": title, "scale": {"domain": names}, "axis": look}
    whole = all(value == int(value) for value in values)
    form = "~g" if log else "d" if whole else "~r"
    look = {"grid": False, "tickMinStep": 1 if whole else 0, "format": form}
    if ticks or (whole and not log and len({*values}) <= FEW):  # between 1 and 2 there would be another 2
        look |= {"values": sorted({*values}), "labelOverlap": "greedy"}
    elif log:
        look |= {"tickCount": 5, "labelOverlap": "greedy"}
    if not domain:
        domain = limits(values, log=log) if len({*values}) > 1 else [values[0] - 1, values[0] + 1]
    return axis("x", title, domain, scale={"type": "log"} if log else {}) | {"axis": look}


def limits(values: Sequence[float], ends: Sequence[float] = (), *, log: bool = False) -> list[float]:
    """Limits of a linear or a logarithmic axis."""
    if not log:
        return domain_of(values, ends)
    low, high = domain_of(
        [math.log10(value) for value in values], [math.log10(end) for end in ends if end > 0]
    )
    return [10**low, 10**high]


def is_wide(values: Collection[float]) -> bool:
    """Whether values need a logarithmic axis."""
    return bool(values) and min(values) > 0 and max(values) >= LOG_RATIO * min(values)


def cloud(points: Sequence[Spread], x: str, y: str) -> Spec:
    """A numbered point for each label, with standard deviations; the x axis is logarithmic if it is wide."""
    log = is_wide([point.x for point in points])
    look_of = looks(point.label for point in points)
    data = []
    for place, point in enumerate(points, start=1):
        row: Spec = {"series": point.label, "x": rounded(point.x), "y": rounded(point.y), "n": f"{place}"}
        if point.x_sd:
            row |= {
                "left": max(point.x - point.x_sd, point.x / 100 if log else -math.inf),
                "right": point.x + point.x_sd,
            }
        if point.y_sd:
            row |= {"low": rounded(point.y - point.y_sd), "high": rounded(point.y + point.y_sd)}
        data.append(row)
    # all deviations are within the axes: no arrow says that one leaves them
    x_domain = limits([row[key] for row in data for key in ("x", "left", "right") if key in row], log=log)
    y_domain = domain_of(row[key] for row in data for key in ("y", "low", "high") if key in row)
    scale = {"padding": LABEL_ROOM} | ({"type": "log"} if log else {})
    place_of = {
        "x": axis("x", x, x_domain, scale=scale)
        | {"axis": {"format": "~s", "tickCount": 4, "labelOverlap": "greedy", "grid": not log}},
        "y": axis("y", y, y_domain),
    }
    drawn = {"stroke": colors(look_of), "opacity": shown(look_of)}
    tooltip = [text("series", "row"), number("x", x, ",.0f"), number("y", y)]
    layers = [
        intervals(between(place_of["x"], "x", ("left", "right")) | drawn, 1.4),
        intervals(between(place_of["y"], "y") | drawn, 1.4),
        layer("text", {"text": text("n", ""), "opacity": shown(look_of)}, dx=10, dy=-9),
        layer("point", {"tooltip": tooltip} | marker(look_of)),
    ]
    layers = with_params(layers, [*switches(look_of), zoom("x", "y")])
    return {"data": {"values": data}, "height": HEIGHT, "encoding": place_of, "layer": layers}


def matrix(
    rows: Sequence[str],
    columns: Sequence[str],
    shares: Sequence[Sequence[float]],
    *,
    texts: Sequence[Sequence[str]] = (),
    title: str = "",
    x: str = "",
    y: str = "",
    framed: Sequence[tuple[int, int]] = (),
    cell: int = 40,
) -> Spec:
    """A square for each cell, as dark as its share from 0 to 1. framed: runs of rows and columns, start and end."""
    data = [
        {"x": column, "x2": column + 1, "y": row, "y2": row + 1, "share": rounded(share)}
        | ({"text": texts[row][column]} if texts else {})
        for row, line in enumerate(shares)
        for column, share in enumerate(line)
    ]
    inside = sorted({place for start, end in framed for place in range(start, end)})
    marked = {"test": f"indexof({inside}, floor(datum.value)) >= 0", "value": SERIES[1]}
    bold = {"condition": marked | {"value": "bold"}, "value": "normal"}

    def labeled(field: str, names: Sequence[str], label: str, **look: Any) -> Spec:
        look |= {
            "values": [place + 0.5 for place in range(len(names))],
            "labelColor": {"condition": marked, "value": INK},
        }
        look |= {
            "labelExpr": f"{json.dumps([*names])}[floor(datum.value)]",
            "labelFontWeight": bold,
            "labelOverlap": False,
        }
        domain = [len(names), 0] if field == "y" else [0, len(names)]
        return axis(field, label or None, domain) | {
            "axis": look | {"grid": False, "ticks": False, "domain": False}
        }

    place = {"x": labeled("x", columns, x, labelAngle=-90, labelAlign="right"), "y": labeled("y", rows, y)}
    square = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    shade = {
        "field": "share",
        "type": "quantitative",
        "scale": {"domain": [0, 1], "range": [0, 1]},
        "legend": None,
    }
    layers = [
        layer("rect", square | {"opacity": shade}, color=SERIES[0]),
        layer("rect", square, filled=False, stroke=LINE, strokeWidth=0.5),
    ]
    if texts:
        middle = [
            {"calculate": f"(datum.{name} + datum.{name}2) / 2", "as": f"c{name}"} for name in ("x", "y")
        ]
        center = {name: place[name] | {"field": f"c{name}"} for name in ("x", "y")}
        color = {"condition": {"test": "datum.share > 0.6", "value": PAPER}, "value": INK}
        written = layer("text", center | {"text": text("text", ""), "color": color})
        layers.append({"transform": middle} | written)
    if framed:
        frames = [{"x": start, "x2": end, "y": start, "y2": end} for start, end in framed]
        frame = layer("rect", square, filled=False, stroke=SERIES[1], strokeWidth=1.6)
        layers.append({"data": {"values": frames}} | frame)
    return {
        "title": title,
        "data": {"values": data},
        "width": cell * len(columns),
        "height": cell * len(rows),
        "encoding": place,
        "layer": layers,
    }


def rounded(value: float | None) -> float | None:
    """The value with six digits, so that a page is short; None if it is not finite."""
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """A claim in a forest plot; differences are in points.

    group: heading above its rows, such as the paper. published: the paper's difference, None if it prints none.
    mean, low, high: our difference and its interval, None without runs. verdict: a word of `VERDICTS`. note: what else
    is said below the verdict, such as "rung 0, registered".
    """

    group: str
    claim: str
    published: float | None
    mean: float | None
    low: float | None
    high: float | None
    verdict: str
    note: str = ""


def forest(rows: Sequence[ForestRow], title: str, unit: str) -> Chart:
    """One line per claim below the heading of its group: the paper's difference, ours with its interval, the verdict.

    Rows of a group stand together, in their order. The paper's difference is an open diamond, ours a point in the color
    of its verdict, which stands in words on the right. unit: label of the axis.
    """
    labels: list[str] = []
    ends: dict[str, str] = {}
    data: list[Spec] = []
    headings = list(dict.fromkeys(row.group for row in rows))
    for heading in headings:
        labels.append(heading)
        for row in (row for row in rows if row.group == heading):
            label = row.claim if row.claim not in ends else f"{row.claim} ({len(labels)})"
            labels.append(label)
            ends[label] = f"{row.verdict}\n{row.note}" if row.note else row.verdict
            verdict = row.verdict if row.verdict in VERDICTS else "undecided"
            data.append(
                {
                    "row": label,
                    "paper": row.published,
                    "x": row.mean,
                    "low": row.low,
                    "high": row.high,
                    "verdict": verdict,
                    "of": heading,
                    "says": row.verdict,
                }
            )
    centers = [row[key] for row in data for key in ("paper", "x") if row[key] is not None]
    domain = domain_of(
        [0.0, *centers], [row[key] for row in data for key in ("low", "high") if row[key] is not None]
    )
    x: Spec = {"type": "quantitative", "scale": {"domain": domain, "nice": False}, "title": unit}
    color = channel(VERDICTS) | {"field": "verdict", "legend": None}
    said = f"({json.dumps(ends)}[datum.label] || '')"
    shades = [
        {"test": f"substring({said}, 0, {len(word)}) === '{word}'", "value": shade}
        for word, shade in VERDICTS.items()
    ]
    bold = {"test": f"indexof({json.dumps(headings)}, datum.label) >= 0", "value": "bold"}
    left = rows_axis(labels, domain=False, labelFontWeight={"condition": bold, "value": "normal"})
    right = rows_axis(
        labels,
        domain=False,
        orient="right",
        labelExpr=f"split({said}, '\\n')",
        labelColor={"condition": shades, "value": INK},
    )
    within = {"y": left | {"axis": None}}
    ours, paper = x | {"field": "x"}, x | {"field": "paper"}
    zero = {"x": x | {"datum": 0}, "y": {"value": 0}, "y2": {"value": "height"}}
    diamond = {"filled": False, "shape": "diamond", "color": INK, "strokeWidth": 1.6}
    tooltip = [
        text("of", "paper"),
        text("row", "claim"),
        number("paper", "the paper", "+.2f"),
        number("x", "ours", "+.2f"),
        number("low", "from", "+.2f"),
        number("high", "to", "+.2f"),
        text("says", "verdict"),
    ]
    panel: Spec = {
        "title": {
            "text": "hollow diamond: the paper; filled circle: ours, with its 95 % interval",
            "frame": "bounds",
        },
        "data": {"values": data},
        "height": {"step": 2 * LINE_HEIGHT + 4},
        "encoding": {"y": left},
        "layer": [
            intervals(between(x) | {"color": color}, 2.5),
            layer("rule", zero, color=MUTED, strokeDash=[3, 3]),
            layer("point", within | {"x": ours, "color": color, "tooltip": tooltip}, size=80),
            layer("point", within | {"x": paper, "tooltip": tooltip}, **diamond),
            layer("point", {"y": right, "x": ours}, opacity=0),
        ],
        "resolve": {"axis": {"y": "independent"}},
    }
    description = "; ".join(
        f"{row.claim}: the paper {signed(row.published)}, ours {signed(row.mean)}, {row.verdict}"
        for row in rows
    )
    return Chart(title, description, (panel,))


def signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")
