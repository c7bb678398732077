"""How much of a test set stands in one sentence, such as a list of names, and what is measured without it.

A tenth of all mentions in one sentence can decide which of two rows is ahead, whatever the seeds say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from jaxtyping import Int

from ner_experiments.randomisation import score
from ner_experiments.runs import KeptRun, in_a_line
from ner_experiments.table_scores import Page, Result, groups

SHARE = 0.05
"""Of all that is scored: a sentence that holds more is heavy."""
SENTENCES = 100
"""A test set of fewer has no heavy sentence: there the mean sentence holds much."""


def heaviest(gold: Int[np.ndarray, " sentences"]) -> int | None:
    """Of the sentences that are heavy the one that holds most, by its number, from 1; None if none is."""
    if len(gold) < SENTENCES or gold.max() <= SHARE * gold.sum():
        return None
    return int(gold.argmax()) + 1


def remarks(page: Page) -> list[str]:
    """On each corpus of its runs that has a heavy sentence in test."""
    found = []
    for group in groups(page.results):
        run = next(iter(group[0].runs.values()))
        gold = run.counts()[:, -1]
        if (number := heaviest(gold)) is not None:
            test = f"{run.metrics['data']['name']}'s test, number {number:,}"
            what = "tags" if run.metrics["task"] == "tags" else "mentions"
            found.append(f"One sentence of {test}, has {gold[number - 1]:,} of its {gold.sum():,} {what}.")
    return found


def without(page: Page) -> Page:
    """A page of kept runs, scored on test without its heaviest sentence. ValueError if none is heavy."""
    return replace(page, results=tuple(one_fewer(result) for result in page.results))


def one_fewer(result: Result) -> Result:
    runs = {seed: scored_without(cast(KeptRun, run)) for seed, run in result.runs.items()}
    return replace(result, runs=runs, scores={seed: run.score for seed, run in runs.items()})


def scored_without(run: KeptRun) -> KeptRun:
    """With its counts and score alone; of all else on test nothing, as in a run that was kept without."""
    counts = run.counts()
    if (number := heaviest(counts[:, -1])) is None:
        raise ValueError(f"{run.folder}: no sentence of its test set holds more than {SHARE:.0%} of it")
    counts = np.delete(counts, number - 1, axis=0)
    content = {name: run.content[name] for name in ("label", "config", "epochs")}
    content |= {"counts": in_a_line(counts), "figures": {}, "peeked": []}
    return KeptRun(run.folder, {**run.metrics, "test": {run.headline: score(counts)}}, content)
