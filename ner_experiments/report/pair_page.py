"""For each pair of a table's rows what one gets right and the other wrong, and in which sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from ner_experiments.analysis.disagreements import correct_sentences
from ner_experiments.data.tags import spans
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import ArchivedRun, Run
from ner_experiments.tables.scores import Result

MOST = 300
"""Sentences on a page, unless one for each pair of rows are more already."""
DIGITS = 9
"""Of shares; what differs behind these was rounded otherwise."""
Pieces = list[tuple[str, str]]
"""A sentence in stretches: the type of the mention, or nothing, and the words."""


@dataclass(frozen=True)
class Case:
    """A sentence of test, from 1. `right` and `wrong`: the rows, from 0, that are so with some seed."""

    number: int
    right: list[int]
    wrong: list[int]
    gold: Pieces
    predicted: list[tuple[str, Pieces, bool]]


def shares(results: Sequence[Result]) -> np.ndarray:
    """[rows, sentences] the share of a row's seeds that get all of the sentence right."""
    return np.stack(
        [np.mean([correct_sentences(run.counts()) for run in it.runs.values()], axis=0) for it in results]
    )


def matrix(found: np.ndarray) -> list[list[str | None]]:
    """How many sentences the row of a line has right and that of a column wrong: means over their seeds."""
    counts = found @ (1 - found).T
    return [
        [None if line == column else f"{counts[line, column]:.1f}" for column in range(len(counts))]
        for line in range(len(counts))
    ]


def context(results: Sequence[Result]) -> dict[str, Any]:
    """What the page shows: counts of all runs, and sentences of those in folders, if two rows have some."""
    labels, found = [result.row.label for result in results], shares(results)
    differ = int(((found > 0).any(axis=0) & (found < 1).any(axis=0)).sum())
    of_all = f"{found.shape[1]:,} test sentences"
    texts = [f"{of_all}; {differ:,} are tagged right by some of the rows' runs and wrong by others."]
    own = {place: Result(it.row, runs=with_sentences(it.runs)) for place, it in enumerate(results)}
    readable = {place: result for place, result in own.items() if result.runs}
    shown: list[Case] = []
    if len(readable) < 2:
        texts.append("No sentences here: kept runs have none, for the licences of corpora.")
    else:
        shown, how = sentences(readable)
        texts.append(f"Shown: {'all' if len(shown) == differ else len(shown)} of these{how}.")
        if without := [text for it in results if (text := kept_alone(it))]:
            texts.append(f"Kept runs have no sentences, for the licences of corpora: {'; '.join(without)}.")
    return {
        "labels": labels,
        "rows": [(place, labels[place]) for place in readable],
        "matrix": list(zip(labels, matrix(found), strict=True)),
        "behind": behind(found, shown),
        "texts": texts,
        "cases": shown,
    }


def behind(found: np.ndarray, shown: Sequence[Case]) -> dict[tuple[int, int], str]:
    """Of pairs with sentences on the page: how many these are of those that their number counts."""
    made = {}
    for line, column in permutations(range(len(found)), 2):
        if here := sum(line in case.right and column in case.wrong for case in shown):
            made[line, column] = f"{here:,} of {np.count_nonzero((found[line] > 0) & (found[column] < 1)):,}"
    return made


def with_sentences(runs: Mapping[int, Run]) -> dict[int, Run]:
    return {seed: run for seed, run in runs.items() if not isinstance(run, ArchivedRun)}


def kept_alone(result: Result) -> str:
    """The row, or its seeds, whose sentences are not shown."""
    seeds = [f"{seed}" for seed, run in result.runs.items() if isinstance(run, ArchivedRun)]
    which = f", seed {', '.join(seeds)}" if 0 < len(seeds) < len(result.runs) else ""
    return f"{result.row.label}{which}" if seeds else ""


def sentences(rows: Mapping[int, Result]) -> tuple[list[Case], str]:
    """Those that count most for some pair, and how they were chosen; `rows` by their place on the page."""
    places, results = list(rows), list(rows.values())
    found = shares(results)
    read = [{seed: run.predicted() for seed, run in result.runs.items()} for result in results]
    gold = next(iter(read[0].values()))
    order, each = chosen(found, np.array([len(it.words) for it in gold]))
    shown = []
    for number in order:
        predicted = [
            entry
            for result, runs in zip(results, read, strict=True)
            for entry in variants(result.row.label, {seed: run[number] for seed, run in runs.items()})
        ]
        share, sentence = found[:, number], gold[number]
        right, wrong = ([places[row] for row in np.flatnonzero(it)] for it in (share > 0, share < 1))
        shown.append(Case(int(number) + 1, right, wrong, pieces(sentence, sentence.gold), predicted))
    how = f", at least {each} for each pair of rows that has so many: those that count most in its number"
    return shown, how if each < found.shape[1] else ""


def chosen(found: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, int]:
    """The sentences to show, first those on which rows differ most, and how many of each pair are among them.

    These are as many as there is room for, one at least; without a bound, as many as there are sentences.
    """
    best = best_places(found, lengths)
    bound = np.sort(best)[MOST:]
    each = max(1, int(bound[0])) if len(bound) else len(best)
    gap = (found.max(axis=0) - found.min(axis=0)).round(DIGITS)
    order = np.lexsort((lengths, -gap))
    return order[best[order] < each], each


def best_places(found: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """[sentences] the first place, from 0, that each has among those of a pair; of no pair, their number.

    The sentences of a pair are in the order of what they add to its number, the shorter first.
    """
    best = np.full(found.shape[1], found.shape[1])
    for right, wrong in permutations(found, 2):
        weights = (right * (1 - wrong)).round(DIGITS)
        order = np.lexsort((lengths, -weights))[: np.count_nonzero(weights)]
        best[order] = np.minimum(best[order], np.arange(len(order)))
    return best


def variants(label: str, of_seed: Mapping[int, Predicted]) -> Iterator[tuple[str, Pieces, bool]]:
    """Each way in which a row tags the sentence, with the seeds that do, if not all do."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for seed, sentence in of_seed.items():
        groups.setdefault(sentence.predicted, []).append(seed)
    for tags, seeds in groups.items():
        sentence = of_seed[seeds[0]]
        which = "" if len(groups) == 1 else f", seed {', '.join(map(str, seeds))}"
        yield f"{label}{which}", pieces(sentence, tags), tags == sentence.gold


def pieces(sentence: Predicted, tags: Sequence[str]) -> Pieces:
    """The mentions and what is between them; of tags that are no mentions, those that are not gold's."""
    words = sentence.words
    try:
        found = sorted(spans(tags))
    except ValueError:
        return [
            ("" if tag == gold else tag, word)
            for word, tag, gold in zip(words, tags, sentence.gold, strict=True)
        ]
    made: Pieces = []
    end = 0
    for start, stop, kind in found:
        if start > end:
            made.append(("", " ".join(words[end:start])))
        made.append((kind, " ".join(words[start:stop])))
        end = stop
    return [*made, ("", " ".join(words[end:]))] if end < len(words) else made
