"""Readers of files other than corpora: word vectors, gazetteers, tables and checkpoints."""

from __future__ import annotations

import gzip
import json
import logging
import struct
from pathlib import Path
from random import Random
from typing import Any

import torch
import yaml

from fuzz import oracle_lists
from fuzz.arrow_files import arrow_files
from fuzz.corpora import WORDS
from fuzz.docbin_files import DocBinFile
from fuzz.format_files import format_files
from fuzz.predict_inputs import predict_inputs
from fuzz.readers import Case, Reader, corpora
from ner_experiments.data.gazetteer import Gazetteer
from ner_experiments.data.indexed_text import IndexedText
from ner_experiments.data.sentence import Sentence
from ner_experiments.data.vectors import read_vectors
from ner_experiments.runs import progress
from ner_experiments.runs.provenance import made_by
from ner_experiments.tables import spec
from ner_experiments.training import checkpoints

MARK = "\ufeff".encode()


class Vectors(Reader):
    name = "vectors"
    inputs = 173_000
    judges = False

    def whole(self, rng: Random) -> Case:
        width = rng.randint(1, 4)
        words = rng.sample([word for word in WORDS if word not in ("7", "1984")], rng.randint(1, 5))
        table = {word.encode(): [rng.randint(-9999, 9999) / 1024 for _ in range(width)] for word in words}
        content = rng.choice((self.glove, self.text, self.binary))(rng, table, width)
        if content.startswith(MARK) or rng.random() < 0.1:
            content = MARK + content
        if rng.random() < 0.3:
            content = gzip.compress(content, 1, mtime=0)
        return Case(content, table)

    def glove(self, rng: Random, table: dict[bytes, list[float]], width: int) -> bytes:
        end = rng.choice((b"\n", b"\n", b"\r\n", b" \n"))
        lines = [b" ".join([word, *(str(number).encode() for number in row)]) for word, row in table.items()]
        return b"".join(line + end for line in lines)[: -len(end) if rng.random() < 0.2 else None]

    def text(self, rng: Random, table: dict[bytes, list[float]], width: int) -> bytes:
        return f"{len(table)} {width}\n".encode() + self.glove(rng, table, width)

    def binary(self, rng: Random, table: dict[bytes, list[float]], width: int) -> bytes:
        end = rng.choice((b"", b"\n"))
        rows = [word + b" " + struct.pack(f"<{width}f", *row) + end for word, row in table.items()]
        return f"{len(table)} {width}\n".encode() + b"".join(rows)

    def read(self) -> Any:
        found, width = read_vectors(self.path, {word.encode() for word in WORDS})
        assert all(row.shape == (width,) for row in found.values())
        return {word: row.tolist() for word, row in found.items()}

    def expected(self, content: bytes) -> Any:
        return oracle_lists.vectors(content, {word.encode() for word in WORDS})


class GazetteerLists(Reader):
    name = "gazetteer"
    inputs = 100_000

    def __init__(self, folder: Path) -> None:
        folder = folder / "lists"
        folder.mkdir()
        super().__init__(folder)
        self.path = folder / "PER.txt"
        self.whole_file = f"{self.path}: expected one name per line, got none"
        self.lists = Gazetteer(folder=str(folder), lowercase=False)
        draws = Random(0)
        self.sentences = [draws.choices(WORDS[:20], k=length) for length in (1, 2, 5, 12, 20)]
        self.text = IndexedText.from_sentences(
            [Sentence(tuple(words), ("O",) * len(words)) for words in self.sentences]
        )

    def whole(self, rng: Random) -> Case:
        names = [tuple(rng.choices(WORDS[:20], k=rng.randint(1, 3))) for _ in range(rng.randint(1, 8))]
        lines = [" ".join(name) + " " * rng.randint(0, 1) for name in names] + [""] * rng.randint(0, 2)
        rng.shuffle(lines)
        end = rng.choice(("\n", "\r\n"))
        return Case(("\ufeff" * rng.randint(0, 1) + end.join(lines)).encode(), set(names))

    def read(self) -> Any:
        self.lists.fit(self.text, [])
        return self.lists.names["PER"], self.lists.encode(self.text).table[:, 0].tolist()

    def expected(self, content: bytes) -> Any:
        names = oracle_lists.gazetteer(content)
        return names, [feature for words in self.sentences for feature in oracle_lists.in_names(words, names)]

    def agrees(self, found: Any, known: Any) -> bool:
        return found[0] == known


TEXTS = [
    "a",
    "WNUT, Att",
    "layers=3",
    "7",
    "1.5",
    "true",
    "null",
    "a: b",
    "# c",
    "- d",
    "é 人",
    "'",
    '"',
    "3 %",
]


class Tables(Reader):
    """The reader decides what it refuses; what it accepts is compared with the file's own content."""

    name = "tables"
    inputs = 15_000
    judges = False

    def whole(self, rng: Random) -> Case:
        labels = rng.sample(TEXTS, rng.randint(1, 4))
        rows = [{"label": label, "run": rng.sample(TEXTS, rng.randint(0, 2))} for label in labels]
        for row in rows:
            if rng.random() < 0.8:
                row["published"] = rng.choice(
                    (rng.randint(0, 100), rng.randint(0, 9999) / 100, "none", ["a", "b"])
                )
            if rng.random() < 0.2:
                row |= {"sd": 0.25, "runs": 5, "also": {"precision": 88.5}, "note": rng.choice(TEXTS)}
        table = {"title": rng.choice(TEXTS), "source": "somebody", "seeds": [1, 2], "rows": rows}
        if rng.random() < 0.3:
            text = json.dumps(table, indent=rng.choice((None, 2)))
        else:
            flow = rng.choice((True, False, None))
            text = yaml.safe_dump(table, allow_unicode=True, sort_keys=False, default_flow_style=flow)
        return Case(text.encode(), self.plainly(table))

    def read(self) -> Any:
        spec.parsed_in_state.cache_clear()  # it changes faster than the clock of the file system
        table = spec.read(self.path)
        rows = [
            {
                "label": row.label,
                "run": None if row.run is None else list(row.run),
                "published": row.published,
                "note": row.note or None,
            }
            for row in table.rows
        ]
        return self.plainly({"title": table.title, "rows": rows})

    def expected(self, content: bytes) -> Any:
        return self.plainly(yaml.load(content, yaml.BaseLoader))

    def plainly(self, table: Any) -> Any:
        """Everything that a table prints, as text with unrounded numbers."""
        keys = ("label", "run", "published", "note")
        return table["title"], [[number(row.get(key)) for key in keys] for row in table["rows"]]


def number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


class Checkpoints(Reader):
    """`resumable_checkpoint`, which warns about what is wrong with a file and returns None."""

    name = "checkpoints"
    inputs = 10_000
    judges = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / progress.CHECKPOINT
        self.warnings: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.warnings.append(record.getMessage())
        checkpoints.log.handlers, checkpoints.log.propagate = [handler], False
        maker = {checkpoints.LastCheckpoint.__qualname__: {"made_by": made_by()}}
        self.state = {"callbacks": maker, "state_dict": {"weight": torch.arange(6.0)}, "epoch": 3}
        checkpoints.AtomicCheckpointIO().save_checkpoint(self.state, self.path)
        self.content = self.path.read_bytes()

    def whole(self, rng: Random) -> Case:
        return Case(self.content, None)

    def read(self) -> Any:
        self.warnings.clear()
        path = checkpoints.resumable_checkpoint(self.path.parent)
        if path is None:
            (warning,) = self.warnings
            raise ValueError(warning.replace(" is damaged", ": damaged").replace(" was made", ": made"))
        return plainly(torch.load(path, weights_only=True))

    def expected(self, content: bytes) -> Any:
        return plainly(self.state)


def plainly(state: Any) -> Any:
    return state | {"state_dict": {name: weight.tolist() for name, weight in state["state_dict"].items()}}


def all_readers(folder: Path) -> list[Reader]:
    others = [Vectors(folder), GazetteerLists(folder), Tables(folder), Checkpoints(folder)]
    annotated = [*format_files(folder), DocBinFile(folder), *arrow_files(folder)]
    return [*corpora(folder), *annotated, *others, *predict_inputs(folder)]
