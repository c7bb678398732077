"""Test sentences as gold and as one or several runs tag them, with their errors; and those with most errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from ner_experiments.analysis.disagreements import Case
from ner_experiments.analysis.errors import (
    BOTH,
    BOUNDARY,
    MISSING,
    SPURIOUS,
    WRONG_TYPE,
    aligned,
    kind,
    num_errors,
    overlap,
)
from ner_experiments.data.sentence import Task
from ner_experiments.data.tags import Span
from ner_experiments.runs.predictions import UNREACHABLE, Predicted, mentions, record, surface
from ner_experiments.runs.run import Run
from ner_experiments.view.mentions import Segment, Sentence, Tagging

NAMES = {
    MISSING: "missing",
    SPURIOUS: "spurious",
    WRONG_TYPE: "wrong type",
    BOUNDARY: "wrong boundary",
    BOTH: "wrong type and boundary",
}
"""The name of each kind of error for readers, in the order in which sentences are shown."""
ERRORS_EXPLAINED = {
    "mentions": "an error is a missing or a spurious mention; a wrong boundary or type counts as both.",
    "tags": "an error is a wrong tag. Wrong tags are marked.",
}
"""The errors that are counted in a sentence, by task."""


@dataclass(frozen=True)
class WrongSentence:
    """A test sentence with errors: its number from 1, its mean number of errors over the runs, its tagging by seed."""

    number: int
    errors: float
    by_seed: Mapping[int, Predicted]
    task: Task = "mentions"

    @cached_property
    def kinds(self) -> Counter[str]:
        """How often each kind of error occurs, over all runs; none for single tags."""
        if self.task == "tags":
            return Counter()
        return Counter(name for it in {*self.by_seed.values()} for name in aligned(it).kinds())

    def record(self) -> dict[str, Any]:
        """JSON content."""
        kinds = [name for name in NAMES if self.kinds[name]]
        tagged = record([*self.by_seed.values()])
        by_seed = dict(zip(self.by_seed, tagged["predicted"], strict=True))
        return {
            "sentence": self.number,
            "errors": self.errors,
            "kinds": kinds,
            **tagged,
            "predicted": by_seed,
        }

    def shown(self, types: Sequence[str]) -> Sentence:
        kinds = [name for name in NAMES if self.kinds[name]]
        names = [NAMES[name] for name in kinds]
        errors = f"{self.errors:.1f}".removesuffix(".0")
        title = f"Sentence {self.number}, errors: {errors}" + f" ({', '.join(names)})" * bool(names)
        return sentence(title, [("predicted", self.by_seed)], self.task, types, kinds)


def wrong_sentences(runs: Mapping[int, Run]) -> list[WrongSentence]:
    """The test sentences that a run of a row tags wrongly, those with most errors first. runs: by seed.

    Empty for archived runs, which have no sentences.
    """
    readable = with_sentences(runs)
    if not readable:
        return []
    errors = np.mean([num_errors(run.counts()) for run in readable.values()], axis=0)
    predicted = {seed: run.predicted() for seed, run in readable.items()}
    task = next(iter(readable.values())).metrics["task"]
    return [
        WrongSentence(
            int(number) + 1, float(errors[number]), {seed: it[number] for seed, it in predicted.items()}, task
        )
        for number in np.argsort(-errors, kind="stable")
        if errors[number]
    ]


def by_kind(wrong: Sequence[WrongSentence], most: int) -> dict[str, list[WrongSentence]]:
    """The first sentences with each kind of error, at most `most` of a kind, and each sentence once."""
    found: dict[str, list[WrongSentence]] = {}
    left = list(wrong)
    for name in NAMES:
        found[name] = [it for it in left if it.kinds[name]][:most]
        left = [it for it in left if it not in found[name]]
    return found


def with_sentences(runs: Mapping[int, Run]) -> dict[int, Run]:
    """The runs in folders of their own, by seed; archived ones have no sentences, for the licenses of corpora."""
    return {seed: run for seed, run in runs.items() if not run.archived}


def types_of(sentences: Iterable[Predicted], task: Task) -> list[str]:
    """The types that gold or a run has in the sentences, sorted; the tags if single tokens are tagged."""
    tags = {tag for it in sentences for tag in it.tags}
    return sorted(tags if task == "tags" else {tag[2:] for tag in tags if tag != "O"})


def sentence(
    title: str,
    rows: Sequence[tuple[str, Mapping[int, Predicted]]],
    task: Task,
    types: Sequence[str],
    kinds: Iterable[str] = (),
) -> Sentence:
    """A sentence as gold and the runs of some rows tag it. rows: label of each, and its taggings by seed."""
    first = next(iter(rows[0][1].values()))
    gold = Tagging("gold", gold_segments(first, task))
    return Sentence(
        title,
        [gold, *(it for label, row in rows for it in taggings(label, row, task))],
        types,
        " ".join(kinds),
    )


def of_cases(cases: Sequence[Case]) -> list[Sentence]:
    """Sentences as the runs, which are numbered, tag them."""
    types = types_of((it for case in cases for it in case.tagged), "mentions")
    return [
        sentence(
            f"Sentence {case.number}",
            [(f"{n}", {0: it}) for n, it in enumerate(case.tagged, start=1)]
            if len(case.tagged) > 1
            else [("predicted", {0: case.tagged[0]})],
            "mentions",
            types,
        )
        for case in cases
    ]


def taggings(label: str, by_seed: Mapping[int, Predicted], task: Task) -> Iterator[Tagging]:
    """Each tagging of the sentence by a row, with its seeds if they differ, and whether it is correct."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for seed, it in by_seed.items():
        groups.setdefault(it.predicted, []).append(seed)
    for tags, seeds in groups.items():
        it = by_seed[seeds[0]]
        suffix = "" if len(groups) == 1 else f", seed {', '.join(map(str, seeds))}"
        yield Tagging(f"{label}{suffix}", predicted_segments(it, task), tags == it.gold)


def gold_segments(it: Predicted, task: Task) -> list[Segment]:
    """The words with gold's mentions; without marks if single tokens are tagged."""
    return segments(it.words, {} if task == "tags" else dict.fromkeys(mentions(it.gold), ""))


def predicted_segments(it: Predicted, task: Task) -> list[Segment]:
    """The words with the predicted mentions and what is wrong with each; of single tags, only the wrong ones.

    A missing mention is marked too, unless a predicted one overlaps it.
    """
    if task == "tags":
        tags = enumerate(zip(it.gold, it.predicted, strict=True))
        return segments(it.words, {(n, n + 1, tag): f"gold {gold}" for n, (gold, tag) in tags if gold != tag})
    found = aligned(it)
    notes = {predicted: note(gold, predicted) for gold, predicted in found.pairs}
    notes |= dict.fromkeys(found.spurious, NAMES[SPURIOUS])
    missing = [gold for gold in found.missing if not any(overlap(gold, other) for other in notes)]
    return segments(it.words, notes | dict.fromkeys(missing, NAMES[MISSING]))


def note(gold: Span, predicted: Span) -> str:
    """The errors of a predicted mention as a note; empty for a correct one."""
    if gold == predicted:
        return ""
    error = kind(gold, predicted)
    boundary = [] if error == WRONG_TYPE else [NAMES[BOUNDARY]]
    return ", ".join([*boundary, *([] if error == BOUNDARY else [f"gold {gold[2]}"])])


def segments(words: Sequence[str], notes: Mapping[Span, str]) -> list[Segment]:
    """The tokens, joined by spaces, as mentions with their notes and what is between them; then the other mentions.

    Those are gold mentions that tokens cannot express, and predicted ones that overlap others or are not in the text.
    """
    tokens = [word for word in words if not word.startswith(UNREACHABLE)]
    text = " ".join(tokens)
    starts = [0, *accumulate(len(word) + 1 for word in tokens)]
    found: list[Segment] = []
    others: list[Segment] = []
    done = 0
    for (start, stop, type_), about in sorted(notes.items()):
        if start >= len(tokens):
            text_of_it = surface(words[start:stop])
            is_there = text_of_it.replace(" ", "") in "".join(tokens)
            others.append(Segment(f" | {'also' if is_there else 'not in the text'}: "))
            others.append(Segment(text_of_it, type_, about, bool(about)))
            continue
        first, last = starts[start], starts[stop] - 1
        if first > done:
            found.append(Segment(text[done:first]))
        found.append(Segment(text[first:last], type_, about, bool(about)))
        done = last
    return [*found, *([Segment(text[done:])] if done < len(text) else []), *others]
