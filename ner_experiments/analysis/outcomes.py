"""Of each gold mention whether a run finds it, so that runs can be compared mention by mention."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from ner_experiments.analysis.dimensions import Dimension, Marked


@dataclass(frozen=True, slots=True)
class Grouped:
    """The groups of a dimension that have a gold mention, and which of them each mention is in."""

    names: tuple[str, ...]
    of: Int[np.ndarray, " mentions"]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Of each gold mention of the test set, in its order: whether it is found exactly, and its groups."""

    right: Bool[np.ndarray, " mentions"]
    groups: Mapping[str, Grouped]

    def record(self) -> dict[str, Any]:
        """Compressed: a few hundred bytes for each thousand mentions."""
        groups = {
            name: {"names": list(grouped.names), "of": packed(grouped.of.astype("<u2"))}
            for name, grouped in self.groups.items()
        }
        return {"mentions": len(self.right), "right": packed(self.right.astype(np.uint8)), "groups": groups}


def outcomes(texts: Sequence[Marked], named: Mapping[str, Dimension]) -> Outcomes:
    """Of a test set, by the dimensions that `breakdown` has."""
    gold = [(text, mention) for text in texts for mention in sorted(text.gold)]
    right = np.array([mention in text.predicted for text, mention in gold], dtype=bool)
    groups = {}
    for name, dimension in named.items():
        of = [dimension.of(text.words, mention) for text, mention in gold]
        names = dimension.ordered(set(of))
        number = {group: place for place, group in enumerate(names)}
        groups[name] = Grouped(tuple(names), np.array([number[group] for group in of], dtype=np.int64))
    return Outcomes(right, groups)


def restored(record: Mapping[str, Any]) -> Outcomes:
    """What `record` wrote."""
    count = record["mentions"]
    groups = {
        name: Grouped(tuple(grouped["names"]), unpacked(grouped["of"], count, "<u2").astype(np.int64))
        for name, grouped in record["groups"].items()
    }
    return Outcomes(unpacked(record["right"], count, "u1").astype(bool), groups)


def packed(numbers: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()


def unpacked(text: str, count: int, kind: str) -> np.ndarray:
    """No more than `count` numbers, whatever the text would come to."""
    size = count * np.dtype(kind).itemsize
    return np.frombuffer(zlib.decompressobj().decompress(base64.b64decode(text), size or 1), dtype=kind)
