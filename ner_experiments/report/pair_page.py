"""Page of disagreements: for each pair of rows, the test sentences that one tags correctly and the other does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from ner_experiments.analysis.disagreements import correct_sentences
from ner_experiments.analysis.sentences import sentence, types_of, with_sentences
from ner_experiments.tables.scores import Result
from ner_experiments.view.mentions import Sentence

MAX_SENTENCES = 300
"""Number of sentences on a page; more only if each pair of rows needs at least one."""
DIGITS = 9
"""Shares are compared after rounding to this many digits."""


@dataclass(frozen=True)
class Case:
    """A test sentence of the page with its number from 1.

    correct, wrong: indices of the rows that tag it so with some seed.
    """

    number: int
    sentence: Sentence
    correct: list[int]
    wrong: list[int]


def correct_shares(results: Sequence[Result]) -> np.ndarray:
    """Share of each row's seeds that tag the whole sentence correctly, [rows, sentences]."""
    return np.stack([correct_sentences(result.counts).mean(axis=0) for result in results])


def matrix(shares: np.ndarray) -> list[list[str | None]]:
    """Number of sentences that the line's row tags correctly and the column's does not; means over pairs of seeds."""
    counts = shares @ (1 - shares).T
    return [
        [None if line == column else f"{counts[line, column]:.1f}" for column in range(len(counts))]
        for line in range(len(counts))
    ]


def context(results: Sequence[Result]) -> dict[str, Any]:
    """Variables of the template: counts from all runs; sentences if at least two rows have runs with sentences."""
    labels, of_rows = [result.row.label for result in results], correct_shares(results)
    differ = int(((of_rows > 0).any(axis=0) & (of_rows < 1).any(axis=0)).sum())
    total = f"{of_rows.shape[1]:,} test sentences"
    texts = [f"{total}; {differ:,} are tagged correctly by some of the rows' runs and wrong by others."]
    with_text = {
        index: result if len(own) == len(result.runs) else Result(result.row, runs=own)
        for index, result in enumerate(results)
        for own in [with_sentences(result.runs)]
    }
    readable = {index: result for index, result in with_text.items() if result.runs}
    cases: list[Case] = []
    if len(readable) < 2:
        texts.append("No sentences here: archived runs have none, for the licenses of corpora.")
    else:
        cases, criterion = select_cases(readable)
        texts.append(f"Shown: {'all' if len(cases) == differ else len(cases)} of these{criterion}.")
        if missing := [text for result in results if (text := archived_label(result))]:
            texts.append(
                f"Archived runs have no sentences, for the licenses of corpora: {'; '.join(missing)}."
            )
    return {
        "labels": labels,
        "rows": [(index, labels[index]) for index in readable],
        "matrix": list(zip(labels, matrix(of_rows), strict=True)),
        "shown": num_shown(of_rows, cases),
        "texts": texts,
        "cases": cases,
    }


def num_shown(shares: np.ndarray, cases: Sequence[Case]) -> dict[tuple[int, int], str]:
    """Number of sentences shown for each pair of rows that has sentences on the page."""
    texts = {}
    for line, column in permutations(range(len(shares)), 2):
        if shown := sum(line in case.correct and column in case.wrong for case in cases):
            total = np.count_nonzero((shares[line] > 0) & (shares[column] < 1))
            texts[line, column] = f"{shown:,} of {total:,}"
    return texts


def archived_label(result: Result) -> str:
    """Label of a row with archived runs, and their seeds if others have sentences; empty without archived runs."""
    seeds = [f"{seed}" for seed, run in result.runs.items() if run.archived]
    suffix = f", seed {', '.join(seeds)}" if 0 < len(seeds) < len(result.runs) else ""
    return f"{result.row.label}{suffix}" if seeds else ""


def select_cases(rows: Mapping[int, Result]) -> tuple[list[Case], str]:
    """The sentences that rank highest for some pair of rows, and the criterion as text. rows: by index on the page."""
    indices, results = list(rows), list(rows.values())
    shares = correct_shares(results)
    predictions = [{seed: run.predicted() for seed, run in result.runs.items()} for result in results]
    gold = next(iter(predictions[0].values()))
    selected, each = select(shares, np.array([len(sentence.words) for sentence in gold]))
    labels = [result.row.label for result in results]
    task = next(iter(results[0].runs.values())).metrics["task"]
    tagged = {
        int(number): [{seed: run[number] for seed, run in runs.items()} for runs in predictions]
        for number in selected
    }
    types = types_of((it for rows in tagged.values() for row in rows for it in row.values()), task)
    cases = []
    for number, by_row in tagged.items():
        share = shares[:, number]
        correct = [indices[row] for row in np.flatnonzero(share > 0)]
        wrong = [indices[row] for row in np.flatnonzero(share < 1)]
        of_rows = list(zip(labels, by_row, strict=True))
        shown = sentence(f"Sentence {number + 1}", of_rows, task, types)
        cases.append(Case(number + 1, shown, correct, wrong))
    criterion = f", at least {each} for each pair of rows with as many: those that weigh most in its number"
    return cases, criterion if each < shares.shape[1] else ""


def select(shares: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, int]:
    """Sentences to show, those on which rows differ most first, and how many of each pair are among them.

    The number per pair is the largest that keeps the page within `MAX_SENTENCES`, and at least one.
    """
    best = best_ranks(shares, lengths)
    bound = np.sort(best)[MAX_SENTENCES:]
    each = max(1, int(bound[0])) if len(bound) else len(best)
    gap = (shares.max(axis=0) - shares.min(axis=0)).round(DIGITS)
    order = np.lexsort((lengths, -gap))
    return order[best[order] < each], each


def best_ranks(shares: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Best rank of each sentence over all ordered pairs of rows, from 0; the number of sentences if it has none.

    The sentences of a pair are ranked by what they add to its count in `matrix`, shorter ones first among equals.
    """
    best = np.full(shares.shape[1], shares.shape[1])
    for correct, wrong in permutations(shares, 2):
        weights = (correct * (1 - wrong)).round(DIGITS)
        order = np.lexsort((lengths, -weights))[: np.count_nonzero(weights)]
        best[order] = np.minimum(best[order], np.arange(len(order)))
    return best
