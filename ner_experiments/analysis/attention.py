"""How much each token attends to each other, head by head: figure 2 of Li, Fu & Ma (2020).

The heat maps of a sentence, one per head, with its mentions marked: figure 2 of Li, Fu & Ma (2020).
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from ner_experiments.build import batches, decode
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.data.tags import spans
from ner_experiments.models.attention import AttBiLSTM
from ner_experiments.tagger import Tagger


@dataclass(frozen=True)
class Place:
    """A sentence, and which of its split it is, counted from 1."""

    split: str
    number: int
    sentence: Sentence


@dataclass(frozen=True)
class Attended:
    """`weights[head, t, s]` is how much token t attends to token s; over s they sum to 1."""

    place: Place
    predicted: tuple[str, ...]
    weights: np.ndarray

    def record(self) -> dict[str, Any]:
        """As JSON; the weights to six decimals."""
        return {
            "split": self.place.split,
            "sentence": self.place.number,
            "words": self.place.sentence.words,
            "gold": self.place.sentence.tags,
            "predicted": self.predicted,
            "weights": self.weights.astype(float).round(6).tolist(),
        }


def places_of(corpus: Corpus, text: str = "") -> Iterator[Place]:
    """The sentences of test, then of dev, that have a gold mention and whose words have `text` in them."""
    for split in ("test", "dev"):
        for number, sentence in enumerate(corpus.splits.get(split, ()), start=1):
            if any(tag != "O" for tag in sentence.tags) and text in " ".join(sentence.words):
                yield Place(split, number, sentence)


def with_mentions(corpus: Corpus, text: str = "") -> list[Place]:
    """As `places_of`. ValueError if there are none."""
    if corpus.task != "mentions":
        raise ValueError(f"{corpus.name}: its tags are no mentions, which is what heat maps are drawn of")
    if not (found := list(places_of(corpus, text))):
        raise ValueError(f"{corpus.name}: no sentence of test or dev has a mention and the text {text!r}")
    return found


@torch.inference_mode()
def attention(tagger: Tagger, encoder: Encoder, places: Sequence[Place]) -> list[Attended]:
    """In the given order. ValueError if the model is not Att."""
    model = tagger.model
    if not isinstance(model, AttBiLSTM):
        raise ValueError(f"expected a run of model=attention (AttBiLSTM), got {type(model).__name__}")
    seen: list[torch.Tensor] = []
    found: dict[int, Attended] = {}
    handle = model.attention.register_forward_hook(lambda _, __, output: seen.append(output[1]))
    try:
        for batch in batches(encoder, [place.sentence for place in places]):
            predicted, (weights,) = decode(tagger, batch), seen
            seen.clear()
            rows = zip(batch.sentences.tolist(), batch.lengths.tolist(), strict=True)
            for row, (number, length) in enumerate(rows):
                tags = tuple(encoder.labels[tag] for tag in predicted[row, :length].tolist())
                alphas = weights[row, :, :length, :length].numpy()
                found[number] = Attended(places[number], tags, alphas)
    finally:
        handle.remove()
    return [found[number] for number in range(len(places))]


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
