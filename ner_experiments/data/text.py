"""Sentences flattened: the distinct surface forms once, and which of them each token is.

What an input makes of a text, ready to be gathered: rows of numbers, and which of them a batch needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

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


@dataclass(frozen=True)
class Where:
    """A batch's place in its text. Padding repeats the first token of its sentence.

    Row `form_places[b, t]` of `forms` is the surface form of token t in sentence b, and `tokens[b, t]` the
    number of the token in the text; `forms` holds each distinct form of the batch once.
    """

    sentences: Tensor
    tokens: Tensor
    mask: Tensor
    forms: Tensor
    form_places: Tensor


class Rows(Protocol):
    def to(self, device: torch.device) -> Rows: ...

    def select(self, where: Where) -> tuple[Any, Tensor]:
        """What the module of the input is called with, and the places [batch time] of its output's rows."""
        ...

    def share(self, where: Where) -> tuple[Tensor, Tensor] | None:
        """The same, with what is the same for all batches of the text; None if there is no such thing."""
        return None


@dataclass(frozen=True)
class PerForm(Rows):
    """[forms] or [forms width]: computed once for each form of a batch. Padding is 0, on the right."""

    table: Tensor

    def to(self, device: torch.device) -> PerForm:
        return PerForm(self.table.to(device))

    def select(self, where: Where) -> tuple[Tensor, Tensor]:
        return trimmed(self.table[where.forms]), where.form_places

    def share(self, where: Where) -> tuple[Tensor, Tensor]:
        return self.table, where.forms[where.form_places]


@dataclass(frozen=True)
class PerToken(Rows):
    """[tokens] or [tokens width]: what depends on the sentence as well. Padding is 0, on the right."""

    table: Tensor

    def to(self, device: torch.device) -> PerToken:
        return PerToken(self.table.to(device))

    def select(self, where: Where) -> tuple[Tensor, Tensor]:
        places = torch.arange(where.tokens.numel(), device=where.tokens.device).view_as(where.tokens)
        return trimmed(self.table[where.tokens.flatten()]), places


def trimmed(rows: Tensor) -> Tensor:
    """Without the columns that are padding in every row."""
    if rows.ndim == 1:
        return rows
    return rows[:, : max(1, int((rows != 0).sum(1).max()))]


def to_the_left(ids: np.ndarray) -> np.ndarray:
    """Of each row the ids first, then its padding. Their order is lost: what they stand for is summed."""
    return -np.sort(-ids, axis=1)


def in_chunks(module: Callable[[Tensor], Tensor], table: Tensor, *, size: int = 512) -> Tensor:
    """What a module makes of all rows of a table, which it is given in pieces with little padding."""
    order = torch.arange(len(table), device=table.device)
    if table.ndim == 2:
        order = (table != 0).sum(1).argsort()
    made = torch.cat([module(trimmed(table[rows])) for rows in torch.split(order, size)])
    return torch.empty_like(made).index_copy_(0, order, made)
