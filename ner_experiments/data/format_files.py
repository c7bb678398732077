"""Corpora in the formats of `formats/registry.py`: JSON lines, BRAT, CSV, CoNLL-U with mentions."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, get_args

from ner_experiments.data.corpus import SchemeOrAuto, Source
from ner_experiments.data.files import Files, Parts
from ner_experiments.data.formats import hf
from ner_experiments.data.formats.annotated import (
    Annotated,
    Misaligned,
    Nested,
    Offsets,
    Options,
    flat,
    of_sentence,
)
from ner_experiments.data.formats.registry import FORMATS, require
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.sentence import SCORED, Sentence, Task, Tokens, intern_all
from ner_experiments.data.tag_styles import MultiLabel, TagStyle
from ner_experiments.data.tags import convert
from ner_experiments.data.text_files import PathOrFile, codec_of
from ner_experiments.data.tokenize import joint
from ner_experiments.utils.files import as_file, sha256
from ner_experiments.utils.text import truncated_repr

HUB_SPLITS = {"train": ("train",), "dev": ("validation", "dev", "valid"), "test": ("test",)}
"""Split -> its usual names in data sets of a hub."""


@dataclass(frozen=True)
class SentenceWithPlaces(Sentence):
    """A sentence with the tags of its file. at: where each token is, such as train.csv:7."""

    at: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class AnnotatedFiles(Files):
    """A corpus in one of the formats. It is read without nesting: `nested` says which of nested mentions are kept.

    lines: whether each line of a text is a sentence. tokens, misaligned, offsets, encoding, tag_style, multi_label,
    names, columns: see `Options`.
    """

    format: str
    nested: Nested = "refuse"
    misaligned: Misaligned = "refuse"
    offsets: Offsets = "characters"
    lines: bool = False
    encoding: str = "utf-8"
    tag_style: TagStyle | Literal["auto"] = "auto"
    multi_label: MultiLabel = "refuse"
    names: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    tokens: Tokens = "words"
    task: ClassVar[Task] = "mentions"
    scheme: ClassVar[SchemeOrAuto] = "auto"  # of files of tags; mentions are encoded as iob2

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_choice("format", self.format, [name for name, it in FORMATS.items() if it.read])
        self._check_choice("nested", self.nested, get_args(Nested))
        self._check_choice("misaligned", self.misaligned, get_args(Misaligned))
        self._check_choice("offsets", self.offsets, get_args(Offsets))
        self._check_choice("tag_style", self.tag_style, ("auto", *get_args(TagStyle)))
        self._check_choice("multi_label", self.multi_label, get_args(MultiLabel))
        codec_of(self.encoding)

    def annotated(
        self,
        path: Path,
        remarks: Remarks,
        *,
        scored: bool = False,
        nested: Nested | None = None,
        all_texts: bool = False,
    ) -> Iterator[Annotated]:
        """Sentences of one file. scored, nested, all_texts: see `Options`."""
        require(self.format)
        read = FORMATS[self.format].read
        assert read is not None
        options = Options(
            tokens=self.tokens,
            lines=self.lines,
            misaligned=self.misaligned,
            offsets=self.offsets,
            scored=scored,
            nested=nested,
            encoding=self.encoding,
            tag_style=self.tag_style,
            multi_label=self.multi_label,
            names=self.names,
            columns=self.columns,
            all_texts=all_texts,
        )
        for sentence in read(path, options, remarks):
            if word := next((it for it in sentence.words if "\n" in it or "\r" in it), ""):
                raise ValueError(
                    f"{sentence.place}: a token cannot contain a line end, got {truncated_repr(word)}"
                )
            for _, _, type_ in sentence.mentions:
                if not type_.isprintable() or type_ != type_.strip():
                    rule = f"type {truncated_repr(type_)} contains an invisible character"
                    raise ValueError(f"{sentence.place}: {rule}")
            yield sentence

    def sentences(self, path: Path, remarks: Remarks, split: str) -> Iterator[Sentence]:
        scored = split in SCORED
        for it in self.annotated(path, remarks, scored=scored, nested=self.nested):
            yield self._sentence(it, remarks)

    def _sentence(self, it: Annotated, remarks: Remarks) -> Sentence:
        words, columns = intern_all(it.words), dict(it.columns)
        if it.tagged:
            tags = intern_all(it.tagged.tags)
            return SentenceWithPlaces(words, tags, columns, it.line, gaps=it.gaps, at=it.tagged.at)
        return Sentence(
            words,
            intern_all(flat(it, self.nested, remarks).tags()),
            columns,
            it.line,
            it.unreachable,
            tuple(self._sentence(other, remarks) for other in it.scored),
            it.gaps,
        )

    def standard_tags(self, files: Parts, remarks: Remarks) -> Parts:
        """The sentences with tags of one scheme: IOB2 if some have mentions and others tags."""
        every = {type(it) for parts in files.values() for _, sentences in parts for it in sentences}
        if every != {Sentence, SentenceWithPlaces}:
            return files
        return {
            split: [
                (path, [replace(it, tags=convert(it.tags, "iob2")) for it in sentences])
                for path, sentences in parts
            ]
            for split, parts in files.items()
        }

    def untagged(self, path: PathOrFile, remarks: Remarks | None = None) -> Iterator[Sentence]:
        if not isinstance(path, str | os.PathLike):
            with as_file(path) as copy:
                yield from self.untagged(copy)
            return
        if not (paths := FORMATS[self.format].files(Path(path))):
            raise ValueError(f"{path}: expected {FORMATS[self.format].about}")
        for each in paths:
            for it in self.annotated(each, Remarks(), scored=True, all_texts=True):
                yield Sentence(it.words, ("O",) * len(it.words), dict(it.columns), line=it.line)

    def token_place(self, path: Path, sentence: Sentence, token: int) -> str:
        return sentence.at[token] if isinstance(sentence, SentenceWithPlaces) else f"{path}:{sentence.line}"

    def find(self, file: str) -> list[Path]:
        return FORMATS[self.format].files(self.place / file)

    def checksum(self) -> str:
        digest = hashlib.sha256()
        for split, paths in self.paths().items():
            for each in paths:
                for path in (each, *FORMATS[self.format].beside(each)):
                    digest.update(f"{split} {path.name} {sha256(path)}\n".encode())
        return digest.hexdigest()


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
        for split, sentences in annotated_splits(self, Remarks(), scored=True).items():
            for it in sentences:
                content = [it.words, it.mentions, *it.unreachable]
                digest.update(f"{split} {json.dumps(content)}\n".encode())
        return digest.hexdigest()


def annotated_splits(source: Source, remarks: Remarks, *, scored: bool = False) -> dict[str, list[Annotated]]:
    """The sentences of each split of a corpus in any format, with nested mentions where the format has them.

    scored: whether all splits are read as dev and test are, see `Options`; else all as train is.
    Raises ValueError for a corpus of parts of speech.
    """
    if isinstance(source, AnnotatedFiles):
        with remarks.counting_faults():
            return {
                split: [it for path in paths for it in source.annotated(path, remarks, scored=scored)]
                for split, paths in source.paths().items()
            }
    if source.task != "mentions":
        raise ValueError(f"{source.name}: it has parts of speech, not mentions")
    between = joint(source.tokens)
    return {
        split: [of_sentence(it, joint=between, place=f"{source.name} {split}:{it.line}") for it in sentences]
        for split, sentences in source.read(remarks).items()
    }
