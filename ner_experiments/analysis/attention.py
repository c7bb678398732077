"""Attention weights of Att and their heat maps, one per head, with mentions marked: figure 2 of Li, Fu & Ma (2020)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ner_experiments.build import batches, decode
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.data.tags import Span, spans
from ner_experiments.models.attention import AttBiLSTM
from ner_experiments.tagger import Tagger
from ner_experiments.view import charts
from ner_experiments.view.mentions import visible
from ner_experiments.view.vega import Chart

CELL = 18
"""Pixels of a weight."""
LEGEND = (
    "How much the token of a row attends to that of a column: the darkest weight is the largest of its head. "
    "Gold mentions are framed and orange."
)
MAX_WORD_LENGTH = 20
"""Longer words, such as links, are truncated in the labels."""


@dataclass(frozen=True)
class SplitSentence:
    """A sentence with its split and its 1-based number there."""

    split: str
    number: int
    sentence: Sentence


@dataclass(frozen=True)
class AttentionMap:
    """Attention of one sentence: `weights[head, t, s]` is the weight of token s for token t, and sums to 1 over s."""

    source: SplitSentence
    predicted: tuple[str, ...]
    weights: np.ndarray

    @property
    def title(self) -> str:
        return f"{self.source.split}, sentence {self.source.number}"

    @property
    def mentions(self) -> list[Span]:
        """Gold mentions."""
        return spans(self.source.sentence.tags)

    def record(self) -> dict[str, Any]:
        """Content for JSON, with weights to six decimals."""
        return {
            "split": self.source.split,
            "sentence": self.source.number,
            "words": self.source.sentence.words,
            "gold": self.source.sentence.tags,
            "predicted": self.predicted,
            "weights": self.weights.astype(float).round(6).tolist(),
        }


def sentences_with_mentions(corpus: Corpus, text: str = "") -> Iterator[SplitSentence]:
    """Sentences of test, then of dev, that have a gold mention and contain `text`, with or without spaces."""
    for split in ("test", "dev"):
        for number, sentence in enumerate(corpus.splits.get(split, ()), start=1):
            found = any(text in space.join(sentence.words) for space in (" ", ""))
            if found and any(tag != "O" for tag in sentence.tags):
                yield SplitSentence(split, number, sentence)


def require_mentions(corpus: Corpus, text: str = "") -> list[SplitSentence]:
    """List of `sentences_with_mentions`. ValueError if it is empty, or if the corpus is scored tag by tag."""
    if corpus.task != "mentions":
        raise ValueError(f"{corpus.name}: heat maps need a corpus of mentions; this one tags tokens")
    if not (sentences := list(sentences_with_mentions(corpus, text))):
        raise ValueError(f"{corpus.name}: no sentence of test or dev has a mention and the text {text!r}")
    return sentences


@torch.inference_mode()
def attention(tagger: Tagger, encoder: Encoder, sources: Sequence[SplitSentence]) -> list[AttentionMap]:
    """Attention maps of the sentences, in their order. ValueError if the model is not Att."""
    model = tagger.model
    if not isinstance(model, AttBiLSTM):
        raise ValueError(f"expected a run of model=attention (AttBiLSTM), got {type(model).__name__}")
    captured: list[torch.Tensor] = []
    maps: dict[int, AttentionMap] = {}
    handle = model.attention.register_forward_hook(lambda _, __, output: captured.append(output[1]))
    try:
        for batch in batches(encoder, [source.sentence for source in sources]):
            predicted, (weights,) = decode(tagger, batch), captured
            captured.clear()
            rows = zip(batch.sentences.tolist(), batch.lengths.tolist(), strict=True)
            for row, (number, length) in enumerate(rows):
                tags = tuple(encoder.labels[tag] for tag in predicted[row, :length].tolist())
                alphas = weights[row, :, :length, :length].numpy()
                maps[number] = AttentionMap(sources[number], tags, alphas)
    finally:
        handle.remove()
    return [maps[number] for number in range(len(sources))]


def draw(path: Path, attention_map: AttentionMap) -> None:
    """Write the heat maps as PNG."""
    path.write_bytes(heat_maps(attention_map).png())


def heat_maps(attention_map: AttentionMap) -> Chart:
    """One heat map per head, side by side."""
    words = [truncated(visible(word)) for word in attention_map.source.sentence.words]
    mentions = [(start, end) for start, end, _ in attention_map.mentions]
    panels = []
    for head, weights in enumerate(attention_map.weights, start=1):
        most = float(weights.max())
        title = f"head {head}, at most {most:.2f}"
        shares = (weights / (most or 1.0)).tolist()
        panels.append(charts.matrix(words, words, shares, title=title, framed=mentions, cell=CELL))
    return Chart(f"Attention in {attention_map.title}", LEGEND, tuple(panels))


def truncated(word: str) -> str:
    return word if len(word) <= MAX_WORD_LENGTH else f"{word[: MAX_WORD_LENGTH - 1]}…"
