"""Predictions of a finished run: reading, writing and counting the sentences of predictions/*.conll."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, repeat
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np

from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.data.tags import Span, encode, spans, strict_spans
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.text import truncated_repr

UNREACHABLE = "\u2400"
"""First character of the words of an unreachable gold mention, which no token has."""


@dataclass(frozen=True)
class Predicted:
    """A sentence with its gold and predicted tags, mentions in IOB2; spaces within a field are U+2423.

    After its tokens come the words of gold mentions that its tokens cannot express, so that these count as missing.
    What is computed from its tags is kept: runs that tag a sentence alike share the object.
    tokens: where words are parts of tokens of gold, which other tools cut, the number of each word's token; else empty.
    """

    words: tuple[str, ...]
    gold: tuple[str, ...]
    predicted: tuple[str, ...]
    tokens: tuple[int, ...] = ()

    @cached_property
    def num_tokens(self) -> int:
        """Number of its tokens, without the words of unreachable mentions."""
        return next((n for n in range(len(self.words), 0, -1) if self.words[n - 1][0] != UNREACHABLE), 0)

    @cached_property
    def tags(self) -> frozenset[str]:
        """The distinct gold and predicted tags."""
        return frozenset(self.gold + self.predicted)

    @cached_property
    def correct_mentions(self) -> tuple[bool, ...]:
        """Whether each predicted mention is correct."""
        return tuple(map({*mentions(self.gold)}.__contains__, mentions(self.predicted)))

    @cached_property
    def mention_counts(self) -> tuple[int, int, int]:
        """Numbers of correct, predicted and gold mentions."""
        correct = self.correct_mentions
        return sum(correct), len(correct), len(mentions(self.gold))

    def correct(self, task: Task) -> tuple[bool, ...]:
        """Whether each predicted mention is correct, or each tag if single tokens are tagged."""
        if task == "mentions":
            return self.correct_mentions
        return tuple(map(str.__eq__, self.gold, self.predicted))


def record(tagged: Sequence[Predicted]) -> dict[str, Any]:
    """JSON content of a sentence as one or several runs tag it: its tokens with the tags of gold and of each run.

    others: the mentions that are not in these tags, if there are any: whether gold has each, and whether each run does.
    """
    number = tagged[0].num_tokens
    gold, *predicted = (it[:number] for it in (tagged[0].gold, *(it.predicted for it in tagged)))
    content: dict[str, Any] = {"words": tagged[0].words[:number], "gold": gold, "predicted": predicted}
    there = [{*mentions(tags)} for tags in (tagged[0].gold, *(it.predicted for it in tagged))]
    others = [it for it in sorted(set[Span]().union(*there)) if it[0] >= number]
    if others:
        content["others"] = [
            {
                "text": surface(tagged[0].words[it[0] : it[1]]),
                "type": it[2],
                "gold": it in there[0],
                "predicted": [it in of_run for of_run in there[1:]],
            }
            for it in others
        ]
    return content


def surface(words: Iterable[str]) -> str:
    """The text of words, such as those of an unreachable mention."""
    return " ".join(word.removeprefix(UNREACHABLE) for word in words)


def read(run: Path, split: str = "test") -> list[Predicted]:
    """The sentences of a split, in the order of the corpus. Raises ValueError if the run has none."""
    return read_file(file(run, f"predictions/{split}.conll"))


def read_file(path: Path) -> list[Predicted]:
    """The sentences of a file of predictions. ValueError, with the line of the sentence, for another content."""
    blocks = text_of(path).removesuffix("\n\n").split("\n\n")
    sentences: list[Predicted] = []
    try:
        sentences.extend(map(sentence, blocks))
    except ValueError:
        line = 1 + sum(block.count("\n") + 2 for block in blocks[: len(sentences)])
        expected = "expected a sentence with token, gold tag and predicted tag in each line"
        raise ValueError(f"{path}:{line}: {expected}") from None
    return sentences


def text_of(path: Path) -> str:
    """The text of a file. ValueError, with the byte, if it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 at byte {error.start + 1}") from None


def file(run: Path, name: str) -> Path:
    """Path of a file of a run's folder. Raises ValueError if it does not exist, with the runs of a folder of runs."""
    path = run / name
    if path.is_file():
        return path
    expected = f"{run}: expected the folder of a finished run, but"
    if not run.exists():
        raise ValueError(f"{expected} there is no such folder")
    seeds = ", ".join(sorted(each.relative_to(run).parts[0] for each in run.glob(f"seed-*/{name}")))
    raise ValueError(f"{expected} it has no {name}" + (f"; its runs are {seeds}" if seeds else ""))


def units(tags: Sequence[str], task: Task) -> list[Span]:
    """The scored units: the mentions, or each token with its tag if single tokens are tagged."""
    if task == "mentions":
        return [*mentions(tuple(tags))]
    return [(place, place + 1, tag) for place, tag in enumerate(tags)]


def as_field(text: str) -> str:
    """A word or tag as it is written in files of predictions, with U+2423 for spaces and for U+2400."""
    return text.replace(" ", "␣").replace(UNREACHABLE, "␣")


def count(sentences: Sequence[Predicted], task: Task) -> np.ndarray:
    """Counts, [sentences, counts]: correct, predicted and gold mentions; or correct tags and all tags."""
    if task == "tags":
        return np.array([(sum(it.correct(task)), len(it.gold)) for it in sentences])
    return np.array([it.mention_counts for it in sentences])


@lru_cache(maxsize=100_000)
def mentions(tags: tuple[str, ...]) -> tuple[Span, ...]:
    """The mentions of a sentence, in order.

    Cached: the runs of a table have the same gold tags, and mostly the same others.
    """
    return tuple(spans(tags))


@lru_cache(maxsize=100_000)
def sentence(block: str) -> Predicted:
    """The sentence of a block of lines. Cached, as `mentions`: runs that tag a sentence alike share the object."""
    columns = zip(*(line.rsplit(" ", 2) for line in block.split("\n")), strict=True)
    words, gold, predicted = (tuple(map(intern, column)) for column in columns)  # half of the memory
    return Predicted(words, gold, predicted)


def write_predictions(
    path: Path, task: Task, sentences: Sequence[Sentence], predicted: Iterable[Sequence[str]]
) -> None:
    """Write token, gold tag and predicted tag, separated by one space, as conlleval reads them.

    Mentions are written in IOB2. Spaces within a token or tag become U+2423, so every line has three fields. After the
    tokens of a sentence come lines for its unreachable gold mentions, whose words start with U+2400: in every scorer
    these are missing.
    """
    path.parent.mkdir(exist_ok=True)
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        for sentence, tags in zip(sentences, predicted, strict=True):
            columns = [sentence.tags, tags] if task == "tags" else [iob2(sentence.tags), iob2(tags)]
            for fields in zip(sentence.words, *columns, strict=True):
                file.write(" ".join(map(as_field, fields)) + "\n")
            for mention in sentence.unreachable:
                for letter, word in zip(chain("B", repeat("I")), mention.words, strict=False):
                    file.write(f"{UNREACHABLE}{as_field(word)} {as_field(f'{letter}-{mention.type}')} O\n")
            file.write("\n")


def write_probabilities(path: Path, sentences: Iterable[Sequence[float]]) -> None:
    """Write the probabilities of the predicted mentions, a line for each sentence."""
    with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        for probabilities in sentences:
            file.write(" ".join(f"{probability:.6f}" for probability in probabilities) + "\n")


def read_probabilities(path: Path) -> list[list[float]]:
    """The probabilities that `write_probabilities` wrote. ValueError, with the line, for another content."""
    sentences = []
    for number, line in enumerate(text_of(path).splitlines(), start=1):
        try:
            probabilities = [float(field) for field in line.split()]
        except ValueError:
            probabilities = [math.nan]
        if not all(0 <= probability <= 1 for probability in probabilities):
            raise ValueError(f"{path}:{number}: expected numbers from 0 to 1, got {truncated_repr(line)}")
        sentences.append(probabilities)
    return sentences


def seqeval_f1(path: Path) -> float:
    """F1 of a file of predicted mentions, computed by seqeval."""
    from seqeval.metrics import f1_score  # imports scikit-learn, which takes a second, but not in commands

    sentences = read_file(path)
    gold, predicted = [[*it.gold] for it in sentences], [[*it.predicted] for it in sentences]
    return float(f1_score(gold, predicted, zero_division=0))


def iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """IOB2 tags of the strict mentions of BIOES tags, so that conlleval counts what the metric counts."""
    return encode(strict_spans(tags), len(tags), "iob2")
