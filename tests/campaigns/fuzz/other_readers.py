"""The reader of word vectors, and all readers."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from random import Random
from typing import Any

from fuzz import oracle_vectors
from fuzz.corpora import WORDS
from fuzz.format_files import format_files
from fuzz.predict_inputs import RawText
from fuzz.readers import Case, Reader, corpora
from ner_experiments.data.vectors import read_vectors

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
        return oracle_vectors.vectors(content, {word.encode() for word in WORDS})


def all_readers(folder: Path) -> list[Reader]:
    texts = [RawText(folder, tokens) for tokens in ("words", "characters")]
    return [*corpora(folder), *format_files(folder), Vectors(folder), *texts]
