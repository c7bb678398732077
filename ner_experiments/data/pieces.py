"""BERT's sub-word pieces of a text, the first of which stands for its token.

Sentences longer than a model reads at once: cut into windows, and each token's place among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ner_experiments.data import bert_files
from ner_experiments.data.inputs import Input, State
from ner_experiments.data.text import Rows, Text, Where


@dataclass
class Pieces(Input):
    """The pieces of each token as BERT's tokenizer makes them; the first stands for the token.

    Devlin et al. (2019), section 5.3. A token of which the tokenizer leaves nothing, such as a zero-width
    space, is [UNK]. A sentence of more than `max_length` pieces, [CLS] and [SEP] included, is read in windows
    of that length, which share `overlap` pieces or more; a token's vector is taken from the window in which
    its first piece is farthest from both ends. So no token is ever cut off.

    path: a folder, or a name on the Hugging Face hub. See `bert_files.find`.
    """

    path: str
    max_length: int
    overlap: int

    def fit(self, train: Text, others: Iterable[Text]) -> None:
        folder = bert_files.find(self.path)
        config = bert_files.read_config(folder)
        longest = config["max_position_embeddings"]
        if not 3 <= self.max_length <= longest:
            raise ValueError(f"max_length must be from 3 to the model's {longest}, got {self.max_length}")
        if not 0 <= self.overlap < self.max_length - 2:
            raise ValueError(f"overlap must be from 0 to max_length - 3, got {self.overlap}")
        self._take(config, bert_files.read_tokenizer(folder))
        self.folder: Path | None = folder
        self._checksum = bert_files.checksum(folder)
        self._notes = self._count([train, *others])

    def encode(self, text: Text) -> PerWindow:
        pieces, starts = self._pieces(text)
        sentences = starts[text.starts]
        windows = cut(np.diff(sentences), self.max_length - 2, self.overlap)
        flat, begins = self._framed(pieces, sentences, windows)
        which, positions = windows.places(starts[:-1] - np.repeat(sentences[:-1], text.lengths), text.lengths)
        arrays = {
            "pieces": flat.astype(np.int32),
            "starts": begins,
            "lengths": windows.lengths + 2,
            "first": windows.first,
            "counts": windows.counts,
            "windows": which,
            "positions": positions + 1,  # after [CLS]
        }
        return PerWindow(**{name: torch.from_numpy(array) for name, array in arrays.items()})

    def sizes(self) -> dict[str, Any]:
        if self.folder is None:
            bert = bert_files.untrained(self.config)  # the run's weights are loaded into it
        else:
            bert = bert_files.read_model(self.folder)
        return {"bert": bert, "dim": self.dim}

    def checksum(self) -> str:
        return self._checksum

    def notes(self) -> list[str]:
        return self._notes

    def state(self) -> State:
        return {"config": self.config, "tokenizer": self.tokenizer.to_str()}

    def restore(self, state: State) -> None:
        self.folder = None
        self._take(state["config"], state["tokenizer"])
        self._notes, self._checksum = [], ""

    def _take(self, config: bert_files.Config, tokenizer: str) -> None:
        self.config, self.dim = config, config["hidden_size"]
        self.tokenizer = bert_files.make_tokenizer(tokenizer)
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = True  # a token "[SEP]" of the text is three characters or more
        vocabulary = self.tokenizer.get_vocab()
        self._cls, self._sep, self._unknown = (vocabulary[piece] for piece in bert_files.SPECIAL)

    def _of_forms(self, text: Text) -> list[list[int]]:
        """The tokenizer looks at each word by itself, so that each form need be cut only once."""
        forms = [[form] for form in text.forms]
        made = self.tokenizer.encode_batch(forms, is_pretokenized=True, add_special_tokens=False)
        return [encoding.ids or [self._unknown] for encoding in made]

    def _pieces(self, text: Text) -> tuple[np.ndarray, np.ndarray]:
        """All pieces of the text; those of token t are `starts[t]:starts[t + 1]`."""
        forms = self._of_forms(text)
        lengths = np.array([len(pieces) for pieces in forms])
        flat = np.array([piece for pieces in forms for piece in pieces])
        begins = np.cumsum(lengths) - lengths
        pieces = flat[spans(begins[text.tokens], lengths[text.tokens])]
        return pieces, np.cumsum([0, *lengths[text.tokens]])

    def _framed(
        self, pieces: np.ndarray, sentences: np.ndarray, windows: Windowed
    ) -> tuple[np.ndarray, np.ndarray]:
        """Each window's pieces between [CLS] and [SEP], one window after another, and where each starts."""
        lengths = windows.lengths + 2
        ends = np.cumsum(lengths)
        flat = np.full(ends[-1], self._sep)
        flat[ends - lengths] = self._cls
        sources = np.repeat(sentences[:-1], windows.counts) + windows.starts
        flat[spans(ends - lengths + 1, windows.lengths)] = pieces[spans(sources, windows.lengths)]
        return flat, ends - lengths

    def _count(self, texts: list[Text]) -> list[str]:
        sentences = tokens = unknown = long = 0
        for text in texts:
            pieces, starts = self._pieces(text)
            sentences, tokens = sentences + len(text.lengths), tokens + len(text.tokens)
            unknown += int((pieces[starts[:-1]] == self._unknown).sum())
            long += int((np.diff(starts[text.starts]) > self.max_length - 2).sum())
        return [
            f"{unknown:,} of {tokens:,} tokens ({unknown / tokens:.2%}) begin with BERT's [UNK]; "
            f"{long:,} of {sentences:,} sentences have over {self.max_length} pieces and are read in windows."
        ]


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
