"""Corpora of annotated text, in any format of `formats/` whose options are `TextOptions`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from ner_experiments.data.corpus import Source
from ner_experiments.data.files import Files, Read
from ner_experiments.data.formats import hf
from ner_experiments.data.formats.annotated import Annotated, flat, of_sentence
from ner_experiments.data.formats.columns import invisible, is_visible
from ner_experiments.data.formats.format import Format
from ner_experiments.data.formats.options import Gold, Misaligned, Nested, Offsets, TextOptions
from ner_experiments.data.formats.registry import FORMATS, require
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.sentence import Sentence, intern_all
from ner_experiments.data.tags import convert
from ner_experiments.data.text_files import PathOrFile
from ner_experiments.data.tokenize import joint
from ner_experiments.utils.text import truncated_repr

HUB_SPLITS = {"train": ("train",), "dev": ("validation", "dev", "valid"), "test": ("test",)}
"""Split -> its usual names in data sets of a hub."""


@dataclass(frozen=True, kw_only=True)
class AnnotatedFiles(TextOptions, Files):
    """A corpus in one of the formats. It is read without nesting: `nested` says which of nested mentions are kept."""

    format: str
    scheme = "auto"  # of files of tags; mentions are encoded as iob2

    @property
    def form(self) -> Format:
        return FORMATS[self.format]

    def __post_init__(self) -> None:
        super().__post_init__()
        readable = [name for name, it in FORMATS.items() if it.read and it.options is TextOptions]
        self._check_choice("format", self.format, readable)
        self._check_choice("nested", self.nested or "refuse", get_args(Nested))
        self._check_choice("misaligned", self.misaligned, get_args(Misaligned))
        self._check_choice("offsets", self.offsets, get_args(Offsets))

    def sentences(self, path: PathOrFile, remarks: Remarks, gold: Gold) -> Iterator[Sentence | Annotated]:
        require(self.format)
        for it in super().sentences(path, remarks, gold):
            place = it.place if isinstance(it, Annotated) else it.place(0)
            if word := next((word for word in it.words if "\n" in word or "\r" in word), ""):
                raise ValueError(f"{place}: a token cannot contain a line end, got {truncated_repr(word)}")
            if isinstance(it, Annotated):
                if types := [type_ for _, _, type_ in it.mentions if not is_visible(type_)]:
                    rule = f"type {truncated_repr(types[0])} contains an invisible character"
                    raise ValueError(f"{place}: {rule}")
            elif gold != "none":
                for token, tag in enumerate(it.tags):
                    if not is_visible(tag):
                        remarks.fault(f"{it.place(token)}: {invisible(tag)}")
            yield it

    def of_scheme(self, read: Read, remarks: Remarks) -> Read:
        """As `Files.of_scheme`, and the mentions as tags: IOB2 for all if some files have mentions and others tags."""
        read = super().of_scheme(read, remarks)
        kinds = {isinstance(it, Annotated) for sentences in read.values() for it in sentences}

        def sentence(it: Sentence | Annotated) -> Sentence:
            if isinstance(it, Sentence):
                return replace(it, tags=convert(it.tags, "iob2")) if len(kinds) > 1 else it
            tags = flat(it, self.nested or "refuse", remarks).tags()
            scored = tuple(map(sentence, it.scored))
            about = (dict(it.columns), it.line, it.unreachable, scored, it.gaps)
            return Sentence(intern_all(it.words), intern_all(tags), *about)

        return {split: [*map(sentence, sentences)] for split, sentences in read.items()}

    def as_written(self, remarks: Remarks, gold: Gold = "train") -> dict[str, list[Sentence | Annotated]]:
        """The sentences of each split with all of their mentions, nested ones, too, or with the tags of their file."""
        every = replace(self, nested=None)
        with remarks.counting_faults():
            return Files.of_scheme(every, every.standard_tags(every.parts(remarks, gold), remarks), remarks)

    def annotated(self, remarks: Remarks, gold: Gold = "train") -> dict[str, list[Annotated]]:
        """As `as_written`, with the mentions of all sentences; all read as train is, or so."""
        return {
            split: [it if isinstance(it, Annotated) else of_sentence(it) for it in sentences]
            for split, sentences in self.as_written(remarks, gold).items()
        }


@dataclass(frozen=True, kw_only=True)
class HubFiles(AnnotatedFiles):
    """A data set by its name on a hub or its folder (`path`), by Hugging Face `datasets`. Without `path`: files.

    files: with `path`, the names of its splits; where all are null, the usual ones.
    subset, revision: which configuration of the data set, and which commit or branch of it.
    """

    path: str | None = None
    subset: str | None = None
    revision: str | None = None

    def paths(self) -> dict[str, list[Path]]:
        if self.path is None:
            return super().paths()
        require(self.format)
        found = hf.hub_splits(self.path, self.subset, self.revision)
        usual = {split: next(filter(found.__contains__, names), None) for split, names in HUB_SPLITS.items()}
        given = self.files if any(self.files.values()) else usual
        named = {split: name for split, name in given.items() if name is not None}
        if not named or (missing := [name for name in named.values() if name not in found]):
            rule = f"no split {missing[0]}" if named else "none of its splits has a usual name"
            raise ValueError(
                f"data.path={self.path}: {rule}; there are: {', '.join(found)} (data.files.train)"
            )
        return {split: found[name] for split, name in named.items()}

    def checksum(self) -> str:
        """SHA-256 over the sentences: the files in the cache depend on the version of `datasets`."""
        if self.path is None:
            return super().checksum()
        digest = hashlib.sha256()
        for split, sentences in self.annotated(Remarks(), "scored").items():
            for it in sentences:
                content = [it.words, it.mentions, *it.unreachable]
                digest.update(f"{split} {json.dumps(content)}\n".encode())
        return digest.hexdigest()


def annotated_splits(source: Source, remarks: Remarks) -> dict[str, list[Annotated]]:
    """The sentences of each split of a corpus in any format, with nested mentions where the format has them.

    All are read as train is. Raises ValueError for a corpus of parts of speech.
    """
    if isinstance(source, AnnotatedFiles):
        return source.annotated(remarks)
    if source.task != "mentions":
        raise ValueError(f"{source.name}: it has parts of speech, not mentions")
    between = joint(source.tokens)
    return {
        split: [of_sentence(it, joint=between, place=f"{source.name} {split}:{it.line}") for it in sentences]
        for split, sentences in source.read(remarks).items()
    }
