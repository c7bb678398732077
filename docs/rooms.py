"""Draws docs/map.svg, the rooms of the package and which imports which, by Graphviz (dot).

Rooms and layers are those of the contract in pyproject.toml, their contents those of the table in docs/map.md, and
the arrows are the imports that the code has. An import that others imply is not drawn: if a imports b, and b imports c,
the arrow from a to c is left out.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from html import escape, unescape
from pathlib import Path
from textwrap import fill

import grimp

ROOT = Path(__file__).parent.parent
PACKAGE = "ner_experiments"
PICTURE = Path(__file__).with_name("map.svg")
LEFT_OUT = ("__main__",)
"""A line that calls `main`."""
BY_NAME = ("main", "commands")
"""`main` imports a command's file by its name, when the command is called."""
Edges = set[tuple[str, str]]


def main() -> None:
    svg = subprocess.run(["dot", "-Tsvg"], input=source(), capture_output=True, text=True, check=True).stdout
    PICTURE.write_text(svg, encoding="utf-8")


def complaints() -> list[str]:
    """Names that docs/map.svg and docs/map.md show but the code lacks, or the reverse; empty if they are up to date."""
    titles = re.findall(r"<title>(.*?)</title>", PICTURE.read_text(encoding="utf-8"))
    shown = {tuple(unescape(title).split("->")) for title in titles if "&gt;" in title}
    in_code = drawn(imports())
    lines = [f"{PICTURE}: has the arrow {a} -> {b}; run `make diagrams`" for a, b in sorted(shown - in_code)]
    lines += [
        f"{PICTURE}: lacks the arrow {a} -> {b}; run `make diagrams`" for a, b in sorted(in_code - shown)
    ]
    all_rooms = [room for layer in layers() for room in layer]
    lines += [f"{PICTURE}: lacks {room}; run `make diagrams`" for room in all_rooms if room not in titles]
    page = PICTURE.with_suffix(".md")
    for name in re.findall(r"`([\w/]+(?:\.py|/))`", page.read_text(encoding="utf-8")):
        if not any((folder / name).exists() for folder in (ROOT, ROOT / PACKAGE)):
            lines.append(f"{page}: names {name}, which does not exist")
    return lines


def layers() -> list[list[str]]:
    """The rooms of each layer, from the top."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [it for it in project["tool"]["importlinter"]["contracts"] if it["type"] == "layers"]
    found = [layer.split(" | ") for layer in contract["layers"]]
    return [layer for layer in found if layer[0] not in LEFT_OUT]


def imports() -> Edges:
    """The rooms that import each other, also inside functions, but not for types alone."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True)
    rooms = [room for layer in layers() for room in layer]
    found = {BY_NAME}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            pair = (room_of(module), room_of(imported))
            if pair[0] != pair[1] and {*pair} <= {*rooms}:
                found.add(pair)
    return found


def room_of(module: str) -> str:
    return module.removeprefix(PACKAGE).removeprefix(".").partition(".")[0]


def drawn(edges: Edges) -> Edges:
    """The edges that do not follow from others."""
    reach = {room: {b for a, b in edges if a == room} for room, _ in edges}

    def below(room: str) -> set[str]:
        return {each for direct in reach.get(room, ()) for each in ({direct} | below(direct))}

    return {(a, b) for a, b in edges if not any(b in below(c) for c in reach[a] if c != b)}


def contents() -> dict[str, str]:
    """Contents of each room, by the table of docs/map.md; a line of several rooms has a part for each."""
    found = {}
    lines = re.findall(
        r"^\| (`.*?) \| (.*) \|$", PICTURE.with_suffix(".md").read_text(encoding="utf-8"), re.MULTILINE
    )
    for rooms, text in lines:
        names = re.findall(r"`(\w+)(?:/|\.py)`", rooms)
        parts = text.replace("`", "").split("; ") if len(names) > 1 else [text.replace("`", "")]
        found |= dict(zip(names, parts, strict=True))
    return found


def source() -> str:
    """The graph in Graphviz's language: a layer is a rank."""
    text = contents()
    lines = [
        'digraph rooms { rankdir=TB; ranksep=0.35; bgcolor="transparent"; fontname="Helvetica"',
        'node [shape=box, style="rounded,filled", fillcolor="#e5e8fa", color="#4051b5"]',
        'node [fontname="Helvetica", fontsize=12]',
        'edge [color="#888888", arrowsize=0.7]',
    ]
    for layer in layers():
        nodes = []
        for room in layer:
            note = escape(fill(text[room], 34)).replace("\n", "<BR/>")
            nodes.append(f'{room} [label=<<B>{room}</B><BR/><FONT POINT-SIZE="10">{note}</FONT>>]')
        lines.append("{ rank=same; " + "; ".join(nodes) + " }")
    lines += [f"{a} -> {b}" for a, b in sorted(drawn(imports()))]
    return "\n".join([*lines, "}"])


if __name__ == "__main__":
    main()
