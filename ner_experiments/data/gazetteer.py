"""Gazetteer features (Huang, Xu & Yu 2015, section 4.2): tokens that match lists of names."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ner_experiments.data.indexed_text import IndexedText, PerToken, align_left
from ner_experiments.data.inputs import Input, State
from ner_experiments.data.needed_files import gazetteer_lists
from ner_experiments.data.text_files import read_lines
from ner_experiments.utils.files import sha256

Name = tuple[str, ...]


@dataclass
class Gazetteer(Input):
    """Matches of names: for each list a feature B, I, E or S on the tokens of a match. 0 is padding.

    The lists are the files `folder`/*.txt, one per type of name (PER.txt), with one name per line, its tokens
    separated by spaces or tabs and tokenized as in the corpus (`St. John 's`). Each list is matched from left
    to right, taking the longest name that starts at a token. So matches of one list never overlap, but those
    of different lists may. With `lowercase`, case is ignored.
    """

    folder: str
    lowercase: bool

    def fit(self, train: IndexedText, others: Iterable[IndexedText]) -> None:
        paths = gazetteer_lists(self.folder)
        self.names = {kind: set(self._read(path)) for kind, path in paths.items()}
        content = "".join(f"{kind} {sha256(path)}\n" for kind, path in paths.items())
        self._checksum = hashlib.sha256(content.encode()).hexdigest()

    def encode(self, text: IndexedText) -> PerToken:
        forms = [self._normalize(form) for form in text.forms]
        tokens = [forms[token] for token in text.tokens.tolist()]
        ids = np.zeros((len(tokens), len(self.names)), dtype=np.int32)
        for place, names in enumerate(self.names.values()):
            first = 1 + 4 * place
            lengths = lengths_by_beginning(names)
            for begin, end in zip(text.starts[:-1].tolist(), text.starts[1:].tolist(), strict=True):
                for start, stop in matches(tokens[begin:end], names, lengths):
                    features = [first, *[first + 1] * (stop - start - 2), first + 2]
                    ids[begin + start : begin + stop, place] = features if stop - start > 1 else first + 3
        return PerToken(align_left(ids))

    def sizes(self) -> dict[str, Any]:
        return {"num_features": 4 * len(self.names)}

    def notes(self) -> list[str]:
        sizes = ", ".join(f"{len(names):,} {kind}" for kind, names in self.names.items())
        return [f"gazetteer: names by list: {sizes}"]

    def state(self) -> State:
        return {kind: sorted(map(list, names)) for kind, names in self.names.items()}

    def restore(self, state: State) -> None:
        self.names = {kind: set(map(tuple, names)) for kind, names in state.items()}

    def _read(self, path: Path) -> Iterator[Name]:
        empty = True
        for _, line in read_lines(path):
            name = tuple(self._normalize(token) for token in line.replace("\t", " ").split(" ") if token)
            if name:
                empty = False
                yield name
        if empty:
            raise ValueError(f"{path}: expected one name per line, got none")

    def _normalize(self, token: str) -> str:
        return token.lower() if self.lowercase else token


def lengths_by_beginning(names: Iterable[Name]) -> dict[str, list[int]]:
    """First token -> the lengths in tokens of the names that start with it, longest first."""
    lengths: defaultdict[str, set[int]] = defaultdict(set)
    for name in names:
        lengths[name[0]].add(len(name))
    return {beginning: sorted(sizes, reverse=True) for beginning, sizes in lengths.items()}


def matches(
    tokens: Sequence[str], names: set[Name], lengths: Mapping[str, Sequence[int]]
) -> Iterator[tuple[int, int]]:
    """Non-overlapping matches [start, stop) from left to right, the longest at each start."""
    start = 0
    while start < len(tokens):
        sizes = (size for size in lengths.get(tokens[start], ()) if start + size <= len(tokens))
        size = next((size for size in sizes if tuple(tokens[start : start + size]) in names), 0)
        if size:
            yield start, start + size
        start += size or 1
