"""Bootstrap over test sentences: how much a score of one run depends on the choice of sentences."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Real, UInt8

from ner_experiments.analysis.statistics import CONFIDENCE

DRAWS = 1000
CHUNK = 200
"""Draws per matrix product: 8 MB for 5,000 sentences."""


def resampled(
    counts: Real[np.ndarray, " sentences *columns"], *, draws: int = DRAWS, seed: int = 0
) -> Float[np.ndarray, " draws *columns"]:
    """Sums of the counts over resampled sentences, one for each draw.

    A draw takes as many sentences as there are, with replacement. The draws depend only on the number of sentences
    and the seed, so that scores on one test set can be compared.
    """
    flat = counts.reshape(len(counts), -1).astype(np.float64)
    multiplicities = draw_multiplicities(len(counts), draws, seed)
    parts = [multiplicities[start : start + CHUNK] @ flat for start in range(0, draws, CHUNK)]
    return np.concatenate(parts).reshape(draws, *counts.shape[1:])


@lru_cache(maxsize=2)
def draw_multiplicities(sentences: int, draws: int, seed: int) -> UInt8[np.ndarray, "draws sentences"]:
    """How often each draw takes each sentence."""
    rng = np.random.default_rng(seed)
    multiplicities = np.empty((draws, sentences), dtype=np.uint8)
    for row in multiplicities:
        row[:] = np.bincount(rng.integers(sentences, size=sentences), minlength=sentences)
    return multiplicities


def interval(values: Float[np.ndarray, " draws"]) -> tuple[float, float]:
    """95 % percentile interval (Efron & Tibshirani 1993, ch. 13), without the draws that are NaN."""
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(values[~np.isnan(values)], [tail, 100 - tail])
    return float(low), float(high)


def ratio(
    top: Float[np.ndarray, "*shape"], bottom: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """Quotient, NaN where the denominator is 0."""
    return np.divide(top, bottom, out=np.full(np.shape(bottom), np.nan), where=bottom > 0)
