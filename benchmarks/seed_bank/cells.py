"""Cells of the seed bank: rows of three small tables, each trained with many seeds.

A cell is a row on a corpus. The settings are not those of a paper, but chosen so that a run takes less than a minute of
one CPU thread. Word vectors are those of GloVe's 10,000 most frequent words, in 50 dimensions, from the file
`data_dir`/glove/glove.6B.50d.10k.txt.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ner_experiments.runs.archived_run import format_counts
from ner_experiments.utils.files import atomic_write

FOLDER = Path(__file__).parent / "runs"
GLOVE = ("words=glove", "words.input.path=${data_dir}/glove/glove.6B.50d.10k.txt")
BASE: dict[str, tuple[str, ...]] = {
    "wnut17": (*GLOVE, "model.hidden_size=64", "optimizer.lr=0.003", "trainer.max_epochs=6"),
    "weibo": ("chars=none", "model.hidden_size=64", "optimizer.lr=0.003", "trainer.max_epochs=8"),
    "conll2000": (*GLOVE, "chars=none", "model.hidden_size=64", "optimizer.lr=0.003", "trainer.max_epochs=3"),
}
STACKED, RESIDUAL = ("model=stacked", "layers=2"), ("model=residual", "layers=2", "model.dense_size=128")
ROWS: dict[str, dict[str, tuple[str, ...]]] = {
    "weibo": {"crf": (), "softmax": ("decoder=softmax",), "stacked": STACKED, "residual": RESIDUAL},
    "conll2000": {"crf": (), "softmax": ("decoder=softmax",), "lstm": ("model=lstm",)},
    "wnut17": {"crf": (), "softmax": ("decoder=softmax",), "stacked": STACKED, "residual": RESIDUAL},
}
"""Settings of each row by corpus, the corpus with the cheapest runs first."""


@dataclass(frozen=True)
class Cell:
    """A row on a corpus, with the file of its runs: one JSON object per line, by seed."""

    corpus: str
    row: str

    @property
    def overrides(self) -> list[str]:
        return [f"data={self.corpus}", *BASE[self.corpus], *ROWS[self.corpus][self.row]]

    def path(self, folder: Path = FOLDER) -> Path:
        return folder / f"{self.corpus}-{self.row}.jsonl"

    def runs(self, folder: Path = FOLDER) -> list[dict[str, Any]]:
        """The finished runs in the order of their seeds; empty if the file does not exist."""
        path = self.path(folder)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def add(self, run: dict[str, Any], folder: Path = FOLDER) -> None:
        """Add a run to the file, which is replaced as a whole, so that a kill never damages it."""
        runs = sorted([*self.runs(folder), run], key=lambda each: each["seed"])
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path(folder)) as part:
            part.write_text("".join(f"{json.dumps(each)}\n" for each in runs))

    def counts(self, folder: Path = FOLDER) -> np.ndarray:
        """[seeds sentences 3]: numbers of correct, predicted and gold mentions in each test sentence."""
        return np.stack([unpack_counts(run["counts"]) for run in self.runs(folder)])


def pack_counts(counts: np.ndarray) -> str:
    """Counts per sentence, compressed, as text."""
    return base64.b64encode(zlib.compress(format_counts(counts).encode(), 9)).decode()


def unpack_counts(packed: str) -> np.ndarray:
    text = zlib.decompress(base64.b64decode(packed)).decode()
    return np.array([row.split(",") for row in text.split(" ")], dtype=np.int64)


CELLS = [Cell(corpus, row) for corpus, rows in ROWS.items() for row in rows]
