"""Fuzzed readers: how their files are generated, how they are called, and what the oracle expects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from hydra.utils import instantiate
from omegaconf import OmegaConf
from places import CONF

from fuzz import oracle
from fuzz.corpora import Columns, Conllu, Format, GoldConll, Known, draw
from fuzz.damage import damaged, rubbish
from ner_experiments.config.stand_ins import without_stand_ins
from ner_experiments.data.corpus import load
from ner_experiments.data.files import ColumnFiles, ConlluFiles, Files, GoldConllFiles
from ner_experiments.data.format_files import AnnotatedFiles

SOURCES = CONF / "data"


@dataclass(frozen=True)
class Case:
    """A file and the content that must be read from it; `known` is None if the file may be broken."""

    content: bytes
    known: Any = None


class Reader(ABC):
    """Generates files, has the suite read them, and knows the expected result.

    inputs: number of inputs in the campaign.
    judges: whether the oracle also decides which files must be refused, and for which lines.
    whole_file: prefix of a refusal that names no line; "" if every refusal names the file or a line.
    """

    name: str
    inputs: int
    judges = True
    whole_file = ""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "input"

    def case(self, rng: Random) -> Case:
        """A random case: whole about every other time, rubbish one time in twenty."""
        if rng.random() < 0.05:
            return Case(rubbish(rng))
        whole = self.whole(rng)
        return whole if rng.random() < 0.5 else Case(damaged(rng, whole.content))

    @abstractmethod
    def whole(self, rng: Random) -> Case:
        """A file that must be accepted, and its content."""

    @abstractmethod
    def read(self) -> Any:
        """Read `path` with the suite. Raises ValueError if it is refused."""

    def agrees(self, found: Any, known: Any) -> bool:
        """Whether the content read from a whole file equals what was written."""
        return found == known

    @abstractmethod
    def expected(self, content: bytes) -> Any:
        """The expected result. Raises Faulty if the file must be refused."""


class CorpusReader(Reader):
    """`load` of a corpus as configured by conf/data/NAME.yaml: the file is train, and dev has one sentence."""

    def __init__(self, folder: Path, name: str, source: Files, form: Format) -> None:
        super().__init__(folder)
        self.name, self.form, self.inputs = name, form, 54_000
        dev = folder / f"{name}.dev"
        dev.write_bytes(form.write(Random(0), [Known(["x"], ["O"] if form.task == "tags" else [])]))
        files = {"train": "input", "dev": dev.name}
        self.whole_file = f"{source.name}: train has no sentence: "
        self.source = replace(source, folder=str(folder), files=files, sha256={})

    def whole(self, rng: Random) -> Case:
        corpus = draw(rng, self.form.task)
        content = self.form.write(rng, corpus)
        return Case(content, [(self.form.words_read(known.words), known.found) for known in corpus])

    def read(self) -> Any:
        sentences = load(self.source).splits["train"]
        of_tags = self.form.task == "tags"
        return [
            oracle.Read(
                list(it.words),
                list(it.tags) if of_tags else oracle.mentions(list(it.tags)),
                {name: list(column) for name, column in it.columns.items()},
                it.line,
            )
            for it in sentences
        ]

    def agrees(self, found: list[oracle.Read], known: Any) -> bool:
        return [(it.words, it.found) for it in found] == known

    def expected(self, content: bytes) -> list[oracle.Read]:
        return self.form.expected(content)


def corpora(folder: Path) -> list[CorpusReader]:
    """A reader for each format in conf/data, and one for columns in another order."""
    found = []
    for path in sorted(SOURCES.glob("*.yaml")):
        cfg = OmegaConf.create({"data_dir": str(folder), "data": OmegaConf.load(path)})
        if OmegaConf.is_missing(cfg.data, "name"):
            cfg.data.name = path.stem
        source = instantiate(without_stand_ins(OmegaConf.to_container(cfg.data, resolve=True)))
        if isinstance(source, Files) and not isinstance(source, AnnotatedFiles):
            if source.name == "conll":
                source = replace(source, columns={"word": 0, "tag": -1}, first_character=False)
            found.append(CorpusReader(folder, source.name, source, form_of(source)))
            if source.name == "conll":
                turned = replace(source, columns={"word": 2, "pos": 1, "tag": 0})
                found.append(CorpusReader(folder, "conll, turned", turned, form_of(turned)))
    return found


def form_of(source: Files) -> Format:
    if isinstance(source, ConlluFiles):
        return Conllu(source.tag)
    if isinstance(source, ColumnFiles):
        it = source
        return Columns(it.columns, it.task, it.scheme, it.first_character, it.empty_tag)
    if isinstance(source, GoldConllFiles):
        return GoldConll()
    raise TypeError(
        f"{source.name}: {type(source).__name__} has no Format in tests/campaigns/fuzz/corpora.py"
    )
