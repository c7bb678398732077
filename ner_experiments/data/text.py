"""Sentences flattened: the distinct surface forms once, and which of them each token is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ner_experiments.data.sentence import Sentence


@dataclass(frozen=True, slots=True)
class Text:
    """`forms[tokens[i]]` is token i as it stands; sentence s holds tokens `starts[s]:starts[s + 1]`."""

    forms: list[str]
    tokens: np.ndarray
    starts: np.ndarray
    sentences: Sequence[Sentence]

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> Text:
        ids: dict[str, int] = {}
        tokens = [ids.setdefault(word, len(ids)) for sentence in sentences for word in sentence.words]
        starts = np.cumsum([0, *(len(sentence) for sentence in sentences)])
        return cls(list(ids), np.asarray(tokens, dtype=np.int64), starts, sentences)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens per sentence."""
        return np.diff(self.starts)

    def counts(self) -> np.ndarray:
        """How often each form occurs."""
        return np.bincount(self.tokens, minlength=len(self.forms))
