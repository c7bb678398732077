"""Every setting of conf/ that changes what is built changes the identity: each is changed, and both are built."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pytest
from hydra.errors import InstantiationException
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf

from ner_experiments.commands.smoke import FORMATS as WRITERS
from ner_experiments.config.compose import compose_unchecked
from ner_experiments.config.conf import names
from ner_experiments.config.identity import identity
from ner_experiments.data import toy
from ner_experiments.data.corpus import load
from ner_experiments.data.formats.annotated import Annotated, Options, Stated, flat, of_text
from ner_experiments.data.formats.registry import FORMATS
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.tags import convert
from ner_experiments.experiment_data import source

SPLITS: tuple[toy.Split, ...] = ("train", "dev", "test")
GUESSES: dict[type, tuple[Any, ...]] = {
    bool: (True, False),
    int: (0, 1, 2, 3, 7),
    float: (0.0, 0.25, 0.5),
    type(None): (1, 7, "O", "#"),
    str: ("O", "words", "characters", "latin-1", "other"),
}
"""Values to try in place of one of a type; those that are refused are left out."""


@cache
def composed(*overrides: str) -> DictConfig:
    return compose_unchecked(overrides)


def leaves(node: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The place of each setting that is no group of settings."""
    if isinstance(node, dict) and node:
        for name, value in node.items():
            yield from leaves(value, (*place, name))
    elif place[-1] not in ("_target_", "_partial_"):
        yield place


def at(node: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        node = node[name]
    return node


def literals(annotation: Any) -> Iterator[Any]:
    if typing.get_origin(annotation) is Literal:
        yield from typing.get_args(annotation)
    else:
        for each in typing.get_args(annotation):
            yield from literals(each)


def alternatives(part: dict[str, Any], place: tuple[str, ...]) -> list[Any]:
    """Other values of a setting: all choices of a `Literal`, or guesses by its type."""
    value = at(part, place)
    choices = [*literals(typing.get_type_hints(get_object(part["_target_"])).get(place[0]))]
    guesses = GUESSES.get(type(value), ())
    return [it for it in dict.fromkeys([*choices, *guesses]) if (type(it), it) != (type(value), value)]


# Corpora

TEXT = "Ann-Kathrin Smith-Jones met Bob in 1999.\nShe left him. The Bank of New York fell."
MENTIONS = [(0, 23, "PER"), (0, 11, "PER"), (28, 31, "PER"), (59, 75, "ORG"), (67, 75, "LOC")]


def sentences() -> list[Annotated]:
    """A text with words of several parts, line ends, and nested mentions."""
    mentions = [Stated(*it, "") for it in MENTIONS]
    return [*of_text(TEXT, mentions, Options(lines=True), Remarks(), place="")]


def write_columns(path: Path, order: list[str], scheme: Any, suffix: str) -> None:
    blocks = []
    for it in sentences():
        words = [f"{word[0]}{suffix}" if suffix else word for word in it.words]
        tags = convert(flat(it, "outermost", Remarks()).tags(), scheme)
        known = {"word": words, "tag": tags}
        rows = zip(*(known.get(name, ["X"] * len(words)) for name in order), strict=True)
        blocks.append("".join(" ".join(row) + "\n" for row in rows))
    path.write_text("\n".join(blocks * 6), encoding="utf-8")


def write_corpus(data: dict[str, Any], folder: Path) -> dict[str, str]:
    """Write the files of a corpus in its format; return their names by split."""
    reader, files = data["_target_"].rpartition(".")[2], {split: f"{split}.part" for split in SPLITS}
    for path in (folder / name for name in files.values()):
        if "format" in data:
            write = {"jsonl": FORMATS["doccano"]}.get(data["format"], FORMATS[data["format"]]).write
            nested = FORMATS[data["format"]].nested
            write([it if nested else flat(it, "outermost", Remarks()) for it in 6 * sentences()], path)
        elif reader == "ColumnFiles":
            columns = data["columns"]
            scheme = data.get("scheme", "auto")
            order = sorted(columns, key=lambda name: columns[name] % 10)
            scheme = scheme if isinstance(scheme, str) and scheme != "auto" else "iob1"
            write_columns(path, order, scheme, "0" * data.get("first_character", False))
        else:
            lines = WRITERS[reader](data, toy.sentences("en", "train", 12))
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return files


def corpus_of(part: dict[str, Any]) -> tuple[str, str]:
    """The content of a corpus as text, and its checksum."""
    corpus = load(source(OmegaConf.create({"data": part})))
    content = {
        name: [(it.words, it.tags, it.columns, it.unreachable) for it in own]
        for name, own in corpus.splits.items()
    }
    return json.dumps([corpus.task, content]), corpus.checksum


@pytest.mark.parametrize("name", names("data"))
def test_a_setting_of_a_corpus_counts_if_it_changes_the_corpus(name: str, tmp_path: Path) -> None:
    cfg = composed(f"data={name}")
    part: Any = {**settings(cfg.data), "name": "mine"}
    if "format" in part and not find_spec(FORMATS[part["format"]].package or "json"):
        part["format"] = "jsonl"
    if "files" in part:
        part |= {"folder": str(tmp_path), "files": write_corpus(part, tmp_path)}
    if "nested" in part:
        part["nested"] = "outermost"
    if "sentences" in part:
        part["sentences"] = dict.fromkeys(SPLITS, 9)
    before, checksum = corpus_of(part)
    changed = set()
    for place, other in variants(part):
        try:
            after, other_checksum = corpus_of(other)
        except (ValueError, TypeError, OSError, ImportError, InstantiationException):
            continue
        if after != before:
            changed.add(place[0])
            assert named(cfg, "data", part, checksum) != named(cfg, "data", other, other_checksum), place
    assert "max_sentences" in changed
    assert ("tokens" in changed) == (part.get("format") in ("brat", "jsonl"))


def settings(part: DictConfig) -> dict[Any, Any]:
    return OmegaConf.to_container(part, resolve=False)  # type: ignore[return-value]


def variants(part: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The place of each setting, with the part in which it has another value, once for each."""
    for place in leaves(part):
        for value in alternatives(part, place):
            other = deepcopy(part)
            at(other, place[:-1])[place[-1]] = value
            yield place, other


def named(cfg: DictConfig, group: str, part: dict[str, Any], checksum: str) -> str:
    """The identity of a config with another part."""
    cfg = cfg.copy()
    cfg[group] = part
    return identity(cfg, checksum)
