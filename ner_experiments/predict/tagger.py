"""Tagging of new text with a finished run: `load(run).tag(text)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ner_experiments import build, experiment_data
from ner_experiments.build import decode_with_probabilities
from ner_experiments.data.batches import EVALUATION
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Sentence, Tokens
from ner_experiments.data.tags import Span, encode
from ner_experiments.data.tokenize import TokenizedSentence, check_tokens, require, tokenize
from ner_experiments.predict.hub import folder_of
from ner_experiments.predict.input import InputReader
from ner_experiments.runs import artifacts
from ner_experiments.runs.run import open_run
from ner_experiments.tagger import Tagger
from ner_experiments.utils.text import check_string, on_one_line, truncated_repr

CHUNK = 16_384
"""Minimum number of tokens that are collected and then tagged together."""


def load(
    run: Path | str,
    *,
    tokens: Tokens | None = None,
    lines: bool | None = None,
    device: str = "cpu",
    revision: str | None = None,
    vectors: Path | str | None = None,
) -> TextTagger:
    """Tagger of a finished run, loaded from its folder, or from the hub by a name such as user/name.

    Executes no code from there and needs no corpus. revision: a commit, branch or tag on the hub.

    Raw text is tokenized as the run's corpus is, unless `tokens` overrides it. lines: whether each line is a sentence,
    such as a tweet; None for as in the run's corpus. vectors: the file of word vectors that the run was trained with;
    words that its corpus lacks have their vectors then, as in `audit.extra_tests`, and are unknown otherwise. Raises
    ValueError or OSError if the folder holds no finished run, if PyTorch cannot use the device, and for vectors that
    the run does not read.
    """
    if tokens is not None:
        check_tokens("tokens", tokens)
    check_device(device)
    folder = folder_of(run, revision)
    finished = open_run(folder)
    artifacts.verify(folder, finished.metrics, artifacts.TAGGER)
    source = experiment_data.source(finished.config)
    require(tokens or source.tokens)
    tagger, encoder = build.load_with_config(folder, finished.config)
    for input in encoder.inputs.values():
        input.disable_cache()
    reader = InputReader(
        source=source,
        tokens=tokens or source.tokens,
        required_columns=encoder.required_columns(),
        lines=source.lines if lines is None else lines,
    )
    path = None if vectors is None else Path(vectors)
    if path and not encoder.extended([], path)[1]:
        raise ValueError(f"{folder}: the run reads no file of word vectors, got vectors={path}")
    return TextTagger(tagger.to(device), encoder, reader, path)


def check_device(name: str) -> None:
    """Raise ValueError if PyTorch cannot compute on the device."""
    try:
        torch.zeros(1, device=name).item()
    except Exception as error:  # of many classes, by device and build
        raise ValueError(
            f"device {truncated_repr(name)}: expected cpu, or a GPU that PyTorch can use, such as cuda "
            f"({on_one_line(error)})"
        ) from error


@dataclass(frozen=True, slots=True)
class Mention:
    """A predicted mention: `text` is document[start:end], `probability` that of exactly this span and type."""

    start: int
    end: int
    type: str
    text: str
    probability: float


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """A sentence and its predictions.

    tags: one per token, with mentions as IOB2. A run whose task is "tags", such as part of speech, has no
    mentions but a probability for each tag.
    """

    sentence: TokenizedSentence
    tags: tuple[str, ...]
    mentions: tuple[Mention, ...] = ()
    probabilities: tuple[float, ...] = ()


class TextTagger:
    """Tagger of text by a trained model, in batches of a bounded size; a longer sentence is a batch of its own.

    The probability of a mention from token s to token e is exact. Its BIOES tags determine the mention, so it
    is p(y_s = t_s, ..., y_e = t_e | x), summed over all tags of the other tokens: see the decoders'
    `span_probabilities`. It is the model's confidence, which need not be calibrated.
    """

    def __init__(
        self, tagger: Tagger, encoder: Encoder, reader: InputReader, vectors: Path | None = None
    ) -> None:
        self.tagger, self.encoder, self.reader, self.vectors = tagger, encoder, reader, vectors

    @property
    def types(self) -> list[str]:
        """The types of mentions, or the tags of a run whose task is "tags"."""
        if self.encoder.task == "tags":
            return list(self.encoder.labels)
        return list(dict.fromkeys(label[2:] for label in self.encoder.labels if label != "O"))

    def tag(self, text: str) -> list[TaggedSentence]:
        """Tag the sentences of a document. Raises ValueError if the run reads columns or the text contains NUL."""
        self.reader.check_raw_text()
        check_string("the text", text)
        return list(self.stream(tokenize(text, self.reader.tokens, lines=self.reader.lines)))

    def tag_words(self, words: Sequence[str], **columns: Sequence[str]) -> TaggedSentence:
        """Tag a tokenized sentence. `columns` are those that the run reads, such as pos=[...].

        Raises ValueError for a sentence without words, an empty word, or a missing or misaligned column.
        """
        if not words:
            raise ValueError("a sentence must have at least one word")
        (tagged,) = self.stream([self.reader.from_words(words, columns)])
        return tagged

    def stream(self, sentences: Iterable[TokenizedSentence]) -> Iterator[TaggedSentence]:
        """Tag sentences lazily and in order, reading about `CHUNK` tokens ahead."""
        for chunk in chunks(sentences):
            yield from self._tag_chunk(chunk)

    @torch.inference_mode()
    def _tag_chunk(self, chunk: Sequence[TokenizedSentence]) -> list[TaggedSentence]:
        filler = self.encoder.labels[0]
        sentences = [Sentence(words := it.words, (filler,) * len(words), it.columns) for it in chunk]
        encoder, rows = self.encoder.extended(sentences, self.vectors) if self.vectors else (self.encoder, {})
        encoded = encoder.encode(sentences, self.tagger.device)
        tagged: dict[int, TaggedSentence] = {}
        with self.tagger.extended(rows), self.tagger.sharing():
            for numbers in EVALUATION.in_order(encoded.lengths):
                batch = encoded.batch(numbers, share=True)
                of_batch = self._tag_batch(chunk, numbers.tolist(), batch)
                tagged.update(zip(numbers.tolist(), of_batch, strict=True))
        return [tagged[number] for number in range(len(chunk))]

    def _tag_batch(
        self, chunk: Sequence[TokenizedSentence], numbers: Sequence[int], batch: Batch
    ) -> Iterator[TaggedSentence]:
        predictions = decode_with_probabilities(self.tagger, self.encoder, batch)
        for number, (tags, spans, probabilities) in zip(numbers, predictions, strict=True):
            if self.encoder.task == "mentions":
                yield with_mentions(chunk[number], spans, probabilities)
            else:
                yield TaggedSentence(chunk[number], tuple(tags), probabilities=tuple(probabilities))


def chunks(sentences: Iterable[TokenizedSentence]) -> Iterator[list[TokenizedSentence]]:
    """Runs of sentences with at least `CHUNK` tokens each, but for the last."""
    chunk: list[TokenizedSentence] = []
    tokens = 0
    for sentence in sentences:
        chunk.append(sentence)
        tokens += len(sentence.offsets)
        if tokens >= CHUNK:
            yield chunk
            chunk, tokens = [], 0
    if chunk:
        yield chunk


def with_mentions(
    sentence: TokenizedSentence, spans: Sequence[Span], probabilities: Sequence[float]
) -> TaggedSentence:
    """The sentence with its predicted spans as mentions."""
    mentions = []
    for (first, last, kind), probability in zip(spans, probabilities, strict=True):
        start, end = sentence.offsets[first][0], sentence.offsets[last - 1][1]
        text = sentence.text[start - sentence.start : end - sentence.start]
        mentions.append(Mention(start, end, kind, text, probability))
    return TaggedSentence(sentence, encode(spans, len(sentence.offsets), "iob2"), tuple(mentions))
