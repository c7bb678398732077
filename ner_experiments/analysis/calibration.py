"""Calibration of mention probabilities: whether 80 % of the mentions predicted with probability 0.8 are correct.

`calibration` bins given probabilities, and `of_predictions` those that a run recorded. For older runs, which recorded
none, `of_run` has the model tag the test set again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float, Int

from ner_experiments.analysis.bootstrap import interval, ratio, resampled
from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.data.tags import Span
from ner_experiments.runs.predictions import Predicted, units

if TYPE_CHECKING:
    from ner_experiments.data.encoder import Encoder
    from ner_experiments.tagger import Tagger

log = logging.getLogger(__name__)

BINS = 10
Scored = tuple[int, Span, float]
"""Index of a sentence, a predicted mention in it, and the mention's probability."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Predicted mentions with a probability in [start, end), or [start, end] if end is 1.

    `mean` is their mean probability, `correct` the share of correct ones, with its 95 % interval.
    """

    start: float
    end: float
    count: int
    mean: float
    correct: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Non-empty bins, and the expected calibration error `error` with its 95 % interval.

    The error is the mean over predicted mentions of |mean probability - share of correct ones| of their bin
    (Guo et al. 2017, eq. 3).
    """

    bins: tuple[Bin, ...]
    error: float
    low: float
    high: float

    def record(self) -> dict[str, Any]:
        """JSON content, read by `from_record`."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Calibration:
        """The calibration that `record` wrote."""
        return cls(**{**record, "bins": tuple(Bin(**bin_) for bin_ in record["bins"])})


def calibration(
    probabilities: Float[np.ndarray, " mentions"],
    correct: Bool[np.ndarray, " mentions"],
    sentence: Int[np.ndarray, " mentions"],
    sentences: int,
) -> Calibration | None:
    """Calibration of predicted mentions in ten bins of equal width; None without predicted mentions.

    sentence: index of each mention's sentence. Intervals are from the bootstrap over sentences, as in
    `breakdown.buckets`; a bin's interval leaves out the draws in which it is empty.
    """
    if not len(probabilities):
        return None
    number = np.minimum((BINS * probabilities).astype(int), BINS - 1)
    counts = np.zeros((sentences, BINS, 3))
    np.add.at(counts, (sentence, number), np.stack([np.ones(len(correct)), probabilities, correct], axis=1))
    sums = resampled(counts)
    shares = ratio(sums[..., 2], sums[..., 0])
    bins = [
        Bin(column / BINS, (column + 1) / BINS, int(count), total / count, num / count, *interval(share))
        for column, ((count, total, num), share) in enumerate(
            zip(counts.sum(axis=0).tolist(), shares.T, strict=True)
        )
        if count
    ]
    (error,) = gap(counts.sum(axis=0, keepdims=True)).tolist()
    return Calibration(tuple(bins), error, *interval(gap(sums)))


def gap(sums: Float[np.ndarray, "draws bins 3"]) -> Float[np.ndarray, " draws"]:
    """Expected calibration error, given the mentions, summed probabilities and correct mentions per bin."""
    return ratio(np.abs(sums[..., 1] - sums[..., 2]).sum(axis=-1), sums[..., 0].sum(axis=-1))


def of_predictions(
    sentences: Sequence[Predicted], probabilities: Sequence[Sequence[float]], task: Task
) -> Calibration | None:
    """Calibration of predicted mentions, or of tags if single tokens are tagged; None without any.

    Raises ValueError unless there is a probability for each of them.
    """
    correct = [sentence.correct(task) for sentence in sentences]
    predicted = [*map(len, correct)]
    if [*map(len, probabilities)] != predicted:
        raise ValueError("expected a probability for each predicted mention")
    return calibration(
        np.array([*chain.from_iterable(probabilities)]),
        np.array([*chain.from_iterable(correct)], dtype=bool),
        np.repeat(np.arange(len(sentences)), predicted),
        len(sentences),
    )


def of_run(folder: Path) -> Calibration | None:
    """Calibration of a run whose model tags the test set again, as `of_predictions`.

    None without predictions, or, with a warning, if the run or its corpus cannot be read or has changed. Runs on a
    GPU if there is one.
    """
    import torch  # slow to import, as is Lightning, and archived runs need neither

    from ner_experiments.build import load_with_corpus

    try:
        tagger, encoder, corpus = load_with_corpus(folder)
    except (ValueError, OSError) as error:
        log.warning("the calibration is left out: %s", error)
        return None
    test = corpus.splits["test"]
    tagger.to("cuda" if torch.cuda.is_available() else "cpu")
    gold = [set(units(sentence.tags, encoder.task)) for sentence in test]
    mentions = list(predicted(tagger, encoder, test))
    return calibration(
        np.array([probability for _, _, probability in mentions]),
        np.array([mention in gold[number] for number, mention, _ in mentions], dtype=bool),
        np.array([number for number, _, _ in mentions], dtype=np.int64),
        len(test),
    )


def predicted(tagger: Tagger, encoder: Encoder, sentences: list[Sentence]) -> Iterator[Scored]:
    """Yield each mention of the decoded tags with the probability that its tokens have these tags.

    For the CRF it is the exact marginal over the tags of all other tokens; for the softmax, the product of the
    tokens' probabilities.
    """
    import torch  # as in `of_run`

    from ner_experiments.build import batches, decode_with_probabilities

    for batch in batches(encoder, sentences, tagger.device):
        with torch.inference_mode():
            of_batch = decode_with_probabilities(tagger, encoder, batch)
        for number, (_, mentions, probabilities) in zip(batch.sentences.tolist(), of_batch, strict=True):
            for mention, probability in zip(mentions, probabilities, strict=True):
                yield number, mention, probability
