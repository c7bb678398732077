"""docs/f1-by-layers.svg, the picture of README.md.

Table 12 of Yang & Xu (2020): the published F1 from sweeps/, the measured F1 from the archived runs in results/.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from statistics import fmean

import yaml

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "sweeps/yang2020_table12.yaml"
RUNS = ROOT / "results/yang2020_table12/max_epochs-10/runs"
PICTURE = ROOT / "docs/f1-by-layers.svg"

LABEL = re.compile(r"(?P<model>\w+), (?P<layers>\d) layers")
COLORS = {"residual": "#1f6fd1", "stacked": "#c45a00"}
SIZE = (760, 400)
LEFT, RIGHT, TOP, BOTTOM = 64, 580, 62, 340
"""The edges of the plotting area."""
LAYERS = (2, 6)
F1 = (84, 94)
"""The ranges of the axes."""

Scores = dict[str, dict[int, float]]
"""F1 in percent by model and number of layers."""


def published() -> Scores:
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["rows"]
    return by_model((row["label"], row["published"]) for row in rows)


def archived() -> dict[str, list[float]]:
    """The test F1 of the archived runs, by row."""
    scores: dict[str, list[float]] = {}
    for path in sorted(RUNS.glob("*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        scores.setdefault(run["label"], []).append(100 * run["metrics"]["test"]["f1"])
    return scores


def measured() -> Scores:
    """The mean test F1 of the archived runs."""
    return by_model((label, fmean(scores)) for label, scores in archived().items())


def runs_per_point() -> str:
    """The number of runs of a row, or the smallest and the largest number: "1 to 5"."""
    numbers = [len(scores) for scores in archived().values()]
    return " to ".join(map(str, sorted({min(numbers), max(numbers)})))


def by_model(labeled: Iterable[tuple[str, float]]) -> Scores:
    scores: Scores = {model: {} for model in COLORS}
    for label, score in labeled:
        match = LABEL.fullmatch(label)
        assert match, label
        scores[match["model"]][int(match["layers"])] = score
    return {model: dict(sorted(points.items())) for model, points in scores.items()}


def position(layers: float, f1: float) -> tuple[float, float]:
    """Pixels from the left and from the top."""
    x = LEFT + 24 + (layers - LAYERS[0]) / (LAYERS[1] - LAYERS[0]) * (RIGHT - LEFT - 48)
    return x, BOTTOM - (f1 - F1[0]) / (F1[1] - F1[0]) * (BOTTOM - TOP)


def text(x: float, y: float, content: str, attributes: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{" " * bool(attributes)}{attributes}>{escape(content)}</text>'


def axes() -> list[str]:
    lines = []
    for f1 in range(F1[0], F1[1] + 1, 2):
        _, y = position(LAYERS[0], f1)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{RIGHT}" stroke="#e0e0e0"/>')
        lines.append(text(LEFT - 8, y + 4.5, str(f1), 'text-anchor="end"'))
    for layers in range(LAYERS[0], LAYERS[1] + 1):
        x, y = position(layers, F1[0])
        lines.append(text(x, y + 20, str(layers), 'text-anchor="middle"'))
    lines.append(text((LEFT + RIGHT) / 2, BOTTOM + 44, "BiLSTM layers", 'text-anchor="middle"'))
    return lines


def curve(model: str, points: dict[int, float], kind: str) -> list[str]:
    """A line with its points and its name: dashed and open if published, filled if measured.

    The name is on the right of the last point or, where other curves go on there, below it.
    """
    color = COLORS[model]
    dashes, fill = (' stroke-dasharray="6 4"', "#fff") if kind == "published" else ("", color)
    pixels = [position(layers, f1) for layers, f1 in points.items()]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in pixels)
    lines = [f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2"{dashes}/>']
    for (x, y), f1 in zip(pixels, points.values(), strict=True):
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{fill}" stroke="{color}" stroke-width="2">'
        lines.append(f"{circle}<title>{model}, {kind}: {f1:.2f}</title></circle>")
    x, y = pixels[-1]
    goes_on = max(points) < LAYERS[1]
    place, anchor = ((x, y + 22), "middle") if goes_on else ((x + 12, y + 4.5), "start")
    return [*lines, text(*place, f"{model}, {kind}", f'fill="{color}" text-anchor="{anchor}"')]


def drawing() -> str:
    width, height = SIZE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#333">',
        "<title>Test F1 on MSRA by number of BiLSTM layers, published and measured</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="#fff" stroke="#d0d0d0"/>',
        text(20, 28, "Test F1 by BiLSTM layers, MSRA", 'font-size="16" font-weight="bold"'),
        text(
            20,
            46,
            f"Yang & Xu (2020), table 12: dashed as published, filled as measured (runs per point: {runs_per_point()})",
            'fill="#666"',
        ),
        *axes(),
    ]
    for kind, scores in (("published", published()), ("measured", measured())):
        for model, points in scores.items():
            lines += curve(model, points, kind)
    return "\n".join([*lines, "</svg>"]) + "\n"
