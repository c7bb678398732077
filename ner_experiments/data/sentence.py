"""What every reader yields and every other part reads: a sentence, and the corpus it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Task = Literal["mentions", "tags"]
"""What is scored: exact mentions (names, chunks) by F1, or every token's tag (POS) by accuracy."""

PRIMARY_METRIC = {"mentions": ("f1", "F1"), "tags": ("accuracy", "accuracy")}
"""What each task is scored by: in a report, and as it is printed."""

Tokens = Literal["words", "characters"]
"""What a corpus' tokens are, and so what text that is not in it yet is cut into."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens and their tags, one each; `columns` holds further layers (pos, chunk), one each too."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    line: int = 0
    """Line of the first token in its file, from 1; 0 where there is no file."""

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus as the models see it: train, dev and test, mentions as BIOES tags.

    `notes` says in plain words what was done to get here (a held-out part, a limit), for tables to print.
    """

    name: str
    task: Task
    splits: dict[str, list[Sentence]]
    checksum: str
    notes: tuple[str, ...] = ()
