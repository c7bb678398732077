"""Differences between the rows of a table, and their significance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ner_experiments.analysis import statistics
from ner_experiments.analysis.randomization import Randomization, randomization_test
from ner_experiments.analysis.statistics import Difference
from ner_experiments.tables.scores import Page, Result, groups, reference
from ner_experiments.tables.spec import Row


@dataclass(frozen=True)
class Comparison:
    """A row compared with the reference on one test set: over seeds, and over seeds and sentences.

    p_adjusted: p over seeds, corrected by Holm for the number of rows of the table that have such a p; None without.
    seeds: the number of seeds per row with which a difference of this size is detected with 80 % power;
        None if a row has one seed, or if the means are equal.
    """

    row: Row
    reference: Row
    over_seeds: Difference
    over_sentences: Randomization
    seeds: int | None
    p_adjusted: float | None = None


def compare_rows(page: Page) -> list[Comparison]:
    """Compare each row with the reference of its data: the row with the best published number."""
    comparisons = []
    for group in groups(page.results):
        best = reference(group)
        comparisons += [compare(result, best) for result in group if result is not best]
    adjusted = statistics.holm_of_tested([it.over_seeds.p for it in comparisons])
    return [replace(it, p_adjusted=p) for it, p in zip(comparisons, adjusted, strict=True)]


def compare(result: Result, reference: Result) -> Comparison:
    ours, best = result.measured, reference.measured
    assert ours is not None
    assert best is not None
    gap = ours.mean - best.mean
    spread = ours.sd is not None and best.sd is not None
    return Comparison(
        row=result.row,
        reference=reference.row,
        over_seeds=statistics.difference(result.scores, reference.scores),
        over_sentences=randomization_test(all_counts(result), all_counts(reference)),
        seeds=statistics.seeds_needed(ours.sd or 0.0, best.sd or 0.0, gap) if spread and gap else None,
    )


def all_counts(result: Result) -> np.ndarray:
    """Counts of a row's runs, as `runs.predictions.count`, [runs, sentences, counts]."""
    return np.stack([run.counts() for run in result.runs.values()])
