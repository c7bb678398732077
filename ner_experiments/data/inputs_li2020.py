"""Inputs of Li, Fu & Ma (2020), section 3.1; their released code decides what the paper leaves open."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ner_experiments.data.indexed_text import IndexedText, PerForm
from ner_experiments.data.inputs import UNKNOWN, Input, State, case, check_width
from ner_experiments.data.vectors import check_file, read_vectors
from ner_experiments.utils.files import sha256

TYPES = (string.ascii_uppercase, string.ascii_lowercase, string.digits, string.punctuation)
CHARACTERS = "".join(TYPES)


@dataclass
class TypedCharacters(Input):
    """Ids of the first `max_length` characters of each form. Types are upper, lower, digit and punctuation.

    0 is padding and 1 any character but the 94 visible ones of ASCII; those two have no type. The set is
    fixed as in the released code (which lacks nine punctuation marks), so that all non-ASCII characters share
    a vector in training already. Truncation affects the character module only.
    """

    max_length: int

    def encode(self, text: IndexedText) -> PerForm:
        ids = {character: number for number, character in enumerate(CHARACTERS, start=2)}
        rows = [[ids.get(character, 1) for character in form[: self.max_length]] for form in text.forms]
        return PerForm.padded(rows, self.max_length)

    def sizes(self) -> dict[str, Any]:
        import torch  # as in `indexed_text.apply_in_chunks`

        typed = [[character in of_type for of_type in TYPES] for character in CHARACTERS]
        return {"length": self.max_length, "types": torch.tensor([[False] * len(TYPES)] * 2 + typed)}


@dataclass
class WordsWithCase(Input):
    """Ids of the words that have a pre-trained vector. Their rows are [vector ; case]; 0 is the unknown word.

    A word without a vector has no case either: the vector of the unknown word stands for both. Words are
    looked up as they are. With `back_off`, those not found are looked up lower-cased. Lower-cased files such
    as GloVe 6B need this, because otherwise every capitalized word would be unknown. A word found by its
    lower-cased form keeps its own case. Only vectors of the corpus' words are loaded.
    """

    path: str
    back_off: bool

    def fit(self, train: IndexedText, others: Iterable[IndexedText]) -> None:
        forms = list(dict.fromkeys([*train.forms, *(form for text in others for form in text.forms)]))
        path = Path(self.path)
        check_file(path)
        rows, self.table = self._read(path, forms)
        exact = sum(key == form for form, key in rows.items())
        self.ids = {form: number for number, form in enumerate(rows, start=1)}
        self._notes = [
            f"{len(rows):,} of {len(forms):,} words ({len(rows) / len(forms):.1%}) have a pre-trained "
            f"vector: {exact:,} as they are, {len(rows) - exact:,} lower-cased; "
            "the others share a trained one."
        ]
        self._checksum = sha256(path)

    def extended(self, forms: Sequence[str], path: Path | None = None) -> tuple[Self, np.ndarray]:
        others = [form for form in dict.fromkeys(forms) if form not in self.ids]
        rows, table = self._read(path or Path(self.path), others)
        check_width(table, self.table.shape[1], path or self.path)
        more = copy(self)
        more.ids = self.ids | {form: number for number, form in enumerate(rows, start=len(self.table))}
        return more, table[1:]

    def _read(self, path: Path, forms: Sequence[str]) -> tuple[dict[str, str], np.ndarray]:
        """The key of each form that has a vector, and the rows of these forms after one of zeros."""
        read, dim = read_vectors(path, {key.encode() for form in forms for key in self._keys(form)})
        keys = {form: next((key for key in self._keys(form) if key.encode() in read), None) for form in forms}
        found = {form: key for form, key in keys.items() if key is not None}
        cases = np.eye(4, dtype=np.float32)
        rows = [np.concatenate([read[key.encode()], cases[case(form)]]) for form, key in found.items()]
        return found, np.stack([np.zeros(dim + 4, dtype=np.float32), *rows])

    def encode(self, text: IndexedText) -> PerForm:
        return PerForm(np.array([self.ids.get(form, UNKNOWN) for form in text.forms]))

    def sizes(self) -> dict[str, Any]:
        import torch  # as in `indexed_text.apply_in_chunks`

        return {"vectors": torch.tensor(self.table)}

    def state(self) -> State:
        return {"words": list(self.ids), "width": self.table.shape[1]}

    def restore(self, state: State) -> None:
        self.ids = {form: number for number, form in enumerate(state["words"], start=1)}
        # loaded with the weights
        self.table = np.zeros((len(self.ids) + 1, state["width"]), dtype=np.float32)

    def _keys(self, form: str) -> list[str]:
        """Keys to look a form up by, in order."""
        return [form, form.lower()] if self.back_off else [form]
