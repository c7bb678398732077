"""Whether the probabilities of predicted mentions can be believed: are four in five of those at 0.8 right?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from ner_experiments.analysis.bootstrap import interval, ratio, resampled

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
