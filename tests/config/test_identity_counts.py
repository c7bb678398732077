"""Every setting of conf/ that changes what is built changes the identity: each is changed, and both are built."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import is_dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hydra.errors import InstantiationException
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, OmegaConf

from ner_experiments.commands.smoke import FORMATS as WRITERS
from ner_experiments.commands.smoke import write_bert, write_gazetteer, write_vectors
from ner_experiments.config.choices import merged
from ner_experiments.config.config_dirs import names
from ner_experiments.config.identity import identity
from ner_experiments.data import toy
from ner_experiments.data.corpus import load
from ner_experiments.data.formats import registry
from ner_experiments.data.formats.annotated import Annotated, Stated, flat, of_text
from ner_experiments.data.formats.options import TextOptions
from ner_experiments.data.formats.registry import FORMATS
from ner_experiments.data.remarks import Remarks
from ner_experiments.data.sentence import Corpus
from ner_experiments.data.tags import convert
from ner_experiments.experiment_data import fingerprint, make_encoder, source
from ner_experiments.train import build_for_training

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
    return merged(overrides)


def leaves(node: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The place of each setting that is no group of settings."""
    if isinstance(node, dict) and node:
        for name, value in node.items():
            yield from leaves(value, (*place, name))
    elif place and place[-1] not in ("_target_", "_partial_", "stand_in"):
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
    owner, name = next(
        (node, place[depth])
        for depth in range(len(place) - 1, -1, -1)
        if "_target_" in (node := at(part, place[:depth])) or not depth
    )
    target = get_object(owner["_target_"]) if "_target_" in owner else None
    plain = isinstance(target, type) and not is_dataclass(target)
    hints = typing.get_type_hints(target.__init__ if plain else target) if target else {}
    choices = [*literals(hints.get(name))]
    guesses = GUESSES.get(type(value), ())
    return [it for it in dict.fromkeys([*choices, *guesses]) if (type(it), it) != (type(value), value)]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for what is written where a setting says, such as caches."""
    monkeypatch.chdir(tmp_path)


# Corpora

TEXT = "Ann-Kathrin Smith-Jones met Bob in 1999.\nShe left him. The Bank of New York fell."
MENTIONS = [(0, 23, "PER"), (0, 11, "PER"), (28, 31, "PER"), (59, 75, "ORG"), (67, 75, "LOC")]


def sentences() -> list[Annotated]:
    """A text with words of several parts, line ends, and nested mentions."""
    mentions = [Stated(*it, "") for it in MENTIONS]
    return [*of_text(TEXT, mentions, TextOptions(lines=True, nested=None), Remarks(), place="")]


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
            nested = FORMATS[data["format"]].nested
            written = [it if nested else flat(it, "outermost", Remarks()) for it in 6 * sentences()]
            registry.write({"jsonl": "doccano"}.get(data["format"], data["format"]), written, path)
        elif reader == "ColumnFiles":
            columns = data["columns"]
            scheme = data.get("scheme", "auto")
            auto = {name: number for number, name in enumerate(columns)}
            order = sorted(
                columns, key=lambda name: (auto if columns[name] == "auto" else columns)[name] % 10
            )
            scheme = scheme if isinstance(scheme, str) and scheme != "auto" else "iob1"
            write_columns(path, order, scheme, "0" * (data.get("first_character") is True))
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
    own, changed = named(cfg, "data", part, checksum), set()
    for place, other in variants(part):
        try:
            after, other_checksum = corpus_of(other)
        except (ValueError, TypeError, OSError, ImportError, InstantiationException):
            continue
        if after != before:
            changed.add(place[0])
            assert named(cfg, "data", other, other_checksum) != own, place
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


# Inputs and models

SMALL = {"hidden_size": 6, "dense_size": 6, "unit_size": 4, "dim": 6, "num_filters": 3, "num_layers": 2}
"""Sizes in place of the papers'; the vectors of files have their own."""
BASE = ("data=toy_en", "words.module.dim=6", "chars=none", "model=stacked", "batches.tokens=40")
PARTS = (
    "words",
    "chars",
    "features",
    "direct",
    "model",
    "decoder",
    "penalty",
    "batches",
    "optimizer",
    "schedule",
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the files of all inputs."""
    folder = tmp_path_factory.mktemp("files")
    write_vectors(folder)
    write_gazetteer(folder)
    write_bert(folder / "bert")
    return folder


@cache
def corpus() -> Corpus:
    """Toy sentences with the columns that some inputs read."""
    read = {split: toy.sentences("en", split, 6) for split in SPLITS}
    columns = {"pos": lambda word: word[:1], "chunk": lambda word: f"I-{word[-1:]}"}
    splits = {
        split: [
            replace(it, columns={name: tuple(map(of, it.words)) for name, of in columns.items()})
            for it in own
        ]
        for split, own in read.items()
    }
    return Corpus("toy", "mentions", splits, "abc")


def trained(cfg: DictConfig) -> tuple[str, str]:
    """The result of two steps of training, as text, and the identity of the run."""
    encoder = make_encoder(cfg)
    encoder.fit(corpus())
    torch.manual_seed(1)
    tagger = build_for_training(cfg, encoder)
    train, dev = (encoder.encode(corpus().splits[split], torch.device("cpu")) for split in ("train", "dev"))
    plan = instantiate(cfg.batches).plan(train.lengths, np.random.default_rng(1))
    optimizer = tagger.configure_optimizers()
    seen: list[Any] = [[batch.tolist() for batch in plan]]
    if cfg.schedule:
        seen += [instantiate(cfg.schedule)(done) for done in (0.0, 0.05, 0.5, 0.9)]
    for number, sentences in enumerate([*plan, *plan][:2]):
        torch.manual_seed(number)
        loss = tagger.losses(train.batch(sentences))["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    seen += [weight.detach().double().sum().item() for weight in tagger.parameters()]
    tagger.eval()
    with torch.no_grad():
        batch = dev.batch(np.arange(6))
        seen.append(tagger.decoder.decode(tagger(batch), batch.mask).tolist())
    return json.dumps(seen), identity(cfg, fingerprint(corpus(), encoder))


def config_of(group: str, name: str, files: Path) -> DictConfig:
    """A small experiment with this choice."""
    more = {"penalty": ["model=parallel"]}.get(group, [])
    if name == "vectors" or name.startswith("bert"):
        more = [f"words.input.path={files / ('bert' if name != 'vectors' else 'senna/senna.txt')}"]
    own = [item for item in BASE if not item.startswith(f"{group}.")]
    place = [f"data_dir={files}", f"cache_dir={files / 'cache'}"]
    cfg = merged([*own, f"{group}={name}", *more, *place])
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    for place in leaves(settings[group]):
        if place[-1] in SMALL and type(at(settings[group], place)) is int:
            at(settings[group], place[:-1])[place[-1]] = SMALL[place[-1]]
    return OmegaConf.create(settings)


CHOICES = [(group, name) for group in PARTS for name in names(group)]


@pytest.mark.parametrize(("group", "name"), CHOICES)
def test_a_setting_of_a_part_counts_if_it_changes_training(group: str, name: str, files: Path) -> None:
    """Only what does not count, such as the place of a file, needs to be built."""
    cfg = config_of(group, name, files)
    part: Any = OmegaConf.to_container(cfg[group])
    own, before, counted = identity(cfg, ""), None, set()
    for place, other in variants(part):
        if place in counted:
            continue
        varied = cfg.copy()
        varied[group] = other
        if identity(varied, "") != own:
            counted.add(place)
            continue
        try:
            after = trained(varied)
        except Exception:  # a value that the part refuses, in words of its own
            continue
        counted.add(place)
        before = before or trained(cfg)
        assert after == before or after[1] != before[1], place
    assert counted or not [*leaves(part)]
