"""Context features of Huang, Xu & Yu (2015), section 4.2.2: n-grams around a token, as feature ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ner_experiments.data.indexed_text import IndexedText, PerToken, align_left
from ner_experiments.data.inputs import Input, State

WORD_ORDER, COLUMN_ORDER = 2, 3
"""Orders of the longest n-grams: bigrams of words, trigrams of other columns such as parts of speech."""

_UNSEEN, _BEFORE, _AFTER, _FIRST = range(4)


@dataclass
class Context(Input):
    """Ids of the n-grams of words, and of the corpus' `columns` (pos, chunk), in a window around each token.

    The window spans `window` tokens on either side (our reading: 2; the paper gives none). An n-gram is a
    different feature at each position in the window. Positions before and after the sentence count as two
    symbols of their own. Words keep their case unless `lowercase` (our reading). 0 is padding. An n-gram that occurs
    fewer than `min_count` times at its position in train is left out.

    Symbols and n-grams are encoded as integers: the symbols of an n-gram are the digits of one integer, whose base
    is the number of symbols of the column.
    """

    columns: Sequence[str]
    window: int
    lowercase: bool
    min_count: int

    def __post_init__(self) -> None:
        for name, value, least in (("window", self.window, 0), ("min_count", self.min_count, 1)):
            if value < least:
                raise ValueError(f"context: {name} must be at least {least}, got {value}")

    def fit(self, train: IndexedText, others: Iterable[IndexedText]) -> None:
        self.symbols = [list(dict.fromkeys(column)) for column in self._columns(train)]
        self.ngrams = []
        for ngrams in self._ngrams(train):
            distinct, counts = np.unique(ngrams, return_counts=True)
            self.ngrams.append(distinct[counts >= self.min_count])

    def encode(self, text: IndexedText) -> PerToken:
        ids = np.zeros((len(text.tokens), len(self.ngrams)), dtype=np.int32)
        first = 1
        for place, (known, ngrams) in enumerate(zip(self.ngrams, self._ngrams(text), strict=True)):
            positions = np.searchsorted(known, ngrams)
            seen = np.append(known, -1)[positions] == ngrams
            ids[seen, place] = first + positions[seen]
            first += len(known)
        return PerToken(align_left(ids))

    def required_columns(self) -> Sequence[str]:
        return self.columns

    def sizes(self) -> dict[str, Any]:
        return {"num_features": sum(map(len, self.ngrams))}

    def notes(self) -> list[str]:
        return [f"context: {sum(map(len, self.ngrams)):,} features"]

    def state(self) -> State:
        return {"symbols": self.symbols, "ngrams": [known.tolist() for known in self.ngrams]}

    def restore(self, state: State) -> None:
        self.symbols = state["symbols"]
        self.ngrams = [np.asarray(known, dtype=np.int64) for known in state["ngrams"]]

    def _columns(self, text: IndexedText) -> Iterator[list[str]]:
        """The symbols of all tokens, first the words, then each other column. ValueError for a missing column."""
        forms = [form.lower() for form in text.forms] if self.lowercase else text.forms
        yield [forms[token] for token in text.tokens.tolist()]
        for name in self.columns:
            for sentence in text.sentences:
                if name not in sentence.columns:
                    columns = ", ".join(sentence.columns) or "none"
                    raise ValueError(
                        f"context: the corpus has no column {name!r}; it has: {columns}; "
                        "see direct.context.input.columns"
                    )
            yield [symbol for sentence in text.sentences for symbol in sentence.columns[name]]

    def _ngrams(self, text: IndexedText) -> Iterator[np.ndarray]:
        """For each column, order and window position: [tokens] n-grams, -2 for one with an unseen symbol."""
        for number, column in enumerate(self._columns(text)):
            ids = {symbol: id for id, symbol in enumerate(self.symbols[number], start=_FIRST)}
            around = self._around(np.array([ids.get(symbol, _UNSEEN) for symbol in column]), text)
            base = len(ids) + _FIRST
            for order in range(1, (COLUMN_ORDER if number else WORD_ORDER) + 1):
                for start in range(len(around) - order + 1):
                    parts = around[start : start + order]
                    ngrams = parts[0]
                    for part in parts[1:]:
                        ngrams = ngrams * base + part
                    yield np.where((parts == _UNSEEN).any(0), -2, ngrams)

    def _around(self, ids: np.ndarray, text: IndexedText) -> np.ndarray:
        """[offsets tokens]: the symbol at each offset in the window around each token."""
        lengths = text.lengths
        begins, ends = np.repeat(text.starts[:-1], lengths), np.repeat(text.starts[1:], lengths)
        places = np.arange(-self.window, self.window + 1)[:, None] + np.arange(len(ids))
        symbols = ids[places.clip(0, len(ids) - 1)]
        return np.where(places < begins, _BEFORE, np.where(places >= ends, _AFTER, symbols))
