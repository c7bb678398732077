"""Effects of a grid against least squares with dummy variables, and against differences of marginal means."""

import itertools
import random
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import pytest
import scipy.stats

from ner_experiments.analysis.factorial import analyze

Cells = list[dict[int, float]]


def cells_of(shape: Sequence[int], seeds: Sequence[Sequence[int]], number: int) -> Cells:
    draw = random.Random(number)
    of_seed = {seed: draw.gauss(0, 1) for own in seeds for seed in own}
    return [{seed: draw.gauss(80, 1) + of_seed[seed] for seed in own} for own in seeds]


def squares_left(columns: np.ndarray, y: np.ndarray) -> float:
    return float(((y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]) ** 2).sum())


def least_squares(
    cells: Cells, shape: Sequence[int], *, blocked: bool
) -> dict[tuple[int, ...], tuple[float, float]]:
    """F and p of each term: by how much the squares grow without its effect-coded columns, with all others kept."""
    runs = [
        (levels, seed, score)
        for levels, cell in zip(itertools.product(*map(range, shape)), cells, strict=True)
        for seed, score in cell.items()
    ]
    y = np.array([score for *_, score in runs])

    def coded(factor: int) -> np.ndarray:
        own = np.array([levels[factor] for levels, *_ in runs])
        last = shape[factor] - 1
        return np.stack([(own == level) * 1.0 - (own == last) for level in range(last)], 1)

    by_term = {
        term: np.stack(
            [np.prod(columns, 0) for columns in itertools.product(*(coded(factor).T for factor in term))], 1
        )
        for size in range(1, len(shape) + 1)
        for term in itertools.combinations(range(len(shape)), size)
    }
    base = [np.ones((len(y), 1))]
    if blocked:
        known = sorted({seed for _, seed, _ in runs})
        base.append(np.array([[float(seed == other) for other in known[1:]] for _, seed, _ in runs]))
    whole = np.hstack([*base, *by_term.values()])
    left, freedom = squares_left(whole, y), len(y) - np.linalg.matrix_rank(whole)
    found = {}
    for term, own in by_term.items():
        others = np.hstack([*base, *(columns for it, columns in by_term.items() if it != term)])
        f = (squares_left(others, y) - left) / own.shape[1] / (left / freedom)
        found[term] = f, float(scipy.stats.f.sf(f, own.shape[1], freedom))
    return found


@pytest.mark.parametrize(
    ("shape", "seeds", "blocked"),
    [
        ((2, 2), [(1, 2, 3)] * 4, True),
        ((3, 4), [(1, 2)] * 12, True),
        ((2, 3, 2), [(1, 2, 5)] * 12, True),
        ((2, 3), [(1, 2, 3), (1, 2), (4, 5), (1, 2, 3), (7, 8, 9, 10), (1, 3)], False),
        ((2, 2), [(1, 2), (3, 4), (5, 6), (7,)], False),
    ],
)
def test_every_term_is_that_of_least_squares(
    shape: tuple[int, ...], seeds: list[tuple[int, ...]], blocked: bool
) -> None:
    cells = cells_of(shape, seeds, number=len(seeds))
    found = analyze(cells, shape)
    assert found is not None
    assert found.is_blocked == blocked
    runs = sum(map(len, seeds))
    assert found.freedom == runs - len(cells) - (len(seeds[0]) - 1 if blocked else 0)
    for factors, (f, p) in least_squares(cells, shape, blocked=blocked).items():
        (own,) = (it for it in found.terms if it.factors == factors)
        assert own.f == pytest.approx(f)
        assert own.p == pytest.approx(p)
        if own.freedom == 1:  # then F is t squared
            ((level, contrast),) = own.contrasts.items()
            assert level == (1,) * len(factors)
            assert contrast.p == pytest.approx(p)
    means = np.array([fmean(cell.values()) for cell in cells]).reshape(shape)
    for term in found.terms:
        others = tuple(axis for axis in range(len(shape)) if axis not in term.factors)
        marginal = means.mean(axis=others)
        for axis in range(marginal.ndim):  # each level minus the first one, factor by factor
            marginal = marginal - marginal.take([0], axis)
        for level, contrast in term.contrasts.items():
            assert contrast.mean == pytest.approx(marginal[level])


def test_without_a_spread_there_is_no_test() -> None:
    assert analyze([{1: 70.0}, {1: 71.0}, {1: 72.0}, {1: 70.0}], (2, 2)) is None
    found = analyze([{1: 70.0, 2: 70.0}] * 3 + [{1: 80.0, 2: 80.0}], (2, 2))
    assert found is not None
    assert {(term.f, term.p) for term in found.terms} == {(None, None)}
    assert [next(iter(term.contrasts.values())).mean for term in found.terms] == [5.0, 5.0, 10.0]
