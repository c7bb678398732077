"""Two rows of runs on one test set: which gold mentions both, one or neither of them finds, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from ner_experiments.analysis.cases import Case
from ner_experiments.analysis.outcomes import Outcomes
from ner_experiments.analysis.predictions import Predicted


@dataclass(frozen=True, slots=True)
class Agreement:
    """Gold mentions found by both rows, by the first or the second alone, and by neither.

    Means over pairs of runs, so not always whole; their sum is the number of gold mentions.
    """

    both: float
    first: float
    second: float
    neither: float


@dataclass(frozen=True)
class Agreements:
    """`pairs` is how many pairs of runs were taken; `groups` are by dimension and group as in `breakdown`."""

    pairs: int
    total: Agreement
    groups: dict[str, dict[str, Agreement]]


def agreements(first: Mapping[int, Outcomes], second: Mapping[int, Outcomes]) -> Agreements:
    """Of two rows' outcomes by seed; a mention is found if its boundaries and its type are right.

    Where both rows have the same seeds, the runs of one seed are a pair; else each run of the first is one
    with each of the second, as in `statistics.difference`. A dimension that one of them lacks is left out.
    ValueError if a row is empty, or if the rows' gold mentions differ.
    """
    check_same_mentions(first, second)
    a, b = (np.stack([row[seed].right for seed in sorted(row)]) for row in (first, second))
    if first.keys() == second.keys():
        parts, pairs = by_pair(a, b).mean(axis=0), len(a)
    else:
        one, other = a.mean(axis=0), b.mean(axis=0)  # the mean over all pairs is the product of the means
        parts, pairs = shares(one, other), len(a) * len(b)
    every = [outcomes.groups for row in (first, second) for outcomes in row.values()]
    groups = {
        name: {group: agreement(parts[:, grouped.of == number]) for number, group in enumerate(grouped.names)}
        for name, grouped in every[0].items()
        if all(name in of_run for of_run in every)
    }
    return Agreements(pairs, agreement(parts), groups)


def by_pair(
    a: Bool[np.ndarray, "pairs mentions"], b: Bool[np.ndarray, "pairs mentions"]
) -> Float[np.ndarray, "pairs 4 mentions"]:
    return np.stack([shares(one, other) for one, other in zip(a, b, strict=True)])


def shares(a: np.ndarray, b: np.ndarray) -> Float[np.ndarray, "4 mentions"]:
    """For each mention, of which `a` and `b` say whether, or how often, it is found: 1 or a part of it."""
    a, b = a.astype(float), b.astype(float)
    return np.stack([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)])


def agreement(parts: Float[np.ndarray, "4 mentions"]) -> Agreement:
    return Agreement(*(float(part) for part in parts.sum(axis=1)))


def check_same_mentions(first: Mapping[int, Outcomes], second: Mapping[int, Outcomes]) -> None:
    runs = [*first.values(), *second.values()]
    if not (first and second):
        raise ValueError("two rows can be compared that have a run each, got one without")
    sizes = {len(run.right) for run in runs}
    if len(sizes) > 1:
        raise ValueError(
            f"rows of one test set: expected the same gold mentions, got {sorted(sizes)} of them"
        )
    for name, grouped in runs[0].groups.items():
        others = [run.groups[name] for run in runs if name in run.groups]
        if any(it.names != grouped.names or (it.of != grouped.of).any() for it in others):
            raise ValueError(f"rows of one test set: their gold mentions differ in {name}")


def cases(first: Sequence[Sequence[Predicted]], second: Sequence[Sequence[Predicted]]) -> list[Case]:
    """The sentences that one row gets right in more of its runs than the other does.

    A sentence is right if all its tags are. Those come first in which the rows differ most, by the shares of
    their runs, and of these the shortest. `Case.predicted` has the first row's runs, then the second's. The
    runs are of the same sentences, as the outcomes of their mentions are.
    """
    runs = [*first, *second]
    found = [
        (abs(gap), Case(number, same[0].words, same[0].gold, tuple(it.predicted for it in same)))
        for number, same in enumerate(zip(*runs, strict=True), start=1)
        if (gap := difference(same[: len(first)], same[len(first) :]))
    ]
    return [case for _, case in sorted(found, key=lambda it: (-it[0], len(it[1].words), it[1].number))]


def difference(first: Sequence[Predicted], second: Sequence[Predicted]) -> float:
    """Share of the first that is right, minus that of the second."""
    one, other = (sum(it.predicted == it.gold for it in row) / len(row) for row in (first, second))
    return one - other
