"""How much each token attends to each other, head by head: figure 2 of Li, Fu & Ma (2020)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ner_experiments.analysis.trained import batches, decode
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus, Sentence
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
