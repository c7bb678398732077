"""The data types that readers return and everything else consumes: a sentence and a corpus."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Task = Literal["mentions", "tags"]
"""Exact mentions (names, chunks), scored by F1, or one tag per token (POS), scored by accuracy."""

PRIMARY_METRIC = {"mentions": ("f1", "F1"), "tags": ("accuracy", "accuracy")}
"""Task -> the key of its score in a report, and the score's printed name."""

Segmenter = Callable[[str], Iterable[tuple[int, int]]]
"""Function of a line of text that returns start and end of each token."""

UnitName = Literal["words", "characters", "icu", "fugashi", "kiwipiepy"]

Tokens = UnitName | Segmenter
"""The unit of a corpus's tokens, into which new text is tokenized as well."""


class Unreachable(NamedTuple):
    """A gold mention that no tags of the sentence express, so that it counts as missing.

    words: the part of each token that it touches. reason: the end of a sentence of notes, such as "are in pieces".
    """

    type: str
    words: tuple[str, ...]
    reason: str


Gaps = tuple[str | None, ...] | None

SCORED = ("dev", "test")
"""The splits whose gold decides nothing but the score."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens with one tag each. `columns` holds further layers (pos, chunk), also one value per token.

    unreachable: its other gold mentions.
    scored: if gold decided its tokens or its ends, the sentences that dev or test would have in its place.
    gaps: what its text has before each word and after the last, None before a word that the text does not have; empty
        if that is not known, and None if the words were made from the text.
    file: the name of its file, for messages.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    line: int = 0
    """1-based line of the first token in its file; 0 if the sentence comes from no file."""
    unreachable: tuple[Unreachable, ...] = ()
    scored: tuple[Sentence, ...] = ()
    gaps: Gaps = field(default=(), compare=False)
    file: str = field(default="", compare=False)

    def __len__(self) -> int:
        return len(self.words)

    def place(self, token: int) -> str:
        """File and line of a token, such as data/train.conll:7."""
        return f"{self.file}:{self.line + token}"


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """A corpus as the models see it: train, dev and test, with mentions as BIOES tags. Equal only to itself.

    notes: what `corpus.load` did, such as holding out dev, in words that tables print.
    unofficial: the splits whose files are known to differ from the published ones.
    """

    name: str
    task: Task
    splits: dict[str, list[Sentence]]
    checksum: str
    notes: tuple[str, ...] = ()
    unofficial: tuple[str, ...] = ()


def tags_of(sentences: Iterable[Sentence]) -> set[str]:
    """The distinct tags of the sentences."""
    return set().union(*(sentence.tags for sentence in sentences))


def intern_all(strings: Iterable[str]) -> tuple[str, ...]:
    """The strings, interned to save memory: a corpus repeats a few thousand of them."""
    return tuple(map(sys.intern, strings))


def gold_digest(sentences: Iterable[Sentence], task: Task) -> str:
    """SHA-256 of the task and of all that the score depends on: the tokens and the gold of each sentence, in order.

    Runs with one digest are scored on one test set, whatever files they read.
    """
    digest = hashlib.sha256(task.encode())
    for it in sentences:
        digest.update(b"\n" + json.dumps([it.words, it.tags, *it.unreachable]).encode())
    return digest.hexdigest()
