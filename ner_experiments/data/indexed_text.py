"""Sentences as flat index arrays, and the interface of what an input encodes them to.

An input encodes an `IndexedText` once (`EncodedText`), as a table with a row per surface form or per token.
A batch is then gathered from the tables by its `BatchIndex`, on the host, where sizes that depend on the data are known
without waiting for a GPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from ner_experiments.data.sentence import Sentence

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Rows = TypeVar("Rows", np.ndarray, "Tensor")


@dataclass(frozen=True, slots=True)
class IndexedText:
    """`forms[tokens[i]]` is token i's surface form; sentence s is tokens `starts[s]:starts[s + 1]`."""

    forms: list[str]
    tokens: np.ndarray
    starts: np.ndarray
    sentences: Sequence[Sentence]

    @classmethod
    def from_sentences(cls, sentences: Sequence[Sentence]) -> IndexedText:
        texts = [sentence.words for sentence in sentences]
        ids: defaultdict[str, int] = defaultdict(count().__next__)  # numbers forms in order of occurrence
        starts = np.cumsum([0, *map(len, texts)])
        words = chain.from_iterable(texts)
        tokens = np.fromiter(map(ids.__getitem__, words), dtype=np.int64, count=int(starts[-1]))
        return cls(list(ids), tokens, starts, sentences)

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each sentence."""
        return np.diff(self.starts)

    def counts(self) -> np.ndarray:
        """Number of occurrences of each form."""
        return np.bincount(self.tokens, minlength=len(self.forms))


class Multiples(NamedTuple):
    """Numbers of which the sizes of a batch are multiples: a CUDA graph has one shape, so few should occur."""

    sentences: int = 1
    time: int = 1
    rows: int = 1
    """Forms, and other rows of an input."""


EXACT, ROUNDED = Multiples(), Multiples(sentences=8, time=8, rows=256)


def rounded_up(number: int, multiple: int) -> int:
    return number + -number % multiple


def repeat_first(rows: np.ndarray, multiple: int) -> np.ndarray:
    """The rows, and the first one again until their number is a multiple."""
    return np.concatenate([rows, np.repeat(rows[:1], -len(rows) % multiple, axis=0)])


@dataclass(frozen=True)
class BatchIndex:
    """Indices of a batch into its text. Padding repeats the first token of its sentence.

    sentences: [batch]. tokens: [batch time] token numbers in the text. mask: [batch time], True on real tokens.
    forms: the distinct form numbers of the batch, then fillers. form_rows: [batch time], with
        `forms[form_rows[b, t]]` the form of token t in sentence b.
    """

    sentences: np.ndarray
    tokens: np.ndarray
    mask: np.ndarray
    forms: np.ndarray
    form_rows: np.ndarray
    multiples: Multiples = EXACT


class EncodedText(ABC):
    """A text encoded by one input, from which the module's arguments for a batch are gathered."""

    def to(self, device: torch.device) -> EncodedText:
        """The text with what is computed on a device, if anything is."""
        return self

    @abstractmethod
    def select(self, index: BatchIndex) -> tuple[Any, np.ndarray]:
        """The module's argument for a batch, and [batch time] the row of the module's output for each token."""

    def share(self, index: BatchIndex) -> tuple[np.ndarray, np.ndarray] | None:
        """As `select`, but with an argument that all batches of the text share; None if there is none."""
        return None


@dataclass(frozen=True)
class PerForm(EncodedText):
    """A table [forms] or [forms width]: the module runs once per distinct form. Right-padded with 0."""

    table: np.ndarray

    @classmethod
    def padded(cls, forms: Sequence[Sequence[int]], width: int = 0) -> Self:
        """The ids of each form, padded to the longest, or to `width`."""
        rows = np.zeros((len(forms), width or max(1, *map(len, forms))), dtype=np.int32)
        for row, ids in zip(rows, forms, strict=True):
            row[: len(ids)] = ids
        return cls(rows)

    def select(self, index: BatchIndex) -> tuple[np.ndarray, np.ndarray]:
        return trim_padding(self.table[index.forms], index.multiples.time), index.form_rows

    def share(self, index: BatchIndex) -> tuple[np.ndarray, np.ndarray]:
        return self.table, index.forms[index.form_rows]


@dataclass(frozen=True)
class PerToken(EncodedText):
    """A table [tokens] or [tokens width], for features that depend on the context. Right-padded with 0."""

    table: np.ndarray

    def select(self, index: BatchIndex) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(index.tokens.size).reshape(index.tokens.shape)
        return trim_padding(self.table[index.tokens.ravel()], index.multiples.time), rows


def trim_padding(rows: Rows, multiple: int = 1) -> Rows:
    """Drop the columns that are padding in every row, but keep a multiple, or all."""
    if rows.ndim == 1:
        return rows
    return rows[:, : rounded_up(max(1, int((rows != 0).sum(1).max())), multiple)]


def align_left(ids: np.ndarray) -> np.ndarray:
    """The ids with those of each row moved before its padding. Their order may change: a row is a bag of features."""
    return -np.sort(-ids, axis=1)


def apply_in_chunks(module: Callable[[Tensor], Tensor], table: Tensor, *, size: int = 512) -> Tensor:
    """Apply a module to all rows of a table, in chunks of similar length to limit padding."""
    import torch  # slow to import, and a table of results needs an input's checksum alone

    order = torch.arange(len(table), device=table.device)
    if table.ndim == 2:
        order = (table != 0).sum(1).argsort()
    outputs = torch.cat([module(trim_padding(table[rows])) for rows in torch.split(order, size)])
    return torch.empty_like(outputs).index_copy_(0, order, outputs)
