"""How much of a test set stands in one sentence, such as a list of names, and what is measured without it.

A tenth of all mentions in one sentence can decide which of two rows is ahead, whatever the seeds say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from ner_experiments.randomisation import score
from ner_experiments.runs import Run
from ner_experiments.table_scores import Page, Result, groups

SHARE = 0.05
"""Of all that is scored: from here on a sentence is spoken of."""
SENTENCES = 100
"""A smaller test set is not spoken of: there the mean sentence holds much."""


@dataclass(frozen=True)
class WithoutSentence(Run):
    """A run as if its test set had a sentence fewer: its counts and its score, no other of its figures."""

    run: Run
    number: int
    """Of the sentence, from 1."""

    def counts(self) -> np.ndarray:
        return fewer(self.run.counts(), self.number)


def without(page: Page, number: int) -> Page:
    """The page, scored on test without the sentence of that number, from 1. ValueError if test has none."""
    return replace(page, results=tuple(one_fewer(result, number) for result in page.results))


def one_fewer(result: Result, number: int) -> Result:
    runs = {seed: scored_without(run, number) for seed, run in result.runs.items()}
    return replace(result, runs=runs, scores={seed: run.score for seed, run in runs.items()})


def scored_without(run: Run, number: int) -> WithoutSentence:
    counts = run.counts()
    if not 1 <= number <= len(counts):
        raise ValueError(f"{run.folder}: expected a sentence from 1 to {len(counts)}, got {number}")
    test = {run.headline: score(fewer(counts, number))}
    return WithoutSentence(run.folder, {**run.metrics, "test": test}, run, number)


def fewer(
    counts: Int[np.ndarray, "sentences counts"], number: int
) -> Int[np.ndarray, "fewer_sentences counts"]:
    return np.delete(counts, number - 1, axis=0)


def remarks(page: Page) -> list[str]:
    """On each corpus of its runs of which one test sentence holds more than `SHARE`."""
    found = []
    for group in groups(page.results):
        run = next(iter(group[0].runs.values()))
        gold = run.counts()[:, -1]
        if (number := heavy(gold)) is not None:
            what = "tags" if run.metrics["task"] == "tags" else "mentions"
            held = f"{gold[number - 1]:,} of its {gold.sum():,} {what}"
            found.append(
                f"One sentence of {run.metrics['data']['name']}'s test, number {number:,}, has {held}."
            )
    return found


def heavy(gold: Int[np.ndarray, " sentences"]) -> int | None:
    """The number, from 1, of the sentence that holds more than `SHARE` of all; None if there is none."""
    place = int(gold.argmax()) if len(gold) >= SENTENCES else None
    return None if place is None or gold[place] <= SHARE * gold.sum() else place + 1
