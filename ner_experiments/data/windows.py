"""Sentences longer than a model reads at once: cut into windows, and each token's place among them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ner_experiments.data.rows import Rows, Where


class Windows(NamedTuple):
    """Piece ids [windows length], 0 on padding; `mask` is True on real pieces, [CLS] and [SEP] among them."""

    pieces: Tensor
    mask: Tensor


@dataclass(frozen=True)
class PerWindow(Rows):
    """Rows of the windows that hold the sentences of a batch; row w * length + p is piece p of window w.

    pieces: all windows, one after another; window w is `pieces[starts[w]:starts[w] + lengths[w]]`.
    first, counts: [sentences] a sentence's windows are `counts` in number, from window `first` on.
    windows, positions: [tokens] the window, counted in its sentence, and the piece that stand for a token.
    """

    pieces: Tensor
    starts: Tensor
    lengths: Tensor
    first: Tensor
    counts: Tensor
    windows: Tensor
    positions: Tensor

    def to(self, device: torch.device) -> PerWindow:
        return replace(self, **{name: tensor.to(device) for name, tensor in vars(self).items()})

    def select(self, where: Where) -> tuple[Windows, Tensor]:
        counts = self.counts[where.sentences]
        before = counts.cumsum(0) - counts
        numbers = torch.repeat_interleave(self.first[where.sentences] - before, counts)
        selected = self._window(numbers + torch.arange(len(numbers), device=numbers.device))
        rows = before[:, None] + self.windows[where.tokens]
        return selected, rows * selected.pieces.shape[1] + self.positions[where.tokens]

    def _window(self, numbers: Tensor) -> Windows:
        lengths = self.lengths[numbers, None]
        steps = torch.arange(int(lengths.max()), device=numbers.device)
        mask = steps < lengths
        return Windows(self.pieces[self.starts[numbers, None] + steps * mask] * mask, mask)


@dataclass(frozen=True)
class Windowed:
    """Sentences cut into windows. `starts` [windows] counts from the beginning of the sentence."""

    starts: np.ndarray
    lengths: np.ndarray
    first: np.ndarray
    counts: np.ndarray

    def places(self, pieces: np.ndarray, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each token the window, counted within its sentence, in which it is farthest from both ends.

        pieces: [tokens] the number of a token's first piece in its sentence; tokens: [sentences] how many.
        Also the piece's position in that window.
        """
        first, counts = np.repeat(self.first, tokens), np.repeat(self.counts, tokens)
        best = np.full(len(pieces), -1)
        chosen, positions = np.zeros_like(pieces), np.zeros_like(pieces)
        for number in range(self.counts.max()):
            candidates = np.flatnonzero(counts > number)
            window = first[candidates] + number
            position = pieces[candidates] - self.starts[window]
            margin = np.minimum(position, self.lengths[window] - 1 - position)
            better = margin > best[candidates]
            won = candidates[better]
            best[won], chosen[won], positions[won] = margin[better], number, position[better]
        assert (best >= 0).all(), "a token lies in no window"
        return chosen, positions


def cut(sentences: np.ndarray, longest: int, overlap: int) -> Windowed:
    """As few windows of at most `longest` pieces as the overlap allows, spread evenly; all full if several.

    sentences: how many pieces each has.
    """
    counts = 1 + np.maximum(0, -(-(sentences - longest) // (longest - overlap)))
    first = np.cumsum(counts) - counts
    number = np.arange(counts.sum()) - np.repeat(first, counts)
    room = np.repeat(np.maximum(0, sentences - longest), counts)
    starts = number * room // np.repeat(np.maximum(1, counts - 1), counts)
    return Windowed(starts, np.repeat(np.minimum(sentences, longest), counts), first, counts)


def spans(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """start, start + 1, ... of each span, one after another."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1])
