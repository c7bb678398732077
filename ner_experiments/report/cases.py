"""For each pair of a table's rows what one gets right and the other wrong, and in which sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ner_experiments.analysis.predictions import Predicted
from ner_experiments.data.tags import spans
from ner_experiments.runs import KeptRun, Run
from ner_experiments.table_scores import Result

MOST = 300
"""Sentences on a page: those on which rows differ most, the shorter first."""
Pieces = list[tuple[str, str]]
"""A sentence in stretches: the type of the mention, or nothing, and the words."""


@dataclass(frozen=True)
class Case:
    """A sentence of test, from 1. `right` and `wrong`: the rows, from 0, that are so with every seed."""

    number: int
    right: list[int]
    wrong: list[int]
    gold: Pieces
    predicted: list[tuple[str, Pieces, bool]]


def shares(results: Sequence[Result]) -> np.ndarray:
    """[rows, sentences] the share of a row's seeds that get all of the sentence right."""
    return np.stack([np.mean([is_right(run.counts()) for run in it.runs.values()], axis=0) for it in results])


def is_right(counts: np.ndarray) -> np.ndarray:
    """[sentences] whether all mentions were found and no other; or all tags."""
    return (counts == counts[:, :1]).all(axis=1)


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
    differ = int((found.max(axis=0) > found.min(axis=0)).sum())
    texts = [f"{found.shape[1]:,} test sentences; on {differ:,} the rows differ in how often they are right."]
    own = {place: Result(it.row, runs=with_sentences(it.runs)) for place, it in enumerate(results)}
    readable = {place: result for place, result in own.items() if result.runs}
    shown: list[Case] = []
    if len(readable) < 2:
        texts.append("No sentences here: kept runs have none, for the licences of corpora.")
    else:
        shown = list(sentences(readable))
        if len(shown) == MOST:
            texts.append(f"Shown are {MOST}: those on which rows differ most, the shorter first.")
        if without := [text for it in results if (text := kept_alone(it))]:
            texts.append(f"Kept runs have no sentences, for the licences of corpora: {'; '.join(without)}.")
    return {
        "labels": labels,
        "rows": [(place, labels[place]) for place in readable],
        "matrix": list(zip(labels, matrix(found), strict=True)),
        "texts": texts,
        "cases": shown,
    }


def with_sentences(runs: Mapping[int, Run]) -> dict[int, Run]:
    return {seed: run for seed, run in runs.items() if not isinstance(run, KeptRun)}


def kept_alone(result: Result) -> str:
    """The row, or its seeds, whose sentences are not shown."""
    seeds = [f"{seed}" for seed, run in result.runs.items() if isinstance(run, KeptRun)]
    which = f", seed {', '.join(seeds)}" if 0 < len(seeds) < len(result.runs) else ""
    return f"{result.row.label}{which}" if seeds else ""


def sentences(rows: Mapping[int, Result]) -> Iterator[Case]:
    """Of those on which rows differ, the `MOST` on which they do most; `rows` by their place on the page."""
    places, results = list(rows), list(rows.values())
    found = shares(results)
    read = [{seed: run.predicted() for seed, run in result.runs.items()} for result in results]
    gold = next(iter(read[0].values()))
    gap = found.max(axis=0) - found.min(axis=0)
    order = sorted(np.flatnonzero(gap), key=lambda it: (-gap[it], len(gold[it].words), it))
    for number in order[:MOST]:
        share = found[:, number]
        predicted = [
            entry
            for result, runs in zip(results, read, strict=True)
            for entry in variants(result.row.label, {seed: run[number] for seed, run in runs.items()})
        ]
        right, wrong = ([places[row] for row in np.flatnonzero(share == value)] for value in (1, 0))
        sentence = gold[number]
        yield Case(int(number) + 1, right, wrong, pieces(sentence, sentence.gold), predicted)


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
