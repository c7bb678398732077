"""A frozen BERT's vectors, computed once for a text and kept in the cache folder."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from ner_experiments.data import bert_files
from ner_experiments.data.batches import TokenBudget
from ner_experiments.data.encoder import Encoded
from ner_experiments.data.inputs import Input, State
from ner_experiments.data.pieces import Pieces, spans
from ner_experiments.data.text import Rows, Text, Where
from ner_experiments.utils.files import clear, replacing, sha256

# Belongs to each file's name: to be raised when the same model and text come to give other vectors.
_VERSION = 2
_BATCH = TokenBudget(4096)
_MOST = 16_384
"""Pieces that BERT reads at once: a sentence may have any number."""
_DIGEST = hashlib.sha256().digest_size

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OnDisk(Rows):
    """A vector per token, float32 [tokens dim]; only a batch's come into memory and onto the device."""

    table: np.ndarray
    device: torch.device

    def to(self, device: torch.device) -> OnDisk:
        return replace(self, device=device)

    def select(self, where: Where) -> tuple[Tensor, Tensor]:
        rows = torch.from_numpy(self.table[where.tokens[where.mask].cpu().numpy()])
        # Padding is given its sentence's last token.
        places = where.mask.flatten().cumsum(0).view_as(where.tokens) - 1
        return rows.to(self.device), places


@dataclass(frozen=True)
class ToCompute(Rows):
    """A vector per token, which `compute` makes on the device that they are to be on."""

    compute: Callable[[torch.device], np.ndarray]

    def to(self, device: torch.device) -> OnDisk:
        return OnDisk(self.compute(device), device)

    def select(self, where: Where) -> tuple[Tensor, Tensor]:
        return self.to(where.tokens.device).select(where)


@dataclass
class FrozenPieces(Input):
    """What `FrozenBert` would make of `Pieces`, a vector per token, from a file in the folder `cache`.

    The file belongs to the model's and the text's content and to the two settings, and is checked when it is
    taken up; a damaged one is replaced. MSRA takes 7 GB with 768 numbers for a token. The vectors are
    computed where the batches are to be. Without `cache` they stay in memory.
    """

    path: str
    max_length: int
    overlap: int
    cache: str | None

    def __post_init__(self) -> None:
        self.pieces = Pieces(self.path, self.max_length, self.overlap)
        self._keeps_bert = False
        self._bert: nn.Module | None = None

    def fit(self, train: Text, others: Iterable[Text]) -> None:
        self.pieces.fit(train, others)
        self.model_checksum = self.checksum()

    def encode(self, text: Text) -> ToCompute:
        return ToCompute(partial(self._vectors, text))

    def _vectors(self, text: Text, device: torch.device) -> np.ndarray:
        shape = (len(text.tokens), self.pieces.dim)
        if self.cache is not None:
            return self._kept(text, shape, Path(self.cache), device)
        table = np.empty(shape, dtype=np.float32)
        self._compute(text, table, device)
        return table

    def _kept(self, text: Text, shape: tuple[int, int], cache: Path, device: torch.device) -> np.ndarray:
        settings = [_VERSION, self.model_checksum, self.max_length, self.overlap, _checksum(text)]
        name = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:32]
        file = cache / f"{name}.bert.npy"
        table = _load(file, shape)
        if table is None:
            with _new(file, shape) as empty:
                self._compute(text, empty, device)
            table = _load(file, shape)
            assert table is not None
        return table

    def keep_nothing(self) -> None:
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

    def _compute(self, text: Text, table: np.ndarray, device: torch.device) -> None:
        bert = (self._bert or self._read_model()).to(device)
        if self._keeps_bert:
            self._bert = bert
        split = Encoded(text, torch.zeros(len(text.tokens)), {"words": self.pieces}, device)
        console = Console(stderr=True)
        plan = _BATCH.in_order(text.lengths)
        shown = track(plan, "frozen BERT", console=console, transient=True, disable=not console.is_terminal)
        with torch.inference_mode():
            for sentences in shown:
                batch = split.batch(sentences)
                pieces, mask = batch.inputs["words"]
                some = max(1, _MOST // pieces.shape[1])
                parts = zip(pieces.split(some), mask.split(some), strict=True)
                made = [bert(input_ids=ids, attention_mask=real)[0].flatten(0, 1) for ids, real in parts]
                tokens = spans(text.starts[sentences], text.lengths[sentences])
                table[tokens] = batch.spread("words", torch.cat(made))[batch.mask].cpu().numpy()

    def _read_model(self) -> nn.Module:
        folder = bert_files.find(self.path)
        found = bert_files.checksum(folder)
        if found != self.model_checksum:
            raise ValueError(
                f"{folder}: not the BERT that the run was trained on, whose checksum is "
                f"{self.model_checksum[:12]}; this one's is {found[:12]}"
            )
        return bert_files.read_model(folder)


def _checksum(text: Text) -> str:
    digest = hashlib.sha256(json.dumps(text.forms).encode())
    digest.update(text.tokens.tobytes())
    digest.update(text.starts.tobytes())
    return digest.hexdigest()


def _load(file: Path, shape: tuple[int, int]) -> np.ndarray | None:
    """The vectors, if the file is there and whole: at its end stands the SHA-256 of all before."""
    if not file.exists():
        return None
    try:
        content = np.memmap(file, mode="r")
        if hashlib.sha256(content[:-_DIGEST].data).digest() == content[-_DIGEST:].tobytes():
            table = np.load(file, mmap_mode="r", allow_pickle=False)
            if table.shape == shape:
                return table
    except (OSError, EOFError, ValueError) as error:
        _log.debug("%s: %s", file, error)
    _log.warning("%s: damaged cache of BERT's vectors, made again", file)
    return None


@contextmanager
def _new(file: Path, shape: tuple[int, int]) -> Iterator[np.ndarray]:
    """A table that takes the place of `file` once it is filled. Several processes may do this at once."""
    file.parent.mkdir(parents=True, exist_ok=True)
    clear(file.parent)
    with replacing(file) as part:
        table = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=shape)
        yield table
        table.flush()
        digest = bytes.fromhex(sha256(part))
        with open(part, "ab") as stream:
            stream.write(digest)
