"""Plots as SVG, drawn without Matplotlib: bars, points with intervals, and lines on linear axes.

A report has hundreds of them, and Matplotlib needs a twentieth of a second for each. Sizes are in pixels; colors are
the CSS variables of the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape
from matplotlib.ticker import MaxNLocator

from ner_experiments.tables.svg import LETTER_WIDTH, MARK_LETTERS, MARKERS, SERIES, VARIABLES, cut

TICK, CAP = 3.5, 3.0
"""Length of a tick, and half the length of an interval's end."""
SMALL, NORMAL = 11, 12
"""Sizes of letters: of numbers at ticks and legends, and of labels."""
CAPITAL_WIDTH = 8.0
"""Mean width of a capital letter at ticks; `LETTER_WIDTH` is that of other letters."""
LEGEND_LINE = 16.0
"""Height of a line of a legend."""
TOP, RIGHT, BOTTOM, Y_LABEL = 9.0, 14.0, 37.0, 21.0
"""Room around the axes: above and on the right, for the numbers and label below, and for the label on the left."""
TICK_ROOM = 22
"""Smallest mean distance of two ticks of a y axis."""
NICE = (1, 2, 2.5, 5, 10)
"""Distances of ticks, times a power of ten."""
INK, AXIS, GRID = "var(--ink)", "var(--muted)", "var(--line)"
COLORS = tuple(f"var({VARIABLES[color]})" for color in SERIES)
SHAPES = {
    "o": "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "s": "M-3-3h6v6h-6z",
    "^": "M0-3L3 3H-3z",
    "D": "M0-4.2L4.2 0L0 4.2L-4.2 0z",
    "v": "M0 3L3-3H-3z",
    "P": "M-1-3h2v2h2v2h-2v2h-2v-2h-2v-2h2z",
    "X": "M-3-1.5L-1.5-3L0-1.5L1.5-3L3-1.5L1.5 0L3 1.5L1.5 3L0 1.5L-1.5 3L-3 1.5L-1.5 0z",
}
"""Outlines of the markers around their center."""
DASHES = ("", "5.9 2.6", "10.2 2.6 1.6 2.6", "1.6 2.6", "8 1.6 1.6 1.6 1.6 1.6", "1.6 4.8")
"""Dash patterns of lines, by the number of their series."""
Range = tuple[float, float]


@dataclass(frozen=True)
class LegendEntry:
    """An entry of a legend: its mark, drawn around (0, 0), and its text."""

    mark: str
    text: str


class Picture:
    """Axes and texts of one plot."""

    def __init__(self, width: float, height: float):
        self.width, self.height = width, height
        self.panels: list[Panel] = []

    def panel(self, panel: Panel) -> Panel:
        self.panels.append(panel)
        return panel

    def svg(self, name: str, title: str, description: str) -> Markup:
        """The picture as an element of a page. `name` keeps its identifiers distinct from those of other pictures."""
        width, height = self.width, self.height
        pieces = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" class="plot"',
            f' style="--width: {width:.0f}px; aspect-ratio: {width:g} / {height:g}"',
            f' aria-labelledby="{name}-title {name}-desc">',
            f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>',
            *(panel.svg(f"{name}-axes-{number}") for number, panel in enumerate(self.panels)),
            "</svg>",
        ]
        return Markup("".join(pieces))


@dataclass
class Panel:
    """Linear axes between four sides, which pieces of SVG are added to.

    x, y: the values at the left and right, and at the bottom and top.
    """

    left: float
    right: float
    top: float
    bottom: float
    x: Range
    y: Range
    clipped: list[str] = field(default_factory=list)
    unclipped: list[str] = field(default_factory=list)

    def px(self, value: float) -> float:
        return self.left + (self.right - self.left) * (value - self.x[0]) / (self.x[1] - self.x[0])

    def py(self, value: float) -> float:
        return self.bottom + (self.top - self.bottom) * (value - self.y[0]) / (self.y[1] - self.y[0])

    def x_axis(
        self, label: str, steps: int, *, integer: bool = False, grid: bool = True, color: str = INK
    ) -> None:
        """Draw the axis with ticks, numbers and its label."""
        self.x_axis_at(label, ticks(*self.x, MaxNLocator(steps, integer=integer)), grid=grid, color=color)

    def x_axis_at(
        self, label: str, ticks: Sequence[tuple[float, str]], *, grid: bool = True, color: str = INK
    ) -> None:
        """Draw the axis with ticks at the given values, each with its text, which stays within the picture."""
        for value, text in ticks:
            x = self.px(value)
            center = min(x, self.right + RIGHT - text_width(text) / 2)
            if grid:
                self.clipped.append(line(x, self.bottom, x, self.top, GRID, 0.8))
            self.unclipped.append(line(x, self.bottom, x, self.bottom + TICK, AXIS, 0.8))
            self.text(center, self.bottom + 15.4, text, SMALL, "middle")
        self.unclipped.append(line(self.left, self.bottom, self.right, self.bottom, AXIS, 0.8))
        x, y = (self.left + self.right) / 2, self.bottom + 31
        self.text(x, y, label, NORMAL, "middle", fill="" if color == INK else f"; fill: {color}")

    def y_axis(self, label: str, ticks: Sequence[tuple[float, str]] | None = None) -> None:
        """Draw the axis with its label, and with the given ticks or, by default, ticks at round values."""
        for value, text in y_ticks(self.y, self.bottom - self.top) if ticks is None else ticks:
            y = self.py(value)
            self.clipped.append(line(self.left, y, self.right, y, GRID, 0.8))
            self.unclipped.append(line(self.left - TICK, y, self.left, y, AXIS, 0.8))
            self.text(self.left - 2 * TICK, y + 4, text, SMALL, "end")
        self.unclipped.append(line(self.left, self.top, self.left, self.bottom, AXIS, 0.8))
        x = self.left - y_axis_width(self.y, self.bottom - self.top) + NORMAL
        y = (self.top + self.bottom) / 2
        if label:
            self.text(x, y, label, NORMAL, "middle", turn=f' transform="rotate(-90 {x:g} {y:g})"')

    def rows(self, labels: Sequence[str]) -> None:
        """Draw an axis with the labels of rows at 0, 1, ... in place of numbers."""
        self.unclipped.append(line(self.left, self.top, self.left, self.bottom, AXIS, 0.8))
        for number, label in enumerate(labels):
            self.text(self.left - TICK, self.py(number) + 4, label, SMALL, "end")

    def row_lines(self, count: int) -> None:
        """Draw a line through the middle of each row."""
        for number in range(count):
            y = self.py(number)
            self.clipped.append(line(self.left, y, self.right, y, GRID, 0.8))

    def row_borders(self, count: int) -> None:
        for number in range(1, count):
            y = self.py(number - 0.5)
            self.clipped.append(line(self.left, y, self.right, y, GRID, 0.8))

    def text(
        self, x: float, y: float, text: str, size: int, anchor: str, *, fill: str = "", turn: str = ""
    ) -> None:
        style = f"font-size: {size}px; text-anchor: {anchor}{fill}"
        self.unclipped.append(f'<text x="{x:.2f}" y="{y:.2f}" style="{style}"{turn}>{escape(text)}</text>')

    def bar(self, row: float, value: float) -> None:
        """Draw a bar from the left side, with 62 % of the height of its row."""
        top, bottom = sorted((self.py(row - 0.31), self.py(row + 0.31)))
        self.clipped.append(
            f'<rect x="{self.left:.2f}" y="{top:.2f}" width="{self.px(value) - self.left:.2f}" '
            f'height="{bottom - top:.2f}" style="fill: {COLORS[0]}; opacity: 0.55"/>'
        )

    def interval(
        self, x: float, y: float, low: float, high: float, *, upright: bool, color: str = COLORS[0]
    ) -> None:
        """Draw the interval of a point, with a cap at each end that differs from the point.

        An end beyond the axis becomes an arrow at the edge.
        """
        value = y if upright else x
        ends = [(x, end) if upright else (end, y) for end in (min(low, value), max(high, value))]
        (x1, y1), (x2, y2) = [(self.px(a), self.py(b)) for a, b in ends]
        self.clipped.append(line(x1, y1, x2, y2, color, 1.4))
        across, along = (CAP, 0.0) if upright else (0.0, CAP)
        for end_x, end_y in [(x1, y1)] * (low < value) + [(x2, y2)] * (high > value):
            tip_x, tip_y = clamped(end_x, self.left, self.right), clamped(end_y, self.top, self.bottom)
            if math.isclose(tip_x, end_x) and math.isclose(tip_y, end_y):
                self.clipped.append(
                    line(end_x - across, end_y - along, end_x + across, end_y + along, color, 1.6)
                )
                continue
            back_x = tip_x - math.copysign(1.5 * along, end_x - tip_x)
            back_y = tip_y - math.copysign(1.5 * across, end_y - tip_y)
            for side in (-1, 1):
                wing_x, wing_y = back_x + side * across, back_y + side * along
                self.clipped.append(line(tip_x, tip_y, wing_x, wing_y, color, 1.6))

    def point(self, x: float, y: float, mark: str, *, clip: bool = True) -> None:
        """Draw a mark at a point; with `clip`, it is cut off at the four sides."""
        (self.clipped if clip else self.unclipped).append(moved(mark, self.px(x), self.py(y)))

    def curve(self, xs: Sequence[float], ys: Sequence[float], style: str) -> None:
        """Draw a line through the points, with a gap where a value is not finite."""
        path, pen = [], "M"
        for x, y in zip(xs, ys, strict=True):
            if not math.isfinite(y):
                pen = "M"
                continue
            path.append(f"{pen}{self.px(x):.2f} {self.py(y):.2f}")
            pen = "L"
        if path:
            self.clipped.append(f'<path d="{"".join(path)}" style="fill: none; {style}"/>')

    def band(self, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], color: str) -> None:
        """Fill the room between two lines."""
        line = [f"{self.px(x):.2f} {self.py(y):.2f}" for x, y in zip(xs, lows, strict=True)]
        back = [f"{self.px(x):.2f} {self.py(y):.2f}" for x, y in zip(xs, highs, strict=True)]
        path = "L".join([*line, *reversed(back)])
        self.clipped.append(f'<path d="M{path}Z" style="fill: {color}; opacity: 0.25"/>')

    def legend(
        self,
        entries: Sequence[LegendEntry],
        title: str = "",
        *,
        width: float | None = None,
        above: float = 0.0,
    ) -> None:
        """Draw the entries above the axes, divided into lines by `legend_lines`; a title stands before the first.

        width: of the legend, by default that of the axes. above: distance from the axes.
        """
        lines = legend_lines(entries, width or self.right - self.left, title)
        for number, of_line in enumerate(reversed(lines)):
            y = self.top - above - 4 - LEGEND_LINE * number
            for x, entry in of_line:
                if entry.mark:
                    self.unclipped.append(moved(entry.mark, self.left + x + 12, y - 4))
                self.text(self.left + x + (28 if entry.mark else 0), y, entry.text, SMALL, "start")

    def svg(self, name: str) -> str:
        frame = f'width="{self.right - self.left:.2f}" height="{self.bottom - self.top:.2f}"'
        clip = f'<clipPath id="{name}"><rect x="{self.left:.2f}" y="{self.top:.2f}" {frame}/></clipPath>'
        return f'{clip}<g clip-path="url(#{name})">{"".join(self.clipped)}</g>{"".join(self.unclipped)}'


def legend_lines(
    entries: Sequence[LegendEntry], width: float, title: str = ""
) -> list[list[tuple[float, LegendEntry]]]:
    """The entries of each line of a legend of that width, each with its x position; too long ones are cut."""
    max_letters = int(width / LETTER_WIDTH) - MARK_LETTERS
    lines: list[list[tuple[float, LegendEntry]]] = [[]]
    place = 0.0
    for entry in ([LegendEntry("", title)] if title else []) + [*entries]:
        cut_entry = LegendEntry(entry.mark, cut(entry.text, max_letters))
        needed = LETTER_WIDTH * len(cut_entry.text) + (42 if entry.mark else 14)
        if lines[-1] and place + needed > width:
            lines.append([])
            place = 0.0
        lines[-1].append((place, cut_entry))
        place += needed
    return lines


def legend_height(entries: Sequence[LegendEntry], width: float, title: str = "") -> float:
    return LEGEND_LINE * len(legend_lines(entries, width, title))


def marker(number: int, shape: str = "") -> str:
    """The marker of a series, as `svg.series_style` has it; the second seven are open."""
    turn, place = divmod(number, len(COLORS))
    return shaped(shape or MARKERS[place], COLORS[place], filled=not turn % 2)


def shaped(shape: str, color: str, *, filled: bool = True) -> str:
    """A marker of that shape and color."""
    style = f"fill: {color if filled else 'none'}; stroke: {color}; stroke-width: 1.6"
    return f'<path d="{SHAPES[shape]}" style="{style}"/>'


def clamped(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def moved(mark: str, x: float, y: float) -> str:
    return mark.replace("<path ", f'<path transform="translate({x:.2f} {y:.2f})" ')


def line_style(number: int) -> str:
    """Color and dashes of a line without markers."""
    dashes = DASHES[number % len(DASHES)]
    color = f"stroke: {COLORS[number % len(COLORS)]}; stroke-width: 1.6"
    return f"{color}; stroke-dasharray: {dashes}" if dashes else color


def sample(style: str) -> str:
    """A piece of a line, as the mark of a legend."""
    return f'<path d="M-12 0H12" style="fill: none; {style}"/>'


def line(x1: float, y1: float, x2: float, y2: float, color: str, width: float) -> str:
    style = f"stroke: {color}; stroke-width: {width:g}"
    return f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" style="{style}"/>'


def ticks(low: float, high: float, locator: MaxNLocator) -> list[tuple[float, str]]:
    """Round values on an axis, with as many decimals as distinguish them."""
    tolerance = 1e-9 * (high - low)
    values = [float(it) for it in locator.tick_values(low, high) if low - tolerance <= it <= high + tolerance]
    decimals = next(n for n in range(16) if all(abs(round(it, n) - it) <= tolerance for it in values))
    return [(value, f"{value + 0.0:.{decimals}f}".replace("-", "\N{MINUS SIGN}")) for value in values]


def y_ticks(limits: Range, height: float) -> list[tuple[float, str]]:
    return ticks(*limits, MaxNLocator(max(1, min(9, int(height / TICK_ROOM))), steps=NICE))


def y_axis_width(limits: Range, height: float) -> float:
    """Room for the numbers and the label of a y axis."""
    return Y_LABEL + 2 * TICK + LETTER_WIDTH * max(len(text) for _, text in y_ticks(limits, height))


def limits_of(values: Sequence[float]) -> Range:
    """Limits of an axis that hold the finite values with a margin of 5 %."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    margin = 0.05 * (high - low) or 0.05 * abs(low) or 0.05
    return low - margin, high + margin


def labels_width(labels: Sequence[str]) -> float:
    """Room for the longest label of `Panel.rows`."""
    return max(map(text_width, labels)) + 2 * TICK


def text_width(text: str) -> float:
    """Approximate width of a text: capital letters and some signs are wider."""
    return sum(CAPITAL_WIDTH if letter.isupper() or letter in "<>=" else LETTER_WIDTH for letter in text)
