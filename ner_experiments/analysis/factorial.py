"""Effects of the settings of a grid on the score: analysis of variance of cells, each with a score per seed.

The model is score = mean of the cell + error, with independent normal errors of one variance in all cells. If every
cell has the same seeds, each seed is a block: score = mean of the cell + seed + error (Montgomery 2017, chapter 5).
Every effect is a contrast of the cells' means, in which each level counts equally however many seeds it has (type III).
Errors are pooled over all cells, so a cell may have a single seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from statistics import fmean

import numpy as np
import scipy

from ner_experiments.analysis.statistics import Difference, t_test

ROUNDING = 1e-9
"""A deviation below this is that of floating point."""


@dataclass(frozen=True)
class Term:
    """A main effect or an interaction of factors, which are given by their indices, with its F test.

    f, p: None if the scores do not vary within the cells. freedom: degrees of freedom of the effect.
    contrasts: by the levels of its factors, from their second level on. A main effect is that level minus the first
    one; an interaction is by how much that difference is larger at a level of the other factor than at its first level.
    """

    factors: tuple[int, ...]
    freedom: int
    f: float | None
    p: float | None
    contrasts: Mapping[tuple[int, ...], Difference]


@dataclass(frozen=True)
class Factorial:
    """The terms of a grid. freedom: degrees of freedom of the error. sd: its deviation, in the unit of the scores."""

    terms: tuple[Term, ...]
    freedom: int
    sd: float
    is_blocked: bool


def analyze(cells: Sequence[Mapping[int, float]], shape: Sequence[int]) -> Factorial | None:
    """All main effects and interactions of a full grid; None if no cell has two seeds.

    cells: scores by seed, in the order of `itertools.product` over the levels of each factor. shape: numbers of levels.
    """
    means = np.array([fmean(cell.values()) for cell in cells])
    is_blocked = len({frozenset(cell) for cell in cells}) == 1
    residuals = np.concatenate(
        [[cell[seed] - mean for seed in sorted(cell)] for cell, mean in zip(cells, means, strict=True)]
    )
    freedom = len(residuals) - len(cells)
    if not freedom:
        return None
    if is_blocked:
        by_seed = residuals.reshape(len(cells), -1)
        residuals = by_seed - by_seed.mean(0)
        freedom -= len(by_seed[0]) - 1
    variance = float((residuals**2).sum()) / freedom
    if variance < ROUNDING**2:
        variance = 0.0
    spread = np.diag([variance / len(cell) for cell in cells])
    terms = []
    for size in range(1, len(shape) + 1):
        for factors in combinations(range(len(shape)), size):
            weights = contrasts(shape, factors)
            estimates, covariance = weights @ means, weights @ spread @ weights.T
            f = p = None
            if variance:
                f = float(estimates @ np.linalg.solve(covariance, estimates)) / len(weights)
                p = float(scipy.special.fdtrc(len(weights), freedom, f))
            errors = np.sqrt(np.diag(covariance))
            levels = product(*(range(1, shape[factor]) for factor in factors))
            found = {
                level: t_test(float(gap), float(error), freedom, "pooled t")
                for level, gap, error in zip(levels, estimates, errors, strict=True)
            }
            terms.append(Term(factors, len(weights), f, p, found))
    return Factorial(tuple(terms), freedom, variance**0.5, is_blocked)


def contrasts(shape: Sequence[int], factors: Sequence[int]) -> np.ndarray:
    """The weights of a term's contrasts, [contrasts, cells]: averages over the levels of all other factors."""
    by_factor = [
        np.eye(levels)[1:] - np.eye(levels)[0] if factor in factors else np.full((1, levels), 1 / levels)
        for factor, levels in enumerate(shape)
    ]
    return reduce(np.kron, by_factor)
