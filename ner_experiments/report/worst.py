"""The test sentences in which a row's runs make most errors, as each of them tags these."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ner_experiments.analysis.predictions import Predicted
from ner_experiments.report.cases import pieces, variants, with_sentences
from ner_experiments.report.sections import Section, Tagged
from ner_experiments.runs import Run

MOST = 50
"""Sentences on a page."""
ERRORS_EXPLAINED = {
    "mentions": "an error is a gold mention that was not found, or a predicted one that is none.",
    "tags": "an error is a wrong tag; marked are the tags that are not gold's.",
}


def worst_section(runs: Mapping[int, Run]) -> Section | None:
    """Of the runs in folders; kept ones have no sentences. None if there is nothing wrong in any."""
    own = with_sentences(runs)
    if not own:
        return None
    errors = np.mean([errors_of(run.counts()) for run in own.values()], axis=0)
    if not errors.any():
        return None
    read = {seed: run.predicted() for seed, run in own.items()}
    worst = [number for number in np.argsort(-errors, kind="stable")[:MOST] if errors[number]]
    shown = [
        worst_sentence(int(number) + 1, errors[number], {seed: found[number] for seed, found in read.items()})
        for number in worst
    ]
    task = next(iter(own.values())).metrics["task"]
    count = f"{np.count_nonzero(errors):,} of {len(errors):,} test sentences have errors"
    text = f"{count}; shown are {len(shown)}, those with most first. Means over runs; {ERRORS_EXPLAINED[task]}"
    return Section("worst", "Sentences with most errors", [text], sentences=shown)


def errors_of(counts: np.ndarray) -> np.ndarray:
    """[sentences] what of gold was not found, and what was found besides; or the tags that are not right."""
    return (counts[:, 1:] - counts[:, :1]).sum(axis=1)


def worst_sentence(number: int, errors: float, of_seed: Mapping[int, Predicted]) -> Tagged:
    """Errors are a mean over seeds."""
    first = next(iter(of_seed.values()))
    title = f"Sentence {number}, errors: {f'{errors:.1f}'.removesuffix('.0')}"
    return Tagged(title, pieces(first, first.gold), list(variants("predicted", of_seed)))
