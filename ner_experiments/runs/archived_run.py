"""Readers of archived runs. Each is a file of results/, written by `analysis.archive`."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ner_experiments.runs import artifacts
from ner_experiments.runs.code import Code
from ner_experiments.runs.run import Run

TAGS = "predicted_tags"
"""Key of the packed tags; early archived runs have none."""


@dataclass(frozen=True)
class ArchivedRun(Run):
    """A run as `analysis.archive` wrote it into a file of results/, without sentences and weights.

    `folder` is the path of the file.
    """

    archived: ClassVar[bool] = True

    content: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Label of the row that it was archived for."""
        return str(self.content["label"])

    def settings(self) -> Mapping[Any, Any]:
        return dict(self.content["config"])

    def code(self) -> Code | None:
        return self.content.get("code")

    def counts(self) -> np.ndarray:
        rows = [row.split(",") for row in self.on_test["counts"].split(" ")]
        return np.array(rows, dtype=np.int64)

    @property
    def on_test(self) -> Mapping[str, Any]:
        """The archived part of its test set: counts, and mostly the predicted tags."""
        found: Mapping[str, Any] = (
            self.content if self.test_name == "test" else self.content["extra_tests"][self.test_name]
        )
        return found

    @property
    def has_tags(self) -> bool:
        """Whether its predicted tags are archived."""
        return TAGS in self.on_test

    def predicted_tags(self) -> list[tuple[str, ...]]:
        if not self.has_tags:
            raise ValueError(
                f"{self.folder}: archived without predicted tags, so it has to be trained again for them"
            )
        return unpack_tags(self.on_test[TAGS])

    def epochs(self) -> list[dict[str, float]]:
        return list(self.content["epochs"])

    def test_every_epoch(self) -> list[float]:
        return list(self.content["test_every_epoch"]) if self.test_name == "test" else []


def archived_runs(folder: Path) -> Iterator[ArchivedRun]:
    """Yield the archived runs of a folder, by file name."""
    for path in sorted(folder.glob("*.json")):
        yield open_archived_run(path)


def open_archived_run(path: Path) -> ArchivedRun:
    """The archived run of a file. Raises ValueError if the file is damaged or is no archived run."""
    content = artifacts.read(path)
    if "metrics" not in content:
        raise ValueError(f"{path}: expected an archived run as in results/, but it has no metrics")
    return ArchivedRun(path, content["metrics"], content)


def format_counts(counts: np.ndarray) -> str:
    """Counts as one line of text, which `ArchivedRun.counts` reads."""
    return " ".join(",".join(map(str, row)) for row in counts.tolist())


def pack_tags(sentences: Iterable[Sequence[str]]) -> str:
    """Tags of sentences as one line of text, which `unpack_tags` reads.

    Tags are separated by spaces and sentences by line feeds; the text is compressed by zlib and encoded in Base64.
    Requires tags without spaces, and sentences with at least one tag.
    """
    text = "\n".join(map(" ".join, sentences))
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpack_tags(packed: str) -> list[tuple[str, ...]]:
    """The tags of each sentence."""
    lines = zlib.decompress(base64.b64decode(packed)).decode().split("\n")
    return [tuple(line.split(" ")) for line in lines]
