"""Test sets with a dominant sentence, such as a long list of names.

A tenth of all mentions in one sentence can decide which of two rows is ahead, whatever the seeds say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from jaxtyping import Int

from ner_experiments.analysis.archive import Errors
from ner_experiments.analysis.randomization import score
from ner_experiments.runs.archived_run import ArchivedRun, format_counts
from ner_experiments.tables.scores import Page, groups

DOMINANT_SHARE = 0.05
"""A sentence with a larger share of all gold mentions (or tags) is dominant."""
MIN_SENTENCES = 100
"""Smaller test sets have no dominant sentence, since even an average sentence has a large share."""


def dominant_sentence(gold: Int[np.ndarray, " sentences"]) -> int | None:
    """1-based index of the sentence with the most gold mentions if it exceeds `DOMINANT_SHARE`, else None."""
    if len(gold) < MIN_SENTENCES or gold.max() <= DOMINANT_SHARE * gold.sum():
        return None
    return int(gold.argmax()) + 1


def remarks(page: Page) -> list[str]:
    """A remark for each corpus of the page whose test set has a dominant sentence."""
    texts = []
    for group in groups(page.results):
        run = next(iter(group[0].runs.values()))
        gold = run.counts()[:, -1]
        if (number := dominant_sentence(gold)) is not None:
            unit = "tags" if run.metrics["task"] == "tags" else "mentions"
            share = f"{gold[number - 1]:,} of the {gold.sum():,} {unit}"
            texts.append(f"Sentence {number:,} of {run.metrics['data']['name']}'s test set has {share}.")
    return texts


def drop_sentence(page: Page) -> Page:
    """A page of archived runs, scored on test without its dominant sentence. Raises ValueError if there is none."""
    results = [
        it.with_runs({seed: _without_sentence(cast(ArchivedRun, run)) for seed, run in it.runs.items()})
        for it in page.results
    ]
    return replace(page, results=tuple(results))


def _without_sentence(run: ArchivedRun) -> ArchivedRun:
    """The run with its counts and score as its only figures on test."""
    counts = run.counts()
    if (number := dominant_sentence(counts[:, -1])) is None:
        raise ValueError(
            f"{run.folder}: no sentence of its test set holds more than {DOMINANT_SHARE:.0%} of it"
        )
    counts = np.delete(counts, number - 1, axis=0)
    content = {name: run.content[name] for name in ("label", "config", "epochs")}
    content |= {"counts": format_counts(counts), "test_every_epoch": []}
    content |= {"errors": Errors().record(), "calibration": None}
    return ArchivedRun(run.folder, {**run.metrics, "test": {run.primary_metric: score(counts)}}, content)
