"""Trained runs at work on other text: `load(run).tag(text)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ner_experiments import build
from ner_experiments.build import decoded
from ner_experiments.data.datamodule import EVALUATION
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Sentence, Tokens
from ner_experiments.data.tags import Span, encode
from ner_experiments.predict import tokenize
from ner_experiments.predict.input import Reading, check_text
from ner_experiments.predict.tokenize import Cut
from ner_experiments.runs import artifacts
from ner_experiments.runs.artifacts import read_config
from ner_experiments.runs.run import open_run
from ner_experiments.tagger import Tagger

PARTS = (artifacts.CONFIG, artifacts.ENCODER, artifacts.WEIGHTS)
CHUNK = 16_384
"""Tokens that are read before the first of them are tagged, at least, if there are so many."""


@dataclass(frozen=True, slots=True)
class Mention:
    """document[start:end] is `text`; `probability`: of just these tokens being a mention of the type."""

    start: int
    end: int
    type: str
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class Tagged:
    """A sentence and what was found in it.

    tags: one a token; mentions as IOB2. Of a run that tags every token, such as by its part of speech,
    there are no mentions, but each tag has its probability.
    """

    sentence: Cut
    tags: tuple[str, ...]
    mentions: tuple[Mention, ...] = ()
    probabilities: tuple[float, ...] = ()


class TextTagger:
    """Tags text by a trained run, in batches of a bounded number of tokens; a longer sentence comes alone.

    The probability of a mention from token s to token e is exact. BIOES tags t_s ... t_e decide it, so it is
    p(y_s = t_s, ..., y_e = t_e | x), the sum over all tags of the other tokens: see the decoders'
    `span_probabilities`. It says how sure the model is, not how often it is right.
    """

    def __init__(self, tagger: Tagger, encoder: Encoder, reading: Reading) -> None:
        self.tagger, self.encoder, self.reading = tagger, encoder, reading

    @property
    def types(self) -> list[str]:
        """What a mention may be, or the tags that a token may have."""
        if self.encoder.task == "tags":
            return list(self.encoder.labels)
        return list(dict.fromkeys(label[2:] for label in self.encoder.labels if label != "O"))

    def tag(self, text: str) -> list[Tagged]:
        """The sentences of a document. ValueError if the run reads more than words, or for a NUL."""
        self.reading.check_raw()
        check_text("the text", text)
        return list(self.stream(tokenize.cut(text, self.reading.tokens, lines=self.reading.lines)))

    def tag_words(self, words: Sequence[str], **columns: Sequence[str]) -> Tagged:
        """A sentence that is cut already, with the columns that the run reads besides, such as pos=[...]."""
        if not words:
            raise ValueError("a sentence must have a word")
        (tagged,) = self.stream([self.reading.of_words(words, columns)])
        return tagged

    def stream(self, sentences: Iterable[Cut]) -> Iterator[Tagged]:
        """One by one, in their order; reads some `CHUNK` tokens ahead."""
        chunk: list[Cut] = []
        tokens = 0
        for sentence in sentences:
            chunk.append(sentence)
            tokens += len(sentence.places)
            if tokens >= CHUNK:
                yield from self._chunk(chunk)
                chunk, tokens = [], 0
        if chunk:
            yield from self._chunk(chunk)

    @torch.inference_mode()
    def _chunk(self, chunk: Sequence[Cut]) -> list[Tagged]:
        filler = self.encoder.labels[0]
        sentences = [Sentence(words := it.words, (filler,) * len(words), it.columns) for it in chunk]
        encoded = self.encoder.encode(sentences, self.tagger.device)
        found: dict[int, Tagged] = {}
        try:
            for numbers in EVALUATION.in_order(encoded.lengths):
                batch = encoded.batch(numbers, share=True)
                found.update(zip(numbers.tolist(), self._batch(chunk, numbers.tolist(), batch), strict=True))
        finally:
            self.tagger.shared.clear()
        return [found[number] for number in range(len(chunk))]

    def _batch(self, chunk: Sequence[Cut], numbers: Sequence[int], batch: Batch) -> Iterator[Tagged]:
        of_batch = decoded(self.tagger, self.encoder, batch)
        for number, (tags, spans, probabilities) in zip(numbers, of_batch, strict=True):
            if self.encoder.task == "mentions":
                yield with_mentions(chunk[number], spans, probabilities)
            else:
                yield Tagged(chunk[number], tuple(tags), probabilities=tuple(probabilities))


def with_mentions(sentence: Cut, spans: Sequence[Span], probabilities: Sequence[float]) -> Tagged:
    mentions = []
    for (first, last, kind), probability in zip(spans, probabilities, strict=True):
        start, end = sentence.places[first][0], sentence.places[last - 1][1]
        text = sentence.text[start - sentence.start : end - sentence.start]
        mentions.append(Mention(start, end, kind, text, probability))
    return Tagged(sentence, encode(spans, len(sentence.places), "iob2"), tuple(mentions))


def load(
    run: Path | str, *, tokens: Tokens | None = None, lines: bool = False, device: str = "cpu"
) -> TextTagger:
    """The tagger of a finished run's folder. Executes nothing that lies there, and needs no corpus.

    Raw text is cut into what the run's corpus has for tokens unless `tokens` says otherwise; with `lines`
    each line is a sentence, such as a tweet. ValueError or OSError for what is no finished run's folder.
    """
    folder = Path(run)
    artifacts.verify(folder, open_run(folder).metrics, PARTS)
    source = build.source(read_config(folder))
    tagger, encoder = build.load(folder)
    for input in encoder.inputs.values():
        input.keep_nothing()
    needs = [name for input in encoder.inputs.values() for name in input.needs()]
    reading = Reading(source=source, tokens=tokens or source.tokens, needs=needs, lines=lines)
    return TextTagger(tagger.to(device), encoder, reading)
