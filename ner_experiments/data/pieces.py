"""WordPiece ids for BERT: the first piece represents its token, and long sentences are split into windows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ner_experiments.data import bert_files
from ner_experiments.data.indexed_text import BatchIndex, EncodedText, IndexedText, repeat_first, rounded_up
from ner_experiments.data.inputs import Input, State


@dataclass
class Pieces(Input):
    """The pieces of each token from BERT's tokenizer; the first one represents the token.

    Devlin et al. (2019), section 5.3. A token without pieces, such as a zero-width space, becomes [UNK]. A
    sentence of more than `max_length` pieces, [CLS] and [SEP] included, is split into windows of that length,
    which overlap by at least `overlap` pieces. A token's vector is taken from the window in which its first
    piece is farthest from both ends, so no token is ever truncated.

    path: a folder, or a name on the Hugging Face hub. See `bert_files.find`.
    """

    path: str
    max_length: int
    overlap: int

    def fit(self, train: IndexedText, others: Iterable[IndexedText]) -> None:
        folder = bert_files.find(self.path)
        config = bert_files.read_config(folder)
        longest = config["max_position_embeddings"]
        if not 3 <= self.max_length <= longest:
            raise ValueError(f"max_length must be from 3 to the model's {longest}, got {self.max_length}")
        if not 0 <= self.overlap < self.max_length - 2:
            raise ValueError(f"overlap must be from 0 to max_length - 3, got {self.overlap}")
        self._load(config, bert_files.read_tokenizer(folder))
        self.folder: Path | None = folder
        self._checksum = bert_files.checksum(folder)
        self._notes = self._count([train, *others])

    def encode(self, text: IndexedText) -> PerWindow:
        pieces, starts = self._pieces(text)
        sentences = starts[text.starts]
        windows = plan_windows(np.diff(sentences), self.max_length - 2, self.overlap)
        flat, begins = self._add_special(pieces, sentences, windows)
        own, positions = windows.assign(starts[:-1] - np.repeat(sentences[:-1], text.lengths), text.lengths)
        return PerWindow(
            pieces=flat.astype(np.int32),
            starts=begins,
            lengths=windows.lengths + 2,
            first=windows.first,
            counts=windows.counts,
            windows=own,
            positions=positions + 1,  # after [CLS]
        )

    def sizes(self) -> dict[str, Any]:
        if self.folder is None:
            bert = bert_files.untrained(self.config)  # its weights are loaded with the run's
        else:
            bert = bert_files.read_model(self.folder)
        return {"bert": bert, "dim": self.dim}

    def state(self) -> State:
        return {"config": self.config, "tokenizer": self.tokenizer.to_str()}

    def restore(self, state: State) -> None:
        self.folder = None
        self._load(state["config"], state["tokenizer"])

    def _load(self, config: bert_files.Config, tokenizer: str) -> None:
        self.config, self.dim = config, config["hidden_size"]
        self.tokenizer = bert_files.make_tokenizer(tokenizer)
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = True  # a token "[SEP]" in the text is ordinary characters
        vocabulary = self.tokenizer.get_vocab()
        self._cls, self._sep, self._unknown = (vocabulary[piece] for piece in bert_files.SPECIAL)

    def _pieces_of_forms(self, text: IndexedText) -> list[list[int]]:
        """The pieces of each distinct form: the tokenizer treats words independently."""
        forms = [[form] for form in text.forms]
        encodings = self.tokenizer.encode_batch(forms, is_pretokenized=True, add_special_tokens=False)
        return [encoding.ids or [self._unknown] for encoding in encodings]

    def _pieces(self, text: IndexedText) -> tuple[np.ndarray, np.ndarray]:
        """All pieces of the text, and their `starts`: token t has pieces `starts[t]:starts[t + 1]`."""
        forms = self._pieces_of_forms(text)
        lengths = np.array([len(pieces) for pieces in forms])
        flat = np.array([piece for pieces in forms for piece in pieces])
        begins = np.cumsum(lengths) - lengths
        pieces = flat[ranges(begins[text.tokens], lengths[text.tokens])]
        return pieces, np.cumsum([0, *lengths[text.tokens]])

    def _add_special(
        self, pieces: np.ndarray, sentences: np.ndarray, windows: WindowPlan
    ) -> tuple[np.ndarray, np.ndarray]:
        """The windows' pieces between [CLS] and [SEP], concatenated, and the start of each window."""
        lengths = windows.lengths + 2
        ends = np.cumsum(lengths)
        flat = np.full(ends[-1], self._sep)
        flat[ends - lengths] = self._cls
        sources = np.repeat(sentences[:-1], windows.counts) + windows.starts
        flat[ranges(ends - lengths + 1, windows.lengths)] = pieces[ranges(sources, windows.lengths)]
        return flat, ends - lengths

    def _count(self, texts: list[IndexedText]) -> list[str]:
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

    pieces: np.ndarray
    mask: np.ndarray


@dataclass(frozen=True)
class PerWindow(EncodedText):
    """The windows of a text, of which a batch selects those of its sentences.

    Output row w * length + p belongs to piece p of window w of the selection.

    pieces: all windows, concatenated; window w is `pieces[starts[w]:starts[w] + lengths[w]]`.
    first, counts: [sentences] a sentence has `counts` windows, from window `first` on.
    windows, positions: [tokens] the window within its sentence, and the piece in it, that represent a token.
    """

    pieces: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    first: np.ndarray
    counts: np.ndarray
    windows: np.ndarray
    positions: np.ndarray

    def select(self, index: BatchIndex) -> tuple[Windows, np.ndarray]:
        counts = self.counts[index.sentences]
        before = counts.cumsum() - counts
        numbers = repeat_first(ranges(self.first[index.sentences], counts), index.multiples.sentences)
        selected = self._window(numbers, index.multiples.time)
        rows = before[:, None] + self.windows[index.tokens]
        return selected, rows * selected.pieces.shape[1] + self.positions[index.tokens]

    def _window(self, numbers: np.ndarray, multiple: int) -> Windows:
        lengths = self.lengths[numbers, None]
        # no window exceeds what BERT has positions for
        steps = np.arange(min(rounded_up(lengths.max(), multiple), self.lengths.max()))
        mask = steps < lengths
        return Windows(self.pieces[self.starts[numbers, None] + steps * mask] * mask, mask)


@dataclass(frozen=True)
class WindowPlan:
    """Windows over the pieces of sentences.

    starts, lengths: [windows], `starts` relative to the sentence. first, counts: as in `PerWindow`.
    """

    starts: np.ndarray
    lengths: np.ndarray
    first: np.ndarray
    counts: np.ndarray

    def assign(self, pieces: np.ndarray, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each token, the window of its sentence in which it is farthest from both ends, and its position there.

        pieces: [tokens] index of a token's first piece in its sentence. tokens: [sentences] number of tokens.
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
            updated = candidates[better]
            best[updated], chosen[updated], positions[updated] = margin[better], number, position[better]
        assert (best >= 0).all(), "a token is in no window"
        return chosen, positions


def plan_windows(sentences: np.ndarray, longest: int, overlap: int) -> WindowPlan:
    """The fewest windows of at most `longest` pieces with at least this overlap, evenly spread.

    If a sentence has several windows, all of them have `longest` pieces.

    sentences: number of pieces of each sentence.
    """
    counts = 1 + np.maximum(0, -(-(sentences - longest) // (longest - overlap)))
    first = np.cumsum(counts) - counts
    number = np.arange(counts.sum()) - np.repeat(first, counts)
    room = np.repeat(np.maximum(0, sentences - longest), counts)
    starts = number * room // np.repeat(np.maximum(1, counts - 1), counts)
    return WindowPlan(starts, np.repeat(np.minimum(sentences, longest), counts), first, counts)


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Concatenation of the ranges start, start + 1, ..., start + length - 1."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1])
