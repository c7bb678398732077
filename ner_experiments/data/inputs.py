"""Inputs of a model: word ids, characters, capitalization. One class per kind of input.

An input learns its vocabulary from the training text (`fit`), encodes any text as tables of numbers
(`encode`), passes its module the sizes that depend on the vocabulary (`sizes`), and is saved to and restored
from JSON without the corpus (`state`, `restore`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ner_experiments.data import vectors
from ner_experiments.data.indexed_text import EncodedText, IndexedText, PerForm

State = dict[str, Any]
UNKNOWN = 0


class Input(ABC):
    """Interface of an input. The defaults suit one without a vocabulary."""

    _notes: Sequence[str] = ()
    _checksum = ""

    def fit(self, train: IndexedText, others: Iterable[IndexedText]) -> None:
        """Learn from `train`. `others` only determine which pre-trained vectors are loaded as well."""
        return None

    @abstractmethod
    def encode(self, text: IndexedText) -> EncodedText:
        """The text as tables of numbers."""

    def extended(self, forms: Sequence[str], path: Path | None = None) -> tuple[Self, np.ndarray] | None:
        """A copy that knows the pre-trained vectors of further forms, and their rows for the end of its module's table.

        So a new text has vectors for its words as the corpus's own test has. path: the file of vectors; by default that
        of `fit`. None for an input that reads none. ValueError for a file that cannot be read or has other widths.
        """
        return None

    def required_columns(self) -> Sequence[str]:
        """Names of the columns that it reads besides the words."""
        return ()

    @abstractmethod
    def sizes(self) -> dict[str, Any]:
        """The module's constructor arguments that depend on the vocabulary."""

    def checksum(self) -> str:
        """SHA-256 of the files that `fit` read besides the corpus; empty if none, or without `fit`."""
        return self._checksum

    def notes(self) -> list[str]:
        """Remarks on what was read and found, in plain words for readers of the results."""
        return [*self._notes]

    def state(self) -> State:
        """Everything that `fit` learned, JSON-serializable."""
        return {}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        return None

    def disable_cache(self) -> None:
        """Stop caching results per text on disk, for prediction on texts that will not recur."""
        return None


@dataclass
class RandomWords(Input):
    """Ids of the training text's words, for randomly initialized vectors. 0 is the unknown word."""

    lowercase: bool

    def fit(self, train: IndexedText, others: Iterable[IndexedText]) -> None:
        counts: Counter[str] = Counter()
        for form, count in zip(train.forms, train.counts().tolist(), strict=True):
            counts[self._normalize(form)] += count
        self.restore({"words": list(counts), "singletons": [count == 1 for count in counts.values()]})

    def encode(self, text: IndexedText) -> PerForm:
        return PerForm(np.array([self.ids.get(self._normalize(form), UNKNOWN) for form in text.forms]))

    def sizes(self) -> dict[str, Any]:
        import torch  # as in `indexed_text.apply_in_chunks`

        return {"num_words": len(self.ids) + 1, "singletons": torch.tensor([False, *self.singletons])}

    def state(self) -> State:
        return {"words": list(self.ids), "singletons": self.singletons}

    def restore(self, state: State) -> None:
        self.ids: dict[str, int] = {word: number for number, word in enumerate(state["words"], start=1)}
        self.singletons: list[bool] = state["singletons"]

    def _normalize(self, form: str) -> str:
        return form.lower() if self.lowercase else form


@dataclass
class PretrainedWords(Input):
    """Ids of the words that have a pre-trained vector or occur in the training text. 0 is the unknown word.

    A word is looked up as it is, then lower-cased, then with its digits as 0, then both. Only vectors that a word of
    the corpus resolves to are loaded. Words that resolve to the same vector share one id, new words included. A
    training word without a vector gets an id of its own and a random vector.
    """

    path: str
    cache: str

    def fit(self, train: IndexedText, others: Iterable[IndexedText]) -> None:
        counts = dict(zip(train.forms, train.counts().tolist(), strict=True))
        forms = list(dict.fromkeys([*train.forms, *(form for text in others for form in text.forms)]))
        loaded = vectors.load_vectors(Path(self.path), forms, cache=Path(self.cache))
        num_found = len(loaded.matrix)
        self.ids = {key: number for number, key in enumerate(loaded.keys, start=1)}
        for form, row in zip(forms, loaded.rows.tolist(), strict=True):
            if row >= 0:
                self.ids[form] = row + 1
        unseen = [form for form in forms if form in counts and form not in self.ids]
        self.ids |= {form: number for number, form in enumerate(unseen, start=num_found + 1)}
        self.num_found = num_found
        self.singletons = [counts[form] == 1 for form in unseen]
        self.matrix = loaded.matrix
        self.dim = int(self.matrix.shape[1])
        self._notes = [vectors.coverage_line(loaded)]
        self._checksum = loaded.checksum

    def encode(self, text: IndexedText) -> PerForm:
        return PerForm(np.array([self._id(form) for form in text.forms]))

    def _id(self, form: str) -> int:
        return next((self.ids[key] for _, key in vectors.back_off(form) if key in self.ids), UNKNOWN)

    def extended(self, forms: Sequence[str], path: Path | None = None) -> tuple[Self, np.ndarray]:
        others = [form for form in dict.fromkeys(forms) if form not in self.ids]
        found = vectors.look_up(path or Path(self.path), others)
        check_width(found.matrix, self.dim, path or self.path)
        new = [row for row, key in enumerate(found.keys) if key not in self.ids]
        first = 1 + self.num_found + len(self.singletons)
        more = copy(self)
        more.ids = self.ids | {found.keys[row]: number for number, row in enumerate(new, start=first)}
        rows = zip(others, found.rows.tolist(), strict=True)
        more.ids |= {form: more.ids[found.keys[row]] for form, row in rows if row >= 0}
        return more, found.matrix[new]

    def sizes(self) -> dict[str, Any]:
        import torch  # as in `indexed_text.apply_in_chunks`

        unseen = len(self.singletons)
        table = torch.zeros(1 + self.num_found + unseen, self.dim)
        table[1 : 1 + self.num_found] = torch.from_numpy(self.matrix)
        found = torch.zeros(len(table), dtype=torch.bool)
        found[1 : 1 + self.num_found] = True
        singletons = torch.tensor([False] * (1 + self.num_found) + self.singletons)
        return {"vectors": table, "found": found, "singletons": singletons}

    def state(self) -> State:
        return {"ids": self.ids, "found": self.num_found, "singletons": self.singletons, "dim": self.dim}

    def restore(self, state: State) -> None:
        self.ids, self.num_found = state["ids"], state["found"]
        self.singletons, self.dim = state["singletons"], state["dim"]
        self.matrix = np.zeros((self.num_found, self.dim), dtype=np.float32)  # loaded with the weights


def check_width(rows: np.ndarray, expected: int, path: Path | str) -> None:
    """Raise ValueError for vectors of another width than a model was trained with."""
    if rows.shape[1] != expected:
        raise ValueError(
            f"{path}: expected vectors of {expected} numbers, as the run has, got {rows.shape[1]}"
        )


@dataclass
class Characters(Input):
    """Character ids of each form, truncated to `max_length`. 0 is padding, 1 an unknown character.

    Truncation affects the character module only; the token and its tag stay.
    """

    max_length: int

    def __post_init__(self) -> None:
        if not isinstance(self.max_length, int) or self.max_length < 1:
            raise ValueError(f"chars: max_length must be an integer of at least 1, got {self.max_length}")

    def fit(self, train: IndexedText, others: Iterable[IndexedText]) -> None:
        self.restore({"characters": sorted({character for form in train.forms for character in form})})

    def encode(self, text: IndexedText) -> PerForm:
        return PerForm.padded(
            [[self.ids.get(it, 1) for it in form[: self.max_length]] for form in text.forms]
        )

    def sizes(self) -> dict[str, Any]:
        return {"num_chars": len(self.ids) + 2}

    def state(self) -> State:
        return {"characters": list(self.ids)}

    def restore(self, state: State) -> None:
        self.ids = {character: number for number, character in enumerate(state["characters"], start=2)}


@dataclass
class Case(Input):
    """Capitalization class of each form, one of four (Li, Fu & Ma 2020, 3.1); see `case`."""

    def encode(self, text: IndexedText) -> PerForm:
        return PerForm(np.array([case(form) for form in text.forms]))

    def sizes(self) -> dict[str, Any]:
        return {"num_values": 4}


def case(form: str) -> int:
    """0 upper, 1 upper-initial (also `McDonald`, as in Li et al.'s released code), 2 lower, 3 other."""
    return [form.isupper(), form[:1].isupper(), form.islower(), True].index(True)
