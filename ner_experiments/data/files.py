"""Corpora in files, one class per format. Most of `conf/data/*.yaml` configure one of them."""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from ner_experiments.data.columns import (
    SKIPPED,
    BadLines,
    hint_for,
    is_docstart,
    read_untagged,
    sentences_of,
    survey_of,
)
from ner_experiments.data.conllu import Tag, read_conllu, read_untagged_conllu
from ner_experiments.data.corpus import SchemeOrAuto, Splits, schemes_by_letters
from ner_experiments.data.faults import SKIP, Faults, FaultsError, as_overrides, way_out
from ner_experiments.data.layout import AUTO, Columns, Layout, Survey, decide
from ner_experiments.data.ontonotes import read_gold_conll, read_untagged_gold_conll
from ner_experiments.data.remarks import Remarks, place_of
from ner_experiments.data.sentence import Sentence, Task, Tokens, tags_of
from ner_experiments.data.tag_styles import MultiLabel, TagStyle, check_label, labels, respelled
from ner_experiments.data.tags import DECISIVE, Scheme, illegal_positions
from ner_experiments.data.text_files import (
    UTF_8,
    PathOrFile,
    codec_of,
    guessed_encoding,
    name_of,
    read_blocks,
)
from ner_experiments.data.tokenize import check_tokens
from ner_experiments.utils.files import sha256
from ner_experiments.utils.text import truncated_repr

Parts = dict[str, list[tuple[Path, list[Sentence]]]]
"""Split -> its files and their sentences."""


@dataclass(frozen=True, kw_only=True)
class Files(ABC):
    """A corpus in files. Subclasses read one file format each.

    files: split -> its file, relative to `folder` or absolute; null if the corpus has no such split.
    sha256, sizes: split -> SHA-256 in hexadecimal and size in bytes of the published file.
    source, licence: what the corpus is, with its origin, and its terms; named in the message about a missing file.
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
    lines = False
    if_mixed: ClassVar[str] = ""
    """End of the message about a tag that the detected scheme does not have."""

    @property
    def bad_lines(self) -> BadLines | None:
        """The treatment of a line that cannot be read; None where there is no choice."""
        return None

    def __post_init__(self) -> None:
        check_tokens(f"{self.name}: tokens", self.tokens)

    def _check_choice(self, key: str, value: object, choices: Sequence[str]) -> None:
        if value not in choices:
            raise ValueError(f"{self.name}: {key} must be one of {', '.join(choices)}, got {value!r}")

    @property
    @abstractmethod
    def task(self) -> Task: ...

    @property
    @abstractmethod
    def scheme(self) -> SchemeOrAuto | Mapping[str, SchemeOrAuto]: ...

    @abstractmethod
    def sentences(self, path: Path, remarks: Remarks, split: str) -> Iterator[Sentence]:
        """Sentences of a file of a split. Adds to `remarks` what was skipped or filled in, and faults."""

    @abstractmethod
    def untagged(self, path: PathOrFile, remarks: Remarks | None = None) -> Iterator[Sentence]:
        """Sentences of a file in this format with or without tags; every tag is O."""

    def parts(self, remarks: Remarks) -> Parts:
        """The sentences of each file, as the files have their tags."""
        with remarks.counting_faults():
            return {
                split: [(path, list(self.sentences(path, remarks, split))) for path in paths]
                for split, paths in self.paths().items()
            }

    def line_of(self, sentence: Sentence, token: int) -> int:
        """1-based line of a token, for errors. Formats without a line for each token override it."""
        return sentence.line + token

    def token_place(self, path: Path, sentence: Sentence, token: int) -> str:
        """File and line of a token, such as data/train.conll:7."""
        return f"{path}:{self.line_of(sentence, token)}"

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
        searched = "" if all(Path(file).is_absolute() for file in files) else f" in {self.place.absolute()}"
        message = f"{self.name}: not found{searched}: {', '.join(files)}"
        if self.source:
            message += f". This is {self.source}. Licence: {self.licence}"
        if self.url:
            message += f". To download it there: ner-experiments data get {self.name}"
        elif self.source:
            message += f". Put it there, or set NER_DATA_DIR to the folder that holds {self.place.name}/"
        return message

    def present(self) -> list[str]:
        return [*self.paths()]

    def read(self, remarks: Remarks | None = None) -> Splits:
        remarks = remarks or Remarks()
        files = self.parts(remarks)
        if self.task == "mentions":
            files = self.standard_tags(files, remarks)
            files = self._of_scheme(files, remarks)
        splits = {
            split: list(chain.from_iterable(read for _, read in parts)) for split, parts in files.items()
        }
        for split, sentences in splits.items():
            if not sentences:
                raise ValueError(f"{self.name}: {split} has no sentence: {self.files[split]}")
        return splits

    def standard_tags(self, files: Parts, remarks: Remarks) -> Parts:
        """The sentences with every tag written as `B-ORG`."""
        return files

    def _of_scheme(self, files: Parts, remarks: Remarks) -> Parts:
        """The sentences all of whose tags are of the scheme, whatever their neighbors.

        Raises FaultsError for the others, unless `bad_lines` skips them.
        """
        tags = {split: tags_of(chain.from_iterable(it for _, it in parts)) for split, parts in files.items()}
        faults, kept = Faults(), dict(files)
        for split, scheme in schemes_by_letters(self, tags).items():
            wrong = {tag: rule for tag in tags[split] if (rule := _fault_of(tag, scheme))}
            if wrong and self.bad_lines == "skip":
                kept[split] = [(path, _without(wrong, path, it, remarks)) for path, it in files[split]]
            elif wrong:
                self._add_faults(wrong, scheme, split, files, faults)
        faults.check()
        return kept

    def _add_faults(
        self, wrong: Mapping[str, str], scheme: Scheme, split: str, files: Parts, faults: Faults
    ) -> None:
        decided_by = self._decided_by(scheme, files)
        remedy: dict[str, Any] = {"scheme": dict.fromkeys(files, AUTO)} if len(files) > 1 else {}
        remedy = remedy if decided_by and self.if_mixed else SKIP if self.bad_lines else {}
        for path, sentences in files[split]:
            for sentence in sentences:
                for token, tag in enumerate(sentence.tags):
                    if tag in wrong:
                        place = self.token_place(path, sentence, token)
                        hint = hint_for(sentence.words[token])
                        rule = f"not a tag of {scheme}: {wrong[tag]}" + (f"; {hint}" if hint else "")
                        faults.add(f"{place}: {rule}{decided_by}", **remedy)

    def _decided_by(self, scheme: Scheme, files: Parts) -> str:
        """End of an error message that names the tag from which the scheme was detected; empty if no tag decided it."""
        detected = not isinstance(self.scheme, str) or self.scheme == "auto"
        for path, sentences in chain.from_iterable(files.values()) if detected else ():
            for sentence in sentences:
                for token, tag in enumerate(sentence.tags):
                    if tag[1:2] == "-" and tag[0] in DECISIVE.get(scheme, ""):
                        place = os.path.basename(self.token_place(path, sentence, token))
                        return (
                            f" ({scheme} was detected from {truncated_repr(tag)} in {place}{self.if_mixed})"
                        )
        return ""

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

    def sentences_with_docstart(self) -> dict[str, int]:
        return {}


@dataclass(frozen=True, kw_only=True)
class ColumnFiles(Files):
    """Column files. The settings from `columns` to `bad_lines` are those of `read_columns`.

    columns: "auto" for the word or the tag detects its column, which is the same in files of one width.
    scheme: of all splits, or split -> scheme where they differ.
    tag_style: how tags are written, such as `B_ORG`; "auto" to detect it.
    multi_label: what becomes of a tag with several labels, such as `B-ORG,B-GPE`: refuse, or keep the first.
    """

    columns: Columns
    task: Task = "mentions"
    scheme: SchemeOrAuto | Mapping[str, SchemeOrAuto] = "auto"
    first_character: bool | Literal["auto"] = False
    empty_tag: str | None = None
    empty_word: str | None = None
    comments: str | None = AUTO
    encoding: str = UTF_8
    bad_lines: BadLines = "refuse"
    tag_style: TagStyle | Literal["auto"] = "auto"
    multi_label: MultiLabel = "refuse"
    if_mixed: ClassVar[str] = "; where files differ, state the scheme of each split"

    def __post_init__(self) -> None:
        super().__post_init__()
        schemes = {"": self.scheme} if isinstance(self.scheme, str) else self.scheme
        for split, scheme in schemes.items():
            self._check_choice(f"scheme.{split}" if split else "scheme", scheme, ("auto", *get_args(Scheme)))
        self._check_choice("task", self.task, get_args(Task))
        self._check_choice("tag_style", self.tag_style, ("auto", *get_args(TagStyle)))
        self._check_choice("multi_label", self.multi_label, get_args(MultiLabel))
        self._check_choice("bad_lines", self.bad_lines, get_args(BadLines))
        if self.first_character not in (True, False, AUTO):
            rule = f"first_character must be true, false or auto, got {self.first_character!r}"
            raise ValueError(f"{self.name}: {rule}")
        codec_of(self.encoding)
        if wrong := [it for it in self.columns if self.columns[it] == AUTO and it not in ("word", "tag")]:
            raise ValueError(f"{self.name}: columns.{wrong[0]} cannot be auto: state its number or name")
        if not {"word", "tag"} <= self.columns.keys():
            named = ", ".join(self.columns) or "none"
            raise ValueError(f"{self.name}: columns must name at least word and tag, got {named}")

    def read(self, remarks: Remarks | None = None) -> Splits:
        """As `Files.read`. The message about a file that cannot be read names settings that read it, if any do."""
        try:
            return super().read(remarks)
        except ValueError as error:
            if settings := self._way_out(error):
                raise FaultsError(f"{error} (to read it: {as_overrides(settings)})", settings) from None
            raise

    def _way_out(self, error: ValueError) -> dict[str, Any]:
        def read(settings: Mapping[str, Any]) -> None:
            Files.read(replace(self, **settings))

        paths = [path for paths in self.paths().values() for path in paths]
        if isinstance(error.__context__, UnicodeError) and self.encoding == UTF_8:
            error = FaultsError(str(error), {"encoding": guessed_encoding(paths)})
        return way_out(error, read)

    def parts(self, remarks: Remarks) -> Parts:
        found: Parts = {}
        for split, survey, layout in self.layouts():
            sentences = sentences_of(
                survey,
                layout,
                remarks,
                empty_tag=self.empty_tag,
                empty_word=self.empty_word,
                bad_lines=self.bad_lines,
            )
            found.setdefault(split, []).append((Path(name_of(survey.path)), list(sentences)))
        return found

    def layouts(self) -> list[tuple[str, Survey, Layout]]:
        """The split of each file, its lines, and how it is laid out."""
        splits = [(split, path) for split, paths in self.paths().items() for path in paths]
        surveys = [survey_of(path, self.comments, self.encoding) for _, path in splits]
        layouts = decide(surveys, self.columns, task=self.task, first_character=self.first_character)
        return [(split, *layout) for (split, _), layout in zip(splits, layouts, strict=True)]

    def sentences(self, path: Path, remarks: Remarks, split: str) -> Iterator[Sentence]:
        ((_, sentences),) = replace(self, files={split: str(path)}, folder="").parts(remarks)[split]
        return iter(sentences)

    def untagged(self, path: PathOrFile, remarks: Remarks | None = None) -> Iterator[Sentence]:
        return read_untagged(
            path,
            columns={name: index for name, index in self.columns.items() if name != "tag"},
            first_character=self.first_character,
            empty_word=self.empty_word,
            comments=self.comments,
            encoding=self.encoding,
            bad_lines=self.bad_lines,
            remarks=remarks,
        )

    def standard_tags(self, files: Parts, remarks: Remarks) -> Parts:
        """The sentences with every tag written as `B-ORG`, in the style that is stated or detected.

        If no style explains all tags, they stay as they are, and `read` refuses them. Raises ValueError for a tag with
        several labels, unless `multi_label` is "first".
        """
        parts = list(chain.from_iterable(files.values()))
        tags = tags_of(chain.from_iterable(sentences for _, sentences in parts))
        several = {tag for tag in tags if len(labels(tag)) > 1}
        faults = Faults()
        for path, sentences in parts if several else ():
            for sentence in sentences:
                for token, tag in enumerate(sentence.tags):
                    if tag in several:
                        place = self.token_place(path, sentence, token)
                        try:
                            check_label(tag, place, self.multi_label, remarks)
                        except ValueError as error:
                            faults.add(str(error), multi_label="first")
        faults.check()
        # if a scheme is stated, the tags have its letters
        new, remark = respelled(tags, self.tag_style, bare=self.scheme == "auto")
        if not new:
            return files
        for path, sentences in parts if remark else ():
            for sentence in sentences:
                for token, tag in enumerate(sentence.tags):
                    if tag in new:
                        place = os.path.basename(self.token_place(path, sentence, token))
                        remarks.add(remark, place)
        return {
            split: [
                (path, [replace(it, tags=tuple(new.get(tag, tag) for tag in it.tags)) for it in sentences])
                for path, sentences in parts
            ]
            for split, parts in files.items()
        }

    def sentences_with_docstart(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for split, paths in self.paths().items():
            blocks = list(chain.from_iterable(map(self._blocks, paths)))
            if any(docstarts for docstarts, _ in blocks):
                counts[split] = sum(docstarts or tokens for docstarts, tokens in blocks)
        return counts

    def _blocks(self, path: Path) -> Iterator[tuple[bool, bool]]:
        """For each block between blank lines, whether it has `-DOCSTART-` lines, and whether it has tokens."""
        for block in read_blocks(path, self.encoding):
            docstarts = [is_docstart(line) for _, line in block.lines]
            others = [
                line for (_, line), docstart in zip(block.lines, docstarts, strict=True) if not docstart
            ]
            yield any(docstarts), any(not line.startswith("# ") for line in others)


@dataclass(frozen=True, kw_only=True)
class ConlluFiles(Files):
    """CoNLL-U files, read for their part-of-speech tags: xpos or upos."""

    tag: Tag = "xpos"
    task: ClassVar[Task] = "tags"
    scheme: ClassVar[SchemeOrAuto] = "auto"  # unused: part-of-speech tags have no scheme

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_choice("tag", self.tag, get_args(Tag))

    def sentences(self, path: Path, remarks: Remarks, split: str) -> Iterator[Sentence]:
        return read_conllu(path, tag=self.tag)

    def untagged(self, path: PathOrFile, remarks: Remarks | None = None) -> Iterator[Sentence]:
        return read_untagged_conllu(path)


@dataclass(frozen=True, kw_only=True)
class GoldConllFiles(Files):
    """A tree of CoNLL-2012's `*_gold_conll` files. `files` has a glob for each split (`**`: any depth)."""

    task: ClassVar[Task] = "mentions"
    scheme: ClassVar[SchemeOrAuto] = "iob2"  # returned by `read_gold_conll`

    def find(self, file: str) -> list[Path]:
        root = Path(file).anchor  # empty unless the pattern is absolute
        try:
            return sorted((self.place / root).glob(file.removeprefix(root)))
        except (ValueError, IndexError):
            rule = f"expected a path or a pattern such as train/**/*_gold_conll, got {file!r}"
            raise ValueError(f"{self.name}: data.files: {rule}") from None

    def sentences(self, path: Path, remarks: Remarks, split: str) -> Iterator[Sentence]:
        return read_gold_conll(path)

    def untagged(self, path: PathOrFile, remarks: Remarks | None = None) -> Iterator[Sentence]:
        return read_untagged_gold_conll(path)


def _fault_of(tag: str, scheme: Scheme) -> str:
    """The rule of the scheme that a tag breaks by itself; empty if it breaks none."""
    try:
        illegal_positions((tag,), scheme)
    except ValueError as error:
        return str(error)
    return ""


def _without(
    wrong: Mapping[str, str], path: Path, sentences: Sequence[Sentence], remarks: Remarks
) -> list[Sentence]:
    """The sentences without such tags."""
    kept = []
    for it in sentences:
        if faults := [tag for tag in it.tags if tag in wrong]:
            remarks.add(SKIPPED, place_of(str(path), it.line), faults[0])
        else:
            kept.append(it)
    return kept
