"""Whether the probabilities of predicted mentions can be believed: are four in five of those at 0.8 right?

How probable a finished run holds the mentions that it predicts, and whether it can be believed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from ner_experiments.analysis.bootstrap import interval, ratio, resampled
from ner_experiments.build import batches, decoded, load_with_corpus
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.tags import Span
from ner_experiments.runs.predictions import units
from ner_experiments.tagger import Tagger

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Predicted mentions whose probability is at least `start` and less than `end` (or equal, if that is 1).

    `mean` is their mean probability, `right` the share of them that is right, with its 95 % interval.
    """

    start: float
    end: float
    count: int
    mean: float
    right: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The bins with a mention in them; `error` is the expected calibration error, with its 95 % interval.

    That is the mean over the predicted mentions of |mean probability - share right| of their bins (Guo et al.
    2017, eq. 3).
    """

    bins: tuple[Bin, ...]
    error: float
    low: float
    high: float

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def restored(cls, record: Mapping[str, Any]) -> Calibration:
        """What `record` wrote."""
        return cls(**{**record, "bins": tuple(Bin(**bin_) for bin_ in record["bins"])})


def calibration(
    probabilities: Float[np.ndarray, " mentions"],
    right: Bool[np.ndarray, " mentions"],
    sentence: Int[np.ndarray, " mentions"],
    sentences: int,
) -> Calibration | None:
    """Of predicted mentions; `sentence` is the number of that each is in. None if there is none.

    Ten bins of one width. The intervals are those of the bootstrap over sentences, as in `breakdown`; draws
    without a mention in a bin are left out of that bin's.
    """
    if not len(probabilities):
        return None
    number = np.minimum((BINS * probabilities).astype(int), BINS - 1)
    counts = np.zeros((sentences, BINS, 3))
    np.add.at(counts, (sentence, number), np.stack([np.ones(len(right)), probabilities, right], axis=1))
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
    """Expected calibration error, of mentions, summed probabilities and right ones in each bin."""
    return ratio(np.abs(sums[..., 1] - sums[..., 2]).sum(axis=-1), sums[..., 0].sum(axis=-1))


log = logging.getLogger(__name__)

Found = tuple[int, Span, float]
"""The number of a sentence, from 0; a predicted mention; its probability."""


def of_run(folder: Path) -> Calibration | None:
    """Of its predicted mentions on test, or where single tokens are tagged, of their tags.

    None if there are none, or if the run or its corpus cannot be read as it was: the log says why. On a GPU
    where there is one.
    """
    try:
        tagger, encoder, corpus = load_with_corpus(folder)
    except (ValueError, OSError) as error:
        log.warning("the calibration is left out: %s", error)
        return None
    test = corpus.splits["test"]
    tagger.to("cuda" if torch.cuda.is_available() else "cpu")
    found = list(predicted(tagger, encoder, test))
    gold = [set(units(sentence.tags, encoder.task)) for sentence in test]
    return calibration(
        np.array([probability for _, _, probability in found]),
        np.array([mention in gold[number] for number, mention, _ in found], dtype=bool),
        np.array([number for number, _, _ in found], dtype=np.int64),
        len(test),
    )


@torch.inference_mode()
def predicted(tagger: Tagger, encoder: Encoder, sentences: list[Sentence]) -> Iterator[Found]:
    """Each mention of the decoded tags, with the probability that its tokens have these tags.

    Under the CRF that is exact, whatever the tags of the other tokens; under the softmax it is the product of
    the tokens'.
    """
    for batch in batches(encoder, sentences, tagger.device):
        of_batch = decoded(tagger, encoder, batch)
        for number, (_, mentions, probabilities) in zip(batch.sentences.tolist(), of_batch, strict=True):
            for mention, probability in zip(mentions, probabilities, strict=True):
                yield number, mention, probability
