"""The bootstrap over test sentences: how much a figure of one run depends on which sentences were drawn."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Real, UInt8

from ner_experiments.analysis.statistics import CONFIDENCE

DRAWS = 1000
AT_ONCE = 200
"""Draws in one product: 8 MB of them for 5,000 sentences."""


def resampled(
    counts: Real[np.ndarray, "sentences *columns"], *, draws: int = DRAWS, seed: int = 0
) -> Float[np.ndarray, "draws *columns"]:
    """The sums of the counts over as many sentences as there are, drawn with replacement, draw by draw.

    Of as many sentences the draws are always the same, so that figures of one test set can be compared.
    """
    flat = counts.reshape(len(counts), -1).astype(np.float64)
    times = drawn(len(counts), draws, seed)
    parts = [times[start : start + AT_ONCE] @ flat for start in range(0, draws, AT_ONCE)]
    return np.concatenate(parts).reshape(draws, *counts.shape[1:])


@lru_cache(maxsize=2)
def drawn(sentences: int, draws: int, seed: int) -> UInt8[np.ndarray, "draws sentences"]:
    """How often each sentence is in each draw."""
    rng = np.random.default_rng(seed)
    found = np.empty((draws, sentences), dtype=np.uint8)
    for row in found:
        row[:] = np.bincount(rng.integers(sentences, size=sentences), minlength=sentences)
    return found


def interval(values: Float[np.ndarray, " draws"]) -> tuple[float, float]:
    """The percentile interval (Efron & Tibshirani 1993, ch. 13), 95 %, of draws in which there is a value."""
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(values[~np.isnan(values)], [tail, 100 - tail])
    return float(low), float(high)


def ratio(
    top: Float[np.ndarray, "*shape"], bottom: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """NaN where nothing is below the line: in that draw there is no such figure."""
    return np.divide(top, bottom, out=np.full(np.shape(bottom), np.nan), where=bottom > 0)
