"""A diagram as SVG: legible on light and on dark pages, since each block brings its own ground."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from xml.sax.saxutils import escape

from diagram_blocks import Block
from diagram_layout import LINE, Node, arrange

COLOURS = {
    "input": ("#dff0f7", "#4f8ba6"),
    "ahead": ("#cfe2ff", "#3b76d6"),
    "back": ("#ffe0c2", "#d9822b"),
    "join": ("#e6e6e6", "#858585"),
    "sum": ("#d3f1d6", "#3f9a4f"),
    "dense": ("#e7dbfb", "#8a5cd0"),
    "head": ("#fff1b8", "#bd9a00"),
    "decoder": ("#ffd9df", "#cf4f69"),
}
OTHERS = ("#f3eefb", "#a58cd3")
INK, GREY = "#1b1b1b", "#8a8a8a"
"""Of letters, which stand on a light ground everywhere, and of arrows, which stand on the page."""
FONT = "font-family='system-ui, sans-serif' font-size='12.5'"
SMALLER = " font-size='10.5'"
HEAD = 6.0
"""The height of an arrow's."""


def svg(name: str, blocks: Sequence[Block]) -> str:
    """The diagram, with the blocks as data in its `metadata`."""
    layout = arrange(blocks)
    width, height = round(layout.width), round(layout.height)
    head = f"width='{width}' height='{height}' viewBox='0 0 {width} {height}' role='img' {FONT}"
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' {head}>",
        f"<title>{escape(name)}</title>",
        f"<metadata>{escape(json.dumps(data(blocks)))}</metadata>",
        *map(arrow, layout.arrows),
        *map(box, layout.nodes),
        "</svg>\n",
    ]
    return "\n".join(parts)


def data(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    return [{"kind": block.kind, "label": block.label, "reads": [*block.reads]} for block in blocks]


def box(node: Node) -> str:
    assert node.block
    fill, stroke = COLOURS.get(node.block.kind, OTHERS)
    left, top = node.x - node.width / 2, node.y - node.height / 2
    corner = node.height / 2 if node.block.kind == "sum" else 5
    lines = node.block.label.split("\n")
    first = node.y + 4.5 - LINE * (len(lines) - 1) / 2
    texts = [
        f"<text x='{node.x:.1f}' y='{first + LINE * number:.1f}' text-anchor='middle' fill='{INK}'"
        f"{SMALLER if number else ''}>{escape(line)}</text>"
        for number, line in enumerate(lines)
    ]
    return (
        f"<g class='{node.block.kind}'><rect x='{left:.1f}' y='{top:.1f}' width='{node.width:.1f}' "
        f"height='{node.height:.1f}' rx='{corner:.1f}' fill='{fill}' stroke='{stroke}' stroke-width='1.2'/>"
        f"{''.join(texts)}</g>"
    )


def arrow(way: Sequence[Node]) -> str:
    """Up from the block that is read: straight through the ranks that it passes, in curves between them."""
    path = ""
    for below, above in pairwise(way):
        (x, to_x), last = ports(below, above), above is way[-1]
        y, to_y = below.y - below.height / 2, above.y + above.height / 2
        path += f"{'L' if path else 'M'}{x:.1f} {y:.1f}" + curve(x, y, to_x, to_y + HEAD * last)
    return (
        f"<g class='arrow'><path d='{path}' fill='none' stroke='{GREY}' stroke-width='1.4'/>"
        f"<path d='M{to_x:.1f} {to_y:.1f}l-3.5 {HEAD:.0f}h7z' fill='{GREY}'/></g>"
    )


def ports(below: Node, above: Node) -> tuple[float, float]:
    """Where an arrow leaves and arrives: one above the other if the two are wide enough for that."""
    ends = [(node.x - reach(node), node.x + reach(node)) for node in (below, above)]
    left, right = max(end[0] for end in ends), min(end[1] for end in ends)
    if left <= right:
        middle = min((below, above), key=lambda node: node.width).x
        return (min(max(middle, left), right),) * 2
    return (right, left) if below.x < above.x else (left, right)


def reach(node: Node) -> float:
    return max(node.width / 2 - 12, 0) if node.block else 0


def curve(x: float, y: float, to_x: float, to_y: float) -> str:
    """Vertical at both ends."""
    if abs(x - to_x) < 0.05:
        return f"L{to_x:.1f} {to_y:.1f}"
    middle = (y + to_y) / 2
    return f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
