"""Corpora in files, one class per format. Most of `conf/data/*.yaml` configure one of them."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import ClassVar, get_args

from ner_experiments.data.columns import PathOrFile, is_docstart, read_columns, read_lines, read_untagged
from ner_experiments.data.conllu import Tag, read_conllu, read_untagged_conllu
from ner_experiments.data.corpus import SchemeOrAuto, Splits, scheme_by_letters
from ner_experiments.data.ontonotes import read_gold_conll, read_untagged_gold_conll
from ner_experiments.data.sentence import Sentence, Task, Tokens
from ner_experiments.data.tags import Scheme, illegal_positions
from ner_experiments.utils.files import sha256


@dataclass(frozen=True, kw_only=True)
class Files(ABC):
    """A corpus in files. Subclasses read one file format each.

    files: split -> its file, relative to `folder` or absolute; null if the corpus has no such split.
    sha256, sizes: split -> SHA-256 in hexadecimal and size in bytes of the published file.
    source, licence: the corpus, its origin and its terms, for the message about a missing file.
    url: the address below which the files can be downloaded by name, if the licence is open.
    held_out, max_sentences, tokens: see `Source`.
    """

    name: str
    folder: str
    files: Mapping[str, str | None]
    sha256: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    licence: str = ""
    url: str = ""
    held_out: float = 0.0
    max_sentences: int | None = None
    tokens: Tokens = "words"

    def __post_init__(self) -> None:
        self._check_choice("tokens", self.tokens, get_args(Tokens))

    def _check_choice(self, key: str, value: object, choices: Sequence[str]) -> None:
        if value not in choices:
            raise ValueError(f"{self.name}: {key} must be one of {', '.join(choices)}, got {value!r}")

    @property
    @abstractmethod
    def task(self) -> Task: ...

    @property
    @abstractmethod
    def scheme(self) -> SchemeOrAuto: ...

    @abstractmethod
    def sentences(self, path: Path) -> Iterator[Sentence]:
        """Sentences of one file."""

    @abstractmethod
    def untagged(self, path: PathOrFile) -> Iterator[Sentence]:
        """Sentences of a file in this format with or without tags; every tag is O."""

    def line_of(self, sentence: Sentence, token: int) -> int:
        """1-based line of a token, for errors. Formats without a line for each token override it."""
        return sentence.line + token

    def find(self, file: str) -> list[Path]:
        """The files that an entry of `files` names; empty if there is none."""
        path = self.place / file
        return [path] if path.is_file() else []

    @property
    def place(self) -> Path:
        return Path(self.folder).expanduser()

    def paths(self) -> dict[str, list[Path]]:
        """The files of each split. Raises ValueError with the missing ones and how to obtain them."""
        named = {split: file for split, file in self.files.items() if file is not None}
        if not named:
            raise ValueError(f"{self.name}: no file is named; set data.files.train, .dev and .test")
        paths_of = {split: self.find(file) for split, file in named.items()}
        missing = [named[split] for split, paths in paths_of.items() if not paths]
        if missing:
            raise ValueError(self._missing(missing))
        return paths_of

    def _missing(self, files: Sequence[str]) -> str:
        message = f"{self.name}: not found in {self.place.absolute()}: {', '.join(files)}"
        if self.source:
            message += f". This is {self.source}. Licence: {self.licence}"
        if self.url:
            message += f". To download it there: ner-experiments data get {self.name}"
        elif self.source:
            message += f". Put it there, or set NER_DATA_DIR to the folder that holds {self.place.name}/"
        return message

    def present(self) -> list[str]:
        return [*self.paths()]

    def read(self) -> Splits:
        files = {
            split: [(path, list(self.sentences(path))) for path in paths]
            for split, paths in self.paths().items()
        }
        splits = {
            split: list(chain.from_iterable(read for _, read in parts)) for split, parts in files.items()
        }
        for split, sentences in splits.items():
            if not sentences:
                raise ValueError(f"{self.name}: {split} has no sentence: {self.files[split]}")
        if self.task == "mentions":
            scheme = scheme_by_letters(self, splits)
            for path, sentences in chain.from_iterable(files.values()):
                self._check_tags(path, sentences, scheme)
        return splits

    def _check_tags(self, path: Path, sentences: Sequence[Sentence], scheme: Scheme) -> None:
        """Raise ValueError at the first tag that the scheme does not have, in any context."""
        faults = {}
        for tag in {tag for sentence in sentences for tag in sentence.tags}:
            try:
                illegal_positions((tag,), scheme)
            except ValueError as error:
                faults[tag] = error
        if not faults:
            return
        for sentence in sentences:
            for token, tag in enumerate(sentence.tags):
                if tag in faults:
                    line = self.line_of(sentence, token)
                    raise ValueError(f"{path}:{line}: not a tag of {scheme}: {faults[tag]}")

    def checksum(self) -> str:
        """SHA-256 over the split, name and content of each file, independent of its folder."""
        digest = hashlib.sha256()
        for split, paths in self.paths().items():
            for path in paths:
                digest.update(f"{split} {path.name} {sha256(path)}\n".encode())
        return digest.hexdigest()

    def unofficial(self) -> list[str] | None:
        if not self.sha256:
            return None
        return [
            split
            for split, paths in self.paths().items()
            if any(sha256(path) != self.sha256.get(split) for path in paths)
        ]

    def docstarts(self) -> dict[str, int]:
        return {}


@dataclass(frozen=True, kw_only=True)
class ColumnFiles(Files):
    """Column files. `columns`, `first_character` and `empty_tag` are those of `read_columns`."""

    columns: Mapping[str, int]
    task: Task = "mentions"
    scheme: SchemeOrAuto = "auto"
    first_character: bool = False
    empty_tag: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_choice("scheme", self.scheme, ("auto", *get_args(Scheme)))
        self._check_choice("task", self.task, get_args(Task))
        if not {"word", "tag"} <= self.columns.keys():
            named = ", ".join(self.columns) or "none"
            raise ValueError(f"{self.name}: columns must name at least word and tag, got {named}")

    def sentences(self, path: Path) -> Iterator[Sentence]:
        return read_columns(
            path, columns=self.columns, first_character=self.first_character, empty_tag=self.empty_tag
        )

    def untagged(self, path: PathOrFile) -> Iterator[Sentence]:
        others = {name: index for name, index in self.columns.items() if name != "tag"}
        return read_untagged(path, columns=others, first_character=self.first_character)

    def docstarts(self) -> dict[str, int]:
        counts = {split: sum(map(self._count_docstarts, paths)) for split, paths in self.paths().items()}
        return {split: count for split, count in counts.items() if count}

    def _count_docstarts(self, path: Path) -> int:
        return sum(is_docstart(line, self.columns) for _, line in read_lines(path))


@dataclass(frozen=True, kw_only=True)
class ConlluFiles(Files):
    """CoNLL-U files, read for their part-of-speech tags: xpos or upos."""

    tag: Tag = "xpos"
    task: ClassVar[Task] = "tags"
    scheme: ClassVar[SchemeOrAuto] = "auto"  # unused: part-of-speech tags have no scheme

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_choice("tag", self.tag, get_args(Tag))

    def sentences(self, path: Path) -> Iterator[Sentence]:
        return read_conllu(path, tag=self.tag)

    def untagged(self, path: PathOrFile) -> Iterator[Sentence]:
        return read_untagged_conllu(path)


@dataclass(frozen=True, kw_only=True)
class GoldConllFiles(Files):
    """A tree of CoNLL-2012's `*_gold_conll` files. `files` has a glob for each split (`**`: any depth)."""

    task: ClassVar[Task] = "mentions"
    scheme: ClassVar[SchemeOrAuto] = "iob2"  # returned by `read_gold_conll`

    def find(self, file: str) -> list[Path]:
        return sorted(self.place.glob(file))

    def sentences(self, path: Path) -> Iterator[Sentence]:
        return read_gold_conll(path)

    def untagged(self, path: PathOrFile) -> Iterator[Sentence]:
        return read_untagged_gold_conll(path)
