"""Vectors of a frozen BERT, computed once per text and cached on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import nn

from ner_experiments.data import bert_files, cache_files
from ner_experiments.data.batches import TokenBudget
from ner_experiments.data.encoder import EncodedSplit
from ner_experiments.data.indexed_text import BatchIndex, EncodedText, IndexedText, repeat_first
from ner_experiments.data.inputs import Input, State
from ner_experiments.data.pieces import Pieces, ranges

# Part of each cache file's name. Increment it when the same model and text yield different vectors.
_VERSION = 2
_BATCH = TokenBudget(4096)
_MOST_PIECES = 16_384
"""Largest number of pieces per call of BERT, because a sentence can have any number."""


@dataclass(frozen=True)
class OnDisk(EncodedText):
    """A memory-mapped vector per token, float32 [tokens dim]; only a batch is loaded."""

    table: np.ndarray

    def select(self, index: BatchIndex) -> tuple[np.ndarray, np.ndarray]:
        tokens = repeat_first(index.tokens[index.mask], index.multiples.rows)
        # Padding repeats the last token of its sentence.
        return self.table[tokens], index.mask.cumsum().reshape(index.mask.shape) - 1


@dataclass(frozen=True)
class ToCompute(EncodedText):
    """A vector per token, computed by `compute` on the device of the batches."""

    compute: Callable[[torch.device], np.ndarray]

    def to(self, device: torch.device) -> OnDisk:
        return OnDisk(self.compute(device))

    def select(self, index: BatchIndex) -> tuple[np.ndarray, np.ndarray]:
        return self.to(torch.device("cpu")).select(index)


@dataclass
class FrozenPieces(Input):
    """The vectors that a frozen BERT computes from `Pieces`, one per token, cached in the folder `cache`.

    A cache file is keyed by the contents of the model and the text, and by `max_length` and `overlap`. It is verified
    when it is loaded; a damaged one is replaced. MSRA takes 7 GB at 768 numbers per token. The vectors are
    computed on the device of the batches. Without `cache` they stay in memory.
    """

    path: str
    max_length: int
    overlap: int
    cache: str | None

    def __post_init__(self) -> None:
        self.pieces = Pieces(self.path, self.max_length, self.overlap)
        self._keeps_bert = False
        self._bert: nn.Module | None = None

    def fit(self, train: IndexedText, others: Iterable[IndexedText]) -> None:
        self.pieces.fit(train, others)
        self.model_checksum = self.checksum()

    def encode(self, text: IndexedText) -> ToCompute:
        return ToCompute(partial(self._vectors, text))

    def _vectors(self, text: IndexedText, device: torch.device) -> np.ndarray:
        shape = (len(text.tokens), self.pieces.dim)
        if self.cache is None:
            table = np.empty(shape, dtype=np.float32)
            self._compute(text, table, device)
            return table
        settings = [_VERSION, self.model_checksum, self.max_length, self.overlap, _checksum(text)]
        name = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:32]
        file = Path(self.cache) / f"{name}.bert.npy"
        if (cached := _cached_table(file)) is None:
            with cache_files.new(file) as part:
                empty = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=shape)
                self._compute(text, empty, device)
                empty.flush()
            cached = _cached_table(file)
            assert cached is not None
        return cached

    def disable_cache(self) -> None:
        self.cache = None
        self._keeps_bert = True

    def sizes(self) -> dict[str, Any]:
        return {"dim": self.pieces.dim}

    def checksum(self) -> str:
        return self.pieces.checksum()

    def notes(self) -> list[str]:
        return self.pieces.notes()

    def state(self) -> State:
        return {"model": self.model_checksum, "pieces": self.pieces.state()}

    def restore(self, state: State) -> None:
        self.model_checksum = state["model"]
        self.pieces.restore(state["pieces"])

    def _compute(self, text: IndexedText, table: np.ndarray, device: torch.device) -> None:
        bert = (self._bert or self._read_model()).to(device)
        if self._keeps_bert:
            self._bert = bert
        split = EncodedSplit(text, np.zeros(len(text.tokens)), {"words": self.pieces}, device)
        console = Console(stderr=True)
        plan = _BATCH.in_order(text.lengths)
        progress = track(
            plan, "frozen BERT", console=console, transient=True, disable=not console.is_terminal
        )
        with torch.inference_mode():
            for sentences in progress:
                batch = split.batch(sentences)
                pieces, mask = batch.inputs["words"]
                chunk = max(1, _MOST_PIECES // pieces.shape[1])
                parts = zip(pieces.split(chunk), mask.split(chunk), strict=True)
                outputs = [bert(input_ids=ids, attention_mask=real)[0].flatten(0, 1) for ids, real in parts]
                tokens = ranges(text.starts[sentences], text.lengths[sentences])
                table[tokens] = batch.spread("words", torch.cat(outputs))[batch.mask].cpu().numpy()

    def _read_model(self) -> nn.Module:
        folder = bert_files.find(self.path)
        checksum = bert_files.checksum(folder)
        if checksum != self.model_checksum:
            raise ValueError(
                f"{folder}: not the BERT that the run was trained on, whose checksum is "
                f"{self.model_checksum[:12]}; this one's is {checksum[:12]}"
            )
        return bert_files.read_model(folder)


def _cached_table(file: Path) -> np.ndarray | None:
    return cache_files.read(
        file,
        "BERT's vectors",
        lambda _: np.load(file, mmap_mode="r", allow_pickle=False),  # noqa: TID251
    )


def _checksum(text: IndexedText) -> str:
    digest = hashlib.sha256(json.dumps(text.forms).encode())
    digest.update(text.tokens.tobytes())
    digest.update(text.starts.tobytes())
    return digest.hexdigest()
