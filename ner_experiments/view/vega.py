"""A chart as Vega-Lite panels, which the report draws in the browser and which become SVG and PNG elsewhere.

Specifications are plain dictionaries: Altair needs 30 ms for each, and a report has 1,500. Colors are the CSS variables
of the report's pages, so that a chart follows their theme; a file of its own has those of `COLORS`.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from io import BytesIO
from typing import Any

from ner_experiments.utils.files import json_digest
from ner_experiments.view.table import Grid

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
MIN_PANEL = 250
"""Smallest width of a panel beside another, in pixels."""
INDEPENDENT: Spec = {
    "resolve": {
        "scale": dict.fromkeys(
            ("color", "stroke", "fill", "shape", "opacity", "strokeDash", "yOffset"), "independent"
        )
    }
}
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

    title: in one line. description: what a screen reader says in place of the picture. columns: at most so many panels
    stand side by side. grid: its numbers as a table, for a page.
    """

    title: str
    description: str
    panels: tuple[Spec, ...]
    columns: int = 3
    grid: Grid | None = None

    def specification(self, width: int = 760, *, titled: bool = False) -> Spec:
        """One Vega-Lite specification for a picture of about that width, dark on white, that needs no style sheet.

        titled: with the title and the description above the panels.
        """
        columns = min(self.columns, len(self.panels))
        if "width" not in self.panels[0]:
            columns = max(1, min(columns, width // MIN_PANEL))
        panels = [fitted(still(panel), width // columns) for panel in self.panels]
        body: Spec = {"concat": panels, "columns": columns, "spacing": 16} | INDEPENDENT
        if len(panels) == 1:
            (body,) = panels
        if len(panels) == 1 and "width" not in self.panels[0]:
            body |= {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
        spec = {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "description": f"{self.title}. {self.description}",
            "config": CONFIG | {"background": PAPER},
            "padding": 10,
            **body,
        }
        if titled:
            letters = int(width / LETTER_WIDTH)
            title = {
                "text": self.title,
                "subtitle": textwrap.wrap(self.description, letters),
                "anchor": "start",
            }
            spec["title"] = title | {
                "fontSize": 15,
                "fontWeight": "bold",
                "subtitleColor": MUTED,
                "subtitleFontSize": 12,
            }
        return json.loads(re.sub(r"var\(--\w+\)", lambda match: COLORS[match[0]], json.dumps(spec)))

    def svg(self, width: int = 760, *, titled: bool = False) -> str:
        """The picture as a file."""
        import vl_convert

        svg = vl_convert.vegalite_to_svg(self.specification(width, titled=titled)) + "\n"
        clips: dict[str, str] = {}  # numbered on from the picture before, by vl-convert
        return re.sub(r"\bclip\d+", lambda match: clips.setdefault(match[0], f"clip{len(clips)}"), svg)

    def pdf(self, width: int = 760) -> bytes:
        """The picture as a file for LaTeX, without its title."""
        import vl_convert

        content = vl_convert.vegalite_to_pdf(self.specification(width))
        return bytes(content)

    def png(self, width: int = 760, *, titled: bool = True, scale: float = 2.0) -> bytes:
        """The picture as a file. scale: dots per pixel."""
        import vl_convert
        from PIL import Image

        content = vl_convert.vegalite_to_png(self.specification(width, titled=titled), scale=scale)
        file = BytesIO()
        Image.open(BytesIO(content)).convert("RGB").save(file, "png", optimize=True)  # a third of the size
        return file.getvalue()


@cache
def javascript() -> str:
    """The script that draws charts in a page: Vega, Vega-Lite and Vega-Embed, and the look that all charts share."""
    import vl_convert

    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return f"{library}\nwindow.chartConfig = {json.dumps(CONFIG)};\n"


def javascript_version() -> str:
    """A line that changes whenever `javascript` does."""
    return f"vl-convert {version('vl-convert-python')}, {json_digest(CONFIG)}"


def still(node: Any) -> Any:
    """The panel for a picture, in which nothing is switched or zoomed."""
    if isinstance(node, list):
        return [still(item) for item in node]
    if not isinstance(node, dict):
        return node
    condition = node.get("condition")
    if isinstance(condition, dict) and "param" in condition:
        return {"value": condition["value"]}
    return {key: still(value) for key, value in node.items() if key not in ("params", "tooltip")}


def fitted(panel: Spec, width: int) -> Spec:
    """The panel for a picture of that width: labels of rows in several lines, and as many legend entries as fit.

    `fitted` of report.js does the same for the room that a page has.
    """
    room = float(width)
    y = panel.get("encoding", {}).get("y", {})
    if y.get("type") == "ordinal":
        labels, letters = y["scale"]["domain"], int(LABEL_SHARE * width / LETTER_WIDTH)
        lines = max(len(textwrap.wrap(label, letters)) for label in labels)
        y["axis"]["labelExpr"] = wrapped("datum.label", letters)
        panel["height"] = len(labels) * max(panel["height"]["step"], LINE_HEIGHT * lines + 6)
        room -= LETTER_WIDTH * min(letters, max(map(len, labels)))
    for channel in legends(panel):
        longest = max(map(len, channel["scale"]["domain"]))
        channel["legend"]["columns"] = max(1, int(room / (LETTER_WIDTH * longest + 44)))
    return {"width": max(100, round(room) - 70)} | panel


def legends(node: Any) -> Iterator[Spec]:
    """The channels of a panel that have a legend."""
    if isinstance(node, list | dict):
        for item in node.values() if isinstance(node, dict) else node:
            yield from legends(item)
        if isinstance(node, dict) and node.get("legend"):
            yield node


def wrapped(label: str, letters: int) -> str:
    """Vega expression for a label in lines of that many letters."""
    return f"split(trim(replace({label}, regexp('(.{{1,{letters}}})( |$)', 'g'), '$1\\n')), '\\n')"


# Parts of panels


def layer(mark: str, encoding: Spec, **look: Any) -> Spec:
    """Marks of one kind, all with this look."""
    return {"mark": {"type": mark} | look, "encoding": encoding}


def between(encoding: Spec, field: str = "x", ends: tuple[str, str] = ("low", "high")) -> Spec:
    """Encoding of what stretches from one end to the other along an axis."""
    return {field: encoding | {"field": ends[0]}, f"{field}2": {"field": ends[1]}}


def rows_axis(labels: Sequence[str], **axis: Any) -> Spec:
    """The y axis of a panel with one line per label, the first on top."""
    look = {"title": None, "ticks": False, "labelPadding": 6, "grid": False}
    return {"field": "row", "type": "ordinal", "scale": {"domain": [*labels]}, "axis": look | axis}


@dataclass(frozen=True)
class Look:
    """How a series looks: its marker, filled or open, and its line, if it has one. No shape: no marker."""

    color: str
    shape: str = "circle"
    filled: bool = True
    dash: Sequence[float] = (1, 0)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A color and a marker for each series; no two are alike among the first 42, and no two lines."""
    return {
        name: Look(SERIES[n % len(SERIES)], SHAPES[n % len(SHAPES)], dash=DASHES[n % len(DASHES)])
        for n, name in enumerate(names)
    }


def channel(values: Mapping[str, Any], title: str | None = None) -> Spec:
    """Encoding of the series by one value each; a legend, which all channels share, only with several series."""
    scale = {"domain": [*values], "range": [*values.values()]}
    legend = {"title": title, "columns": 1} if len(values) > 1 else None
    return {"field": "series", "type": "nominal", "scale": scale, "legend": legend}


def colors(look_of: Mapping[str, Look], title: str | None = None) -> Spec:
    return channel({name: look.color for name, look in look_of.items()}, title)


def marker(look_of: Mapping[str, Look], title: str | None = None) -> Spec:
    """Encoding of a point by the color, shape and filling of its series."""
    return {
        "stroke": colors(look_of, title),
        "fill": channel({name: it.color if it.filled else PAPER for name, it in look_of.items()}, title),
        "shape": channel({name: look.shape for name, look in look_of.items()}, title),
        "opacity": shown(look_of),
    }


def switches(names: Iterable[str]) -> list[Spec]:
    """Parameter by which a click on a legend entry switches its series off or on; none for a single series."""
    on = [{"series": name} for name in names]
    if len(on) < 2:
        return []
    select = {"type": "point", "fields": ["series"], "toggle": "true"}
    return [{"name": "on", "select": select, "bind": "legend", "value": on}]


def with_params(layers: Sequence[Spec], params: Sequence[Spec]) -> list[Spec]:
    """The layers, of which the first that has the series has the parameters: its legend is the one that is drawn."""
    owner = next(n for n, layer in enumerate(layers) if {"stroke", "fill"} & {*layer.get("encoding", {})})
    return [layer | {"params": [*params]} if n == owner else layer for n, layer in enumerate(layers)]


def shown(names: Collection[str], opacity: float = 1.0) -> Spec:
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


def number(field: str, title: str | None, form: str = ".2f", **more: Any) -> Spec:
    """Encoding of a number, on an axis or in a tooltip."""
    return {"field": field, "type": "quantitative", "title": title, "format": form} | more


def text(field: str, title: str) -> Spec:
    """Encoding of a text in a tooltip."""
    return {"field": field, "type": "nominal", "title": title}


def axis(field: str, title: str | None, domain: Sequence[float], **more: Any) -> Spec:
    """Encoding of a number on an axis between two limits."""
    scale = {"domain": [*domain], "nice": False} | more.pop("scale", {})
    return {"field": field, "type": "quantitative", "title": title, "scale": scale} | more


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


def arrows(rows: Iterable[Spec], domain: Sequence[float], encoding: Spec, *, upright: bool = False) -> Spec:
    """Layer with an arrow at the edge for each interval that leaves the axis."""
    field, angles = ("y", (0, 180)) if upright else ("x", (90, 270))
    data = [
        {key: row[key] for key in ("row", "series", "x", "y") if key in row} | {field: edge, "angle": angle}
        for row in rows
        if row.get("low") is not None
        for edge, angle, out in (
            (domain[1], angles[0], row["high"] > domain[1]),
            (domain[0], angles[1], row["low"] < domain[0]),
        )
        if out
    ]
    encoding = encoding | {"angle": {"field": "angle", "type": "quantitative", "scale": None}}
    marks = layer("point", encoding, shape="triangle-up", size=20, filled=False, strokeWidth=3)
    return {"data": {"values": data}} | marks
