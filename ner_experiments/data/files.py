"""Corpora in files: what all formats have in common, and the classes that `conf/data/*.yaml` configure.

`format_files` has those of annotated text; `formats/` has the readers.
"""

from __future__ import annotations

import hashlib
import os
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, get_args

from ner_experiments.data.corpus import Source, Splits
from ner_experiments.data.formats import columns, conllu, ontonotes
from ner_experiments.data.formats.annotated import Annotated
from ner_experiments.data.formats.columns import (
    SKIP,
    SKIPPED,
    BadLines,
    ColumnOptions,
    hint_for,
    is_docstart,
    layouts_of,
    sentences_of,
)
from ner_experiments.data.formats.conllu import PosOptions, Tag
from ner_experiments.data.formats.format import Format
from ner_experiments.data.formats.layout import AUTO, Layout, Survey
from ner_experiments.data.formats.options import Gold, Options
from ner_experiments.data.remarks import FaultsError, Remarks, place_of
from ner_experiments.data.schemes import DECISIVE, Stated, by_letters
from ner_experiments.data.sentence import SCORED, Sentence, Task, Tokens, tags_of
from ner_experiments.data.tag_styles import MultiLabel, TagStyle, check_label, labels, respelled
from ner_experiments.data.tags import Scheme, illegal_positions
from ner_experiments.data.text_files import (
    UTF_8,
    PathOrFile,
    codec_of,
    guessed_encoding,
    is_undecoded,
    read_blocks,
)
from ner_experiments.data.tokenize import check_tokens
from ner_experiments.utils.files import as_file, sha256
from ner_experiments.utils.text import truncated_repr

Read = dict[str, list[Any]]
"""Split -> what the reader of its files returns: each a `Sentence` or an `Annotated`."""


@dataclass(frozen=True, kw_only=True)
class Files(Options, Source):
    """A corpus in files. A subclass has the options of its format beside these settings.

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
    if_mixed: ClassVar[str] = ""
    """End of the message about a tag that the detected scheme does not have."""

    @property
    def bad_lines_skipped(self) -> bool | None:
        """Whether a sentence with a line that cannot be read is skipped; None where there is no choice."""
        return None

    def __post_init__(self) -> None:
        check_tokens(f"{self.name}: tokens", self.tokens)
        self._check_choice("tag_style", self.tag_style, ("auto", *get_args(TagStyle)))
        self._check_choice("multi_label", self.multi_label, get_args(MultiLabel))
        if encoding := getattr(self, "encoding", ""):
            codec_of(encoding)

    def _check_choice(self, key: str, value: object, choices: Sequence[str]) -> None:
        if value not in choices:
            raise ValueError(f"{self.name}: {key} must be one of {', '.join(choices)}, got {value!r}")

    @property
    @abstractmethod
    def form(self) -> Format: ...

    def sentences(self, path: PathOrFile, remarks: Remarks, gold: Gold) -> Iterator[Sentence | Annotated]:
        """The sentences of a file, with the tags of the file. gold: see `Options`."""
        assert self.form.read is not None
        return self.form.read(path, replace(self, gold=gold), remarks)

    def parts(self, remarks: Remarks, gold: Gold | None = None) -> Read:
        """The sentences of each split. gold: by default, dev and test are scored."""
        usual: dict[str, Gold] = dict.fromkeys(SCORED, "scored")
        try:
            return {
                split: [
                    it
                    for path in paths
                    for it in self.sentences(path, remarks, gold or usual.get(split, "train"))
                ]
                for split, paths in self.paths().items()
            }
        except ValueError as error:
            if not (encoding := self._encoding_after(error)):
                raise
            raise ValueError(f"{error} (data.encoding={encoding})") from None

    def _encoding_after(self, error: ValueError) -> str:
        """The guessed encoding of files that are not in UTF-8, as an error of their reader says; else empty."""
        decodes = self.form.encodings and getattr(self, "encoding", "") == UTF_8
        if not decodes or not is_undecoded(error):
            return ""
        return guessed_encoding(path for paths in self._all_paths().values() for path in paths)

    def _all_paths(self) -> dict[str, list[Path]]:
        """The files of each split, with those that are read beside them."""
        return {
            split: [it for path in paths for it in (path, *self.form.beside(path))]
            for split, paths in self.paths().items()
        }

    def untagged(self, path: PathOrFile, remarks: Remarks | None = None) -> Iterator[Sentence]:
        paths: Sequence[PathOrFile] = [path]
        if not self.form.streams:
            if not isinstance(path, str | os.PathLike):
                with as_file(path) as copy:
                    yield from self.untagged(copy, remarks)
                return
            if not (paths := self.form.files(Path(path))):
                raise ValueError(f"{path}: expected {self.form.about}")
        for each in paths:
            for it in self.sentences(each, remarks or Remarks(), "none"):
                yield Sentence(it.words, ("O",) * len(it.words), dict(it.columns), line=it.line)

    def find(self, file: str) -> list[Path]:
        """The files that an entry of `files` names; empty if there is none."""
        return self.form.files(self.place / file)

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
        """The sentences of each split, all of whose tags are of the scheme, spelled as `B-ORG`.

        Raises FaultsError for tags that are not, whatever their neighbors, unless `bad_lines` skips their sentences.
        """
        remarks = remarks or Remarks()
        with remarks.counting_faults():
            splits = self.parts(remarks)
            if self.task == "mentions":
                splits = self.of_scheme(self.standard_tags(splits, remarks), remarks)
        for split, sentences in splits.items():
            if not sentences:
                raise ValueError(f"{self.name}: {split} has no sentence: {self.files[split]}")
        return splits

    def standard_tags(self, read: Read, remarks: Remarks) -> Read:
        """The sentences with every tag written as `B-ORG`, in the style that is stated or detected from all files.

        If no style explains all tags, they stay as they are, and `of_scheme` refuses them. A tag with several labels is
        a fault, unless `multi_label` is "first".
        """
        tagged = _tagged(chain.from_iterable(read.values()))
        tags = tags_of(tagged)
        for place, tag in _places_of({tag for tag in tags if len(labels(tag)) > 1}, tagged):
            check_label(tag, place, self.multi_label, remarks)
        # if a scheme is stated, the tags have its letters
        new, remark = respelled(tags, self.tag_style, bare=self.scheme == "auto")
        for place, _ in _places_of(new, tagged) if remark else ():
            remarks.add(remark, os.path.basename(place))
        return with_tags(read, {tag: new.get(tag, tag) for tag in tags}) if new else read

    def of_scheme(self, read: Read, remarks: Remarks) -> Read:
        """The sentences all of whose tags are of the scheme. The others are faults, or are skipped by `bad_lines`."""
        tagged = {split: _tagged(sentences) for split, sentences in read.items()}
        tags = {split: tags_of(sentences) for split, sentences in tagged.items()}
        kept = dict(read)
        for split, scheme in by_letters(self.scheme, tags).items():
            wrong = {tag: rule for tag in tags[split] if (rule := _fault_of(tag, scheme))}
            if wrong and self.bad_lines_skipped:
                kept[split] = []
                for it in tagged[split]:
                    if faults := [tag for tag in it.tags if tag in wrong]:
                        remarks.add(SKIPPED, place_of(it.file, it.line), faults[0])
                    else:
                        kept[split].append(it)
            elif wrong:
                decided_by = self._decided_by(scheme, tagged)
                remedy: Mapping[str, Any] = {"scheme": dict.fromkeys(read, AUTO)} if len(read) > 1 else {}
                if not (decided_by and self.if_mixed):
                    remedy = {} if self.bad_lines_skipped is None else SKIP
                for it in tagged[split]:
                    for number, tag in enumerate(it.tags):
                        if tag in wrong:
                            hint = f"; {hint}" if (hint := hint_for(it.words[number])) else ""
                            rule = f"not a tag of {scheme}: {wrong[tag]}{hint}{decided_by}"
                            remarks.fault(f"{it.place(number)}: {rule}", remedy=remedy)
                legal = {tag: "O" if tag in wrong else tag for tag in tags[split]}
                kept |= with_tags({split: read[split]}, legal)
        return kept

    def _decided_by(self, scheme: Scheme, read: Mapping[str, Sequence[Sentence]]) -> str:
        """End of an error message that names the tag from which the scheme was detected; empty if no tag decided it."""
        sentences = list(chain.from_iterable(read.values()))
        own = DECISIVE.get(scheme, "")
        decisive = {tag for tag in tags_of(sentences) if tag[1:2] == "-" and tag[0] in own}
        detected = not isinstance(self.scheme, str) or self.scheme == "auto"
        for place, tag in _places_of(decisive, sentences) if detected else ():
            return f" ({scheme} was detected from {truncated_repr(tag)} in {os.path.basename(place)}{self.if_mixed})"
        return ""

    def checksum(self) -> str:
        """SHA-256 over the split, name and content of each file, independent of its folder."""
        digest = hashlib.sha256()
        for split, paths in self._all_paths().items():
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


@dataclass(frozen=True, kw_only=True)
class ColumnFiles(ColumnOptions, Files):
    """Column files.

    columns: "auto" for the word or the tag detects its column, which is the same in files of one width.
    scheme: of all splits, or split -> scheme where they differ.
    """

    scheme: Stated = "auto"
    if_mixed: ClassVar[str] = "; where files differ, state the scheme of each split"

    form = columns.FORMATS["conll"]  # not by the registry: a run would depend on the code of every format

    @property
    def bad_lines_skipped(self) -> bool:
        return self.bad_lines == "skip"

    def __post_init__(self) -> None:
        super().__post_init__()
        schemes = {"": self.scheme} if isinstance(self.scheme, str) else self.scheme
        for split, scheme in schemes.items():
            self._check_choice(f"scheme.{split}" if split else "scheme", scheme, ("auto", *get_args(Scheme)))
        self._check_choice("task", self.task, get_args(Task))
        self._check_choice("bad_lines", self.bad_lines, get_args(BadLines))
        if self.first_character not in (True, False, AUTO):
            rule = f"first_character must be true, false or auto, got {self.first_character!r}"
            raise ValueError(f"{self.name}: {rule}")
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
                shown = " ".join(_as_override(name, value) for name, value in settings.items())
                raise FaultsError(f"{error} (to read it: {shown})", settings) from None
            raise

    def _way_out(self, error: ValueError) -> dict[str, Any]:
        """Settings with which the files can be read that raised `error`; empty if none is known."""
        if encoding := self._encoding_after(error):
            error = FaultsError(str(error), {"encoding": encoding})
        settings: dict[str, Any] = {}
        while isinstance(error, FaultsError) and not error.remedies.keys() <= settings.keys():
            settings |= error.remedies
            try:
                Files.read(replace(self, **settings))
            except ValueError as other:
                error = other
            else:
                return settings
        try:
            Files.read(replace(self, **SKIP))
        except ValueError:
            return {}
        return dict(SKIP)

    def parts(self, remarks: Remarks, gold: Gold | None = None) -> Read:
        found: Read = {}
        for split, survey, layout in self.layouts():
            found.setdefault(split, []).extend(sentences_of(survey, layout, self, remarks))
        return found

    def layouts(self) -> list[tuple[str, Survey, Layout]]:
        """The split of each file, its lines, and how it is laid out."""
        splits = [(split, path) for split, paths in self.paths().items() for path in paths]
        layouts = layouts_of([path for _, path in splits], self)
        return [(split, *layout) for (split, _), layout in zip(splits, layouts, strict=True)]

    def docstart_blocks(self) -> dict[str, int]:
        blocks = (
            (split, block)
            for split, paths in self.paths().items()
            for path in paths
            for block in read_blocks(path, self.encoding)
        )
        return Counter(split for split, block in blocks if all(is_docstart(line) for _, line in block.lines))


@dataclass(frozen=True, kw_only=True)
class ConlluFiles(PosOptions, Files):
    """CoNLL-U files, read for their part-of-speech tags: xpos or upos."""

    task = "tags"
    scheme = "auto"  # unused: part-of-speech tags have no scheme
    form = conllu.FORMATS["conllu"]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_choice("tag", self.tag, get_args(Tag))


@dataclass(frozen=True, kw_only=True)
class GoldConllFiles(Files):
    """A tree of CoNLL-2012's `*_gold_conll` files. `files` has a glob for each split (`**`: any depth)."""

    scheme = "iob2"  # of what the reader returns
    form = ontonotes.FORMATS["ontonotes"]

    def find(self, file: str) -> list[Path]:
        root = Path(file).anchor  # empty unless the pattern is absolute
        try:
            return sorted((self.place / root).glob(file.removeprefix(root)))
        except (ValueError, IndexError):
            rule = f"expected a path or a pattern such as train/**/*_gold_conll, got {file!r}"
            raise ValueError(f"{self.name}: data.files: {rule}") from None


def _tagged(read: Iterable[Any]) -> list[Sentence]:
    """The sentences that have the tags of their file."""
    return [it for it in read if isinstance(it, Sentence)]


def _places_of(tags: Container[str], sentences: Iterable[Sentence]) -> Iterator[tuple[str, str]]:
    """Place and tag of each token that has one of the tags, if there are any."""
    for sentence in sentences if tags else ():
        for token, tag in enumerate(sentence.tags):
            if tag in tags:
                yield sentence.place(token), tag


def with_tags(read: Read, new: Mapping[str, str]) -> Read:
    """The same with other tags of the sentences that have those of their file."""

    def changed(it: Any) -> Any:
        return replace(it, tags=tuple(map(new.__getitem__, it.tags))) if isinstance(it, Sentence) else it

    return {split: [*map(changed, sentences)] for split, sentences in read.items()}


def _fault_of(tag: str, scheme: Scheme) -> str:
    """The rule of the scheme that a tag breaks by itself; empty if it breaks none."""
    try:
        illegal_positions((tag,), scheme)
    except ValueError as error:
        return str(error)
    return ""


def _as_override(name: str, value: Any) -> str:
    """A setting of a corpus as it is typed in a shell."""
    if isinstance(value, Mapping):
        items = ", ".join(f"{key}: {item}" for key, item in value.items())
        return f"'data.{name}={{{items}}}'"
    plain = str(value).lower() if isinstance(value, bool) else str(value)
    return f"data.{name}={plain}" if re.fullmatch(r"[\w-]+", plain) else f"\"data.{name}='{plain}'\""
