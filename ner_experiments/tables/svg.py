"""Matplotlib figures as SVG in a page: text that can be selected, and colors that follow the page's theme."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as Tree

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from ner_experiments.tables.render import Grid

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe & Ito (2008), without the yellow, which is too faint on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
NUM_STYLES = 2 * len(SERIES)
"""The number of distinct series styles."""
INK, MUTED, FAINT = "#000000", "#696969", "#ebebeb"
VARIABLES = {color: f"--s{number}" for number, color in enumerate(SERIES[:-1], start=1)}
VARIABLES |= {INK: "--ink", MUTED: "--muted", "#808080": "--muted", FAINT: "--line", "#ffffff": "--paper"}
"""The page's CSS variable for each color; light and dark pages have different values."""
DOTS_PER_INCH = 72
"""Resolution of every SVG that Matplotlib writes."""
ROW_HEIGHT, LETTER_WIDTH = 24, 6.6
"""Pixels of a row, and of a letter of its label."""
MARK_LETTERS = 6
"""The width of a legend entry's mark and the room around it, in letters."""
COLOR = re.compile("|".join(VARIABLES))
REFERENCE = re.compile(r"#([A-Za-z_][\w.-]*)")
HASH = re.compile(r"[0-9a-f]{10}$")
"""The end of an identifier that Matplotlib makes from coordinates, whose last digits differ between processors."""
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "lines.linewidth": 1.6,
    "lines.markersize": 6,
    "lines.markeredgewidth": 1.6,
    "text.parse_math": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


@dataclass(frozen=True)
class Plot:
    """A plot as a page shows it: the picture, a title in one line, and its numbers as a table."""

    svg: Markup
    title: str
    grid: Grid


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """A figure of that many pixels, with text as large as the page's."""
    with warnings.catch_warnings(), matplotlib.rc_context(STYLE):
        warnings.filterwarnings("ignore", "Glyph")  # the browser has other fonts than the layout
        yield Figure(figsize=(width / DOTS_PER_INCH, height / DOTS_PER_INCH), layout="constrained")


def inline(figure: Figure, name: str, title: str, description: str) -> Markup:
    """The figure as an element of a page. `name` keeps its identifiers distinct from those of other figures."""
    file = io.BytesIO()
    with warnings.catch_warnings(), matplotlib.rc_context(STYLE):
        warnings.filterwarnings("ignore", "Glyph")  # the browser has other fonts than the layout
        lay_out(figure)
        no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", metadata=no_metadata, transparent=True)
    root = Tree.fromstring(file.getvalue())
    adapt(root, name)
    describe(root, name, title, description)
    Tree.register_namespace("", SVG[1:-1])
    return Markup(Tree.tostring(root, encoding="unicode"))


def lay_out(figure: Figure) -> None:
    """Place the axes as `savefig` does, which would draw everything once more to do so."""
    engine = figure.get_layout_engine()
    if engine is not None:
        FigureCanvasSVG(figure)
        figure.dpi = DOTS_PER_INCH
        engine.execute(figure)
        figure.set_layout_engine("none")


def adapt(root: Tree.Element, name: str) -> None:
    """Make identifiers unique and reproducible, use the page's colors and font, and remove styles of the whole page."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("}style", "}metadata")):
                parent.remove(child)
    hashed: dict[str, int] = {}

    def renamed(identifier: str) -> str:
        if HASH.search(identifier):
            number = hashed.setdefault(identifier, len(hashed) + 1)
            identifier = HASH.sub(str(number), identifier)
        return f"{name}-{identifier}"

    for node in root.iter():
        if "id" in node.attrib:
            node.set("id", renamed(node.attrib["id"]))
        for key in ("clip-path", LINK):
            if key in node.attrib:
                value = REFERENCE.sub(lambda match: f"#{renamed(match[1])}", node.attrib.pop(key))
                node.set("href" if key == LINK else key, value)
        if style := node.get("style"):
            node.set("style", themed(style))


def themed(style: str) -> str:
    """The style with colors as CSS variables, and of the font only its size and weight."""
    style = re.sub(r"font: ((?:\d+ )?)([\d.]+px)[^;]*", r"font-size: \2; font-weight: \1", style)
    style = style.replace("font-weight: ;", "").removesuffix("font-weight: ")
    return COLOR.sub(lambda match: f"var({VARIABLES[match.group()]})", style)


def describe(root: Tree.Element, name: str, title: str, description: str) -> None:
    """Add the title and description that a screen reader reads in place of the picture's letters."""
    _, _, width, height = root.get("viewBox", "").split()
    root.attrib.pop("width"), root.attrib.pop("height")
    root.set("role", "img")
    root.set("class", "plot")
    root.set("style", f"--width: {float(width):.0f}px; aspect-ratio: {width} / {height}")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        node = Tree.Element(f"{SVG}{tag}", {"id": f"{name}-{tag}"})
        node.text = text
        root.insert(position, node)


def standalone(plot: Plot) -> str:
    """The plot as a file of its own, dark on white, for pages without the report's style."""
    colors = {name: color for color, name in reversed(VARIABLES.items())}
    root = Tree.fromstring(re.sub(r"var\((--\w+)\)", lambda match: colors[match[1]], str(plot.svg)))
    _, _, width, height = root.get("viewBox", "").split()
    root.attrib.pop("class"), root.attrib.pop("style")
    root.attrib |= {"width": width, "height": height, "font-family": "sans-serif"}
    root.insert(2, Tree.Element(f"{SVG}rect", {"width": "100%", "height": "100%", "fill": "#ffffff"}))
    Tree.register_namespace("", SVG[1:-1])
    return Tree.tostring(root, encoding="unicode") + "\n"


def series_style(number: int) -> dict[str, Any]:
    """Color and marker of a series; the second seven have open markers."""
    turn, place = divmod(number, len(SERIES))
    face = "none" if turn % 2 else SERIES[place]
    return {"color": SERIES[place], "marker": MARKERS[place], "markerfacecolor": face}


def legends_above(figure: Figure) -> None:
    """Draw legends above the axes, where they hide no point; the figure grows by their height.

    Call it last: the number of columns depends on the width that the layout gives the axes.
    """
    figure.draw_without_rendering()
    heights = [legend_above(axes, axes.get_window_extent().width) for axes in figure.axes]
    figure.set_figheight(figure.get_figheight() + max(heights) / figure.dpi)


def legend_above(axes: Axes, width: float) -> float:
    """Draw a legend of as few lines as fit `width`; returns its height. Both are in the figure's dots."""
    handles, labels = axes.get_legend_handles_labels()
    max_letters = int(width * DOTS_PER_INCH / axes.figure.dpi / LETTER_WIDTH) - MARK_LETTERS
    labels = [cut(label, max_letters) for label in labels]
    height = 0.0
    for lines in range(1, len(labels) + 1):
        legend = axes.legend(
            handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=-(-len(labels) // lines),
            borderaxespad=0.2, handletextpad=0.3,
        )  # fmt: skip
        extent = legend.get_window_extent()
        height = extent.height
        if extent.width <= width:
            break
    return height


def label_rows(axes: Axes, labels: Sequence[str], max_letters: int) -> None:
    """Label the lines of a plot, the first on top; long labels are cut."""
    axes.set_yticks(range(len(labels)), [cut(text, max_letters) for text in labels])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def label_width(labels: Sequence[str], max_letters: int) -> float:
    """The width of the longest label that `label_rows` draws, in pixels."""
    return LETTER_WIDTH * min(max_letters, max(map(len, labels)))


def cut(text: str, max_letters: int) -> str:
    return text if len(text) <= max_letters else f"{text[: max_letters - 1]}…"
