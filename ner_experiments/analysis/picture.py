"""The heat maps of a sentence, one per head, with its mentions marked: figure 2 of Li, Fu & Ma (2020)."""

from __future__ import annotations

import io
import math
import warnings
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from ner_experiments.analysis.weights import Attended
from ner_experiments.data.tags import spans

MENTION = "#d55e00"
COLUMNS = 3
LONGEST = 20
"""Letters of a word that are shown; links would take all the room."""


def draw(path: Path, attended: Attended) -> None:
    """Writes the picture, as PNG."""
    as_image(heat_maps(attended)).save(path)


def as_image(figure: Figure) -> Image.Image:
    """Pixels of any figure."""
    content = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a box stands for what the font lacks, such as emoji
        figure.savefig(content, dpi=120, format="png")
    return Image.open(content)


def heat_maps(attended: Attended) -> Figure:
    heads, time, _ = attended.weights.shape
    columns = min(heads, COLUMNS)
    rows = math.ceil(heads / columns)
    longest = max(len(shown(word)) for word in attended.place.sentence.words)
    side = 1 + 0.19 * time + 0.09 * longest  # inches: a token's row, a letter of its label
    figure = Figure(figsize=(side * columns, side * rows + 0.6), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for head, axes in enumerate(grid.flat):
        if head < heads:
            draw_head(axes, attended, head)
        else:
            axes.set_axis_off()
    place = attended.place
    figure.suptitle(
        f"{place.split}, sentence {place.number}: how much the token of a row attends to that of a column\n"
        "white is 0, the darkest the largest of its head; gold mentions are framed and orange",
        fontsize=9,
    )
    return figure


def shown(word: str) -> str:
    return word if len(word) <= LONGEST else f"{word[: LONGEST - 1]}…"


def draw_head(axes: Axes, attended: Attended, head: int) -> None:
    weights = attended.weights[head]
    words = [shown(word) for word in attended.place.sentence.words]
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=weights.max())
    axes.set_title(f"head {head + 1}, at most {weights.max():.2f}", fontsize=9)
    places = range(len(words))
    axes.set_xticks(places, words, rotation=90, fontsize=7, parse_math=False)
    axes.set_yticks(places, words, fontsize=7, parse_math=False)
    axes.tick_params(length=0)
    for start, end, _ in spans(attended.place.sentence.tags):
        size = end - start
        frame = Rectangle(
            (start - 0.5, start - 0.5), size, size, fill=False, edgecolor=MENTION, linewidth=1.4
        )
        frame.set(clip_on=False, zorder=3)  # whole at the border, too
        axes.add_patch(frame)
        for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
            for label in labels[start:end]:
                label.set(color=MENTION, fontweight="bold")
