"""Spelling features of Huang, Xu & Yu (2015), section 4.2.1, as feature ids."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ner_experiments.data.indexed_text import IndexedText, PerForm
from ner_experiments.data.inputs import Input, State

AFFIXES = range(2, 6)
_REPEATED = re.compile(r"(.)\1+", re.DOTALL)


@dataclass
class Spelling(Input):
    """Ids of each form's `spelling_features` that occur at least `min_count` times in train. 0 is padding."""

    min_count: int

    def __post_init__(self) -> None:
        if self.min_count < 1:
            raise ValueError(f"spelling: min_count must be at least 1, got {self.min_count}")

    def fit(self, train: IndexedText, others: Iterable[IndexedText]) -> None:
        counts: Counter[str] = Counter()
        for form, count in zip(train.forms, train.counts().tolist(), strict=True):
            for feature in spelling_features(form):
                counts[feature] += count
        self.restore({"features": [name for name, count in counts.items() if count >= self.min_count]})

    def encode(self, text: IndexedText) -> PerForm:
        return PerForm.padded(
            [
                [self.ids[feature] for feature in spelling_features(form) if feature in self.ids]
                for form in text.forms
            ]
        )

    def sizes(self) -> dict[str, Any]:
        return {"num_features": len(self.ids)}

    def notes(self) -> list[str]:
        return [f"spelling: {len(self.ids):,} features"]

    def state(self) -> State:
        return {"features": list(self.ids)}

    def restore(self, state: State) -> None:
        self.ids = {feature: number for number, feature in enumerate(state["features"], start=1)}


def spelling_features(form: str) -> Iterator[str]:
    """Features of the paper's twelve kinds, and the lower-cased word. For `D56y-3`, in the paper's order:

        word d56y-3
        initial capital
        all capitals, all lower, non-initial capital: no
        letters and digits
        punctuation
        prefix D5, D56, D56y, D56y-; suffix -3, y-3, 6y-3, 56y-3
        apostrophe: no
        letters Dy
        others 56-3
        pattern A00a-0
        summary A0a-0

    Our readings: `all capitals` and `all lower` concern the letters only, so `I.B.M.` is all capitals;
    punctuation is any punctuation or symbol of Unicode; affixes keep their case, may hold any character, and
    may be the whole word; apostrophe means that the word ends in 's (or ’s). Empty `letters` and `others` are
    left out.
    """
    yield f"word {form.lower()}"
    yield from (name for name, holds in _PROPERTIES.items() if holds(form))
    for size in AFFIXES:
        if size <= len(form):
            yield f"prefix {form[:size]}"
            yield f"suffix {form[-size:]}"
    letters = "".join(filter(str.isalpha, form))
    others = "".join(character for character in form if not character.isalpha())
    if letters:
        yield f"letters {letters}"
    if others:
        yield f"others {others}"
    shape = pattern(form)
    yield f"pattern {shape}"
    yield "summary " + _REPEATED.sub(r"\1", shape)


def pattern(form: str) -> str:
    """Word shape: capitals as A, lower-case letters as a, digits as 0, all else (`-`, 中) unchanged."""
    return "".join(
        "A" if it.isupper() else "a" if it.islower() else "0" if it.isdigit() else it for it in form
    )


_PROPERTIES: dict[str, Callable[[str], bool]] = {
    "initial capital": lambda form: form[0].isupper(),
    "all capitals": str.isupper,
    "all lower": str.islower,
    "non-initial capital": lambda form: any(map(str.isupper, form[1:])),
    "letters and digits": lambda form: any(map(str.isalpha, form)) and any(map(str.isdigit, form)),
    "punctuation": lambda form: any(unicodedata.category(it)[0] in "PS" for it in form),
    "apostrophe": lambda form: form.endswith(("'s", "’s")),
}
