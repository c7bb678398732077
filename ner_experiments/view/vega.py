"""A chart as Vega-Lite panels, which the report draws in the browser and which become SVG and PNG elsewhere.

Specifications are plain dictionaries: Altair needs 30 ms for each, and a report has 1,500. Colors are the CSS variables
of the report's pages, so that a chart follows their theme; a file of its own has those of `COLORS`.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Spec = dict[str, Any]
INK, MUTED, LINE, PAPER = "var(--ink)", "var(--muted)", "var(--line)", "var(--paper)"
SERIES = ("var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)", INK)
"""Okabe & Ito (2008), without the yellow, which is too faint on white."""
COLORS = dict(
    zip(
        (*SERIES, MUTED, LINE, PAPER),
        ("#0072b2", "#d55e00", "#009e73", "#b8578f", "#c98a00", "#3a9ad0", "#16191f", "#585f6c", "#dfe2e8", "#ffffff"),
        strict=True,
    )
)  # fmt: skip
"""The values that report.css has for light pages."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
DASHES = ([1, 0], [6, 3], [10, 3, 2, 3], [2, 3], [8, 2, 2, 2], [2, 5])
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""The first is bundled with vl-convert, so that a picture is the same on every machine."""
LETTER_WIDTH, LINE_HEIGHT = 6.4, 15
"""Mean width of a letter and height of a line of a label, in pixels."""
LABEL_SHARE = 0.4
"""Largest share of a panel's width that the labels of its rows have."""
CONFIG: Spec = {
    "font": FONT,
    "aria": False,
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "domainColor": MUTED,
        "tickColor": MUTED,
        "gridColor": LINE,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLineHeight": LINE_HEIGHT,
        "labelLimit": 400,
    },
    "legend": {
        "orient": "top",
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 400,
        "symbolLimit": 0,
    },
    "title": {"color": INK, "fontSize": 12, "fontWeight": "normal", "anchor": "start"},
    "text": {"color": INK, "fontSize": 11},
    "point": {"opacity": 1, "filled": True, "size": 60},
}


@dataclass(frozen=True)
class Chart:
    """Vega-Lite panels that stand side by side, or below each other where there is no room.

    title: in one line. description: what a screen reader says in place of the picture.
    """

    title: str
    description: str
    panels: tuple[Spec, ...]

    def specification(self, width: int = 760) -> Spec:
        """One Vega-Lite specification, dark on white, that needs no style sheet.

        width: of the picture in pixels, about; panels for which it has no room stand below each other.
        """
        side_by_side = width >= 300 * len(self.panels)
        each = width // len(self.panels) if side_by_side else width
        panels = [fitted(panel, each) for panel in self.panels]
        body = {"hconcat" if side_by_side else "vconcat": panels}
        if len(panels) == 1:
            body = panels[0] | {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
        spec = {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "description": f"{self.title}. {self.description}",
            "config": CONFIG | {"background": PAPER},
            "padding": 10,
            **body,
        }
        text = re.sub(r"var\(--\w+\)", lambda match: COLORS[match[0]], json.dumps(spec))
        return json.loads(text)

    def svg(self, width: int = 760) -> str:
        """The picture as a file."""
        import vl_convert

        svg = vl_convert.vegalite_to_svg(self.specification(width)) + "\n"
        clips: dict[str, str] = {}  # numbered on from the picture before, by vl-convert
        return re.sub(r"\bclip\d+", lambda match: clips.setdefault(match[0], f"clip{len(clips)}"), svg)

    def png(self, width: int = 760, scale: float = 2.0) -> bytes:
        """The picture as a file. scale: dots per pixel."""
        import vl_convert

        return vl_convert.vegalite_to_png(self.specification(width), scale=scale)


def javascript() -> str:
    """The script that draws charts in a page: Vega, Vega-Lite and Vega-Embed, and the look that all charts share."""
    import vl_convert

    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return f"{library}\nwindow.chartConfig = {json.dumps(CONFIG)};\n"


def fitted(panel: Spec, width: int) -> Spec:
    """The panel for a picture of that width: labels of rows in several lines, and as many legend entries as fit.

    `fitted` of report.js does the same for the room that a page has.
    """
    panel = json.loads(json.dumps(panel))
    encoding = panel.get("encoding", {})
    y, legend = encoding.get("y", {}), encoding.get("color", {}).get("legend") or {}
    room = float(width)
    if y.get("type") == "ordinal":
        labels, letters = y["scale"]["domain"], int(LABEL_SHARE * width / LETTER_WIDTH)
        lines = max(len(textwrap.wrap(label, letters)) for label in labels)
        y["axis"]["labelExpr"] = wrapped("datum.label", letters)
        panel["height"]["step"] = max(panel["height"]["step"], LINE_HEIGHT * lines + 6)
        room -= LETTER_WIDTH * min(letters, max(map(len, labels)))
    if "columns" in legend:
        longest = max(map(len, encoding["color"]["scale"]["domain"]))
        legend["columns"] = max(1, int(room / (LETTER_WIDTH * longest + 40)))
    return {"width": max(100, round(room) - 60)} | panel


def wrapped(label: str, letters: int) -> str:
    """Vega expression for a label in lines of that many letters."""
    return f"split(trim(replace({label}, regexp('(.{{1,{letters}}})( |$)', 'g'), '$1\\n')), '\\n')"


# Parts of panels


def rows_axis(labels: Sequence[str], **axis: Any) -> Spec:
    """The y axis of a panel with one line per label, the first on top."""
    look = {"title": None, "ticks": False, "labelPadding": 6, "grid": False}
    return {"field": "row", "type": "ordinal", "scale": {"domain": [*labels]}, "axis": look | axis}


def series_color(
    names: Sequence[str], colors: Sequence[str] = (), title: str | None = None, field: str = "series"
) -> Spec:
    """The color of each series, with a legend if there are several."""
    colors = colors or [SERIES[number % len(SERIES)] for number in range(len(names))]
    legend = {"title": title, "columns": 1} if len(names) > 1 else None
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": [*names], "range": [*colors]},
        "legend": legend,
    }


def series_shape(names: Sequence[str], shapes: Sequence[str] = (), title: str | None = None) -> Spec:
    """The marker of each series; its legend is that of the color."""
    shapes = shapes or [SHAPES[number % len(SHAPES)] for number in range(len(names))]
    color = series_color(names, shapes, title)
    return color | {"legend": color["legend"] and {"title": title}}


def switches(names: Sequence[str], field: str = "series") -> list[Spec]:
    """Parameter by which a click on a legend entry switches its series off or on; none for a single series."""
    if len(names) < 2:
        return []
    select = {"type": "point", "fields": [field], "toggle": "true"}
    return [{"name": "on", "select": select, "bind": "legend", "value": [{field: name} for name in names]}]


def shown(names: Sequence[str], opacity: float = 1.0) -> Spec:
    """Opacity of what `switches` leaves on."""
    if len(names) < 2:
        return {"value": opacity}
    return {"condition": {"param": "on", "value": opacity}, "value": 0}


def zoom(*channels: str) -> Spec:
    """Parameter by which Ctrl and the wheel, or a pinch, zooms; a mouse drags; a double click undoes both."""
    mouse = "[pointerdown[event.pointerType === 'mouse'], window:pointerup] > window:pointermove!"
    wheel = "wheel![event.ctrlKey || event.metaKey]"
    select = {"type": "interval", "encodings": [*channels], "zoom": wheel, "translate": mouse}
    return {"name": "zoom", "select": select, "bind": "scales"}


def hover(**titles: str) -> list[Spec]:
    """Tooltip with these fields and their titles; numbers with two decimals are texts of the data."""
    return [{"field": field, "title": title} for field, title in titles.items()]


def domain_of(values: Iterable[float], ends: Iterable[float] = ()) -> list[float]:
    """Limits of an axis with all values, and with the ends of intervals as far as these leave room for the values.

    Intervals of two seeds can be ten times as long as the scores differ; they extend the axis at most to three times
    the range of the values.
    """
    values = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(values), max(values)
    span = high - low
    inner = [end for end in ends if math.isfinite(end)]
    if span:
        inner = [min(max(end, low - span), high + span) for end in inner]
    low, high = min([low, *inner]), max([high, *inner])
    margin = 0.04 * (high - low) or 0.05 * abs(low) or 0.05
    return [low - margin, high + margin]


def beyond(rows: Iterable[Mapping[str, Any]], domain: Sequence[float], field: str) -> list[Spec]:
    """Data of the arrows at the edge, for intervals that leave the axis. `field` is that of their position."""
    return [
        {**{name: row[name] for name in ("row", "series") if name in row}, field: edge, "side": side}
        for row in rows
        for side, key, edge in (("low", "low", domain[0]), ("high", "high", domain[1]))
        if row.get(key) is not None and (row[key] < domain[0] if side == "low" else row[key] > domain[1])
    ]
