"""The data of an experiment or a finished run: its corpus, its inputs, and the checksums of what they read.

Does not import PyTorch: a table computes checksums and needs no tensors.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from ner_experiments.config import safe_yaml
from ner_experiments.config.corpora import instantiated
from ner_experiments.config.identity import files_digest, identity, unread_folder
from ner_experiments.config.init_from import first_run
from ner_experiments.data.corpus import Source, load_test
from ner_experiments.data.corpus import load as load_corpus
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus, tags_of
from ner_experiments.runs import artifacts
from ner_experiments.runs.run import Run
from ner_experiments.utils.text import did_you_mean, truncated_repr

log = logging.getLogger(__name__)

EXTRA_NAME = re.compile(r"[A-Za-z0-9_-]+")
"""Names of extra test sets, of which those of files are made."""
SPLITS = ("train", "dev", "test")
DENSE = ("words", "chars", "features")


# An experiment's corpus and inputs


def read_data(cfg: DictConfig) -> tuple[Corpus, Encoder]:
    """Corpus and fitted inputs of an experiment. ValueError or OSError for missing or malformed files."""
    corpus = load_corpus(source(cfg))
    encoder = make_encoder(cfg)
    encoder.fit(corpus)
    return corpus, encoder


def read_extra_tests(cfg: DictConfig, encoder: Encoder) -> dict[str, Corpus]:
    """The test sets of `audit.extra_tests` by name, each as the only split of a corpus; none with audit.test=false.

    Raises ValueError, with the name, for a setting that is none of data, a file that cannot be read, a type or a tag
    that the corpus of the run does not have, and a column that its inputs lack.
    """
    tests = OmegaConf.to_container(cfg.audit.extra_tests, resolve=True) if cfg.audit.test else {}
    assert isinstance(tests, dict)
    return {str(name): extra_test(cfg, str(name), settings, encoder) for name, settings in tests.items()}


def extra_test(cfg: DictConfig, name: str, settings: Any, encoder: Encoder) -> Corpus:
    """One of `read_extra_tests`: all sentences of a file, read as the corpus is, but for what `settings` change."""
    place = f"audit.extra_tests.{name}"
    if not EXTRA_NAME.fullmatch(name) or name in SPLITS:
        raise ValueError(
            f"{place}: expected a name of letters, digits, - and _ that is no split's, got {name!r}"
        )
    changes = dict(settings) if isinstance(settings, dict) else {"path": settings}
    path = changes.pop("path", None)
    if not isinstance(path, str):
        raise ValueError(f"{place}: expected a file or {{path: FILE, ...}}, got {truncated_repr(settings)}")
    data: Any = OmegaConf.to_container(cfg.data, resolve=True)
    if "files" not in data:
        raise ValueError(f"{place}: {cfg.data.name} is not read from files, so its format is unknown")
    if unknown := [key for key in changes if key not in data or key in ("files", "_target_", "name")]:
        raise ValueError(f"{place}: data has no setting {unknown[0]!r}{did_you_mean(unknown[0], data)}")
    own: dict[str, Any] = {"sha256": {}, "sizes": {}, "source": "", "licence": "", "max_sentences": None}
    file = os.path.abspath(os.path.expanduser(path))
    data |= {key: value for key, value in own.items() if key in data} | changes
    try:
        corpus = load_test(instantiated(data | {"name": name, "files": {"test": file}}))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
    sentences = corpus.splits["test"]
    tags = tags_of(sentences).union(f"S-{it.type}" for sentence in sentences for it in sentence.unreachable)
    if unknown := sorted(tags - {*encoder.labels}):
        raise ValueError(f"{place}: {file} has the tag {unknown[0]}, which {cfg.data.name} has not")
    for column in encoder.required_columns():
        if any(column not in it.columns for it in sentences):
            raise ValueError(f"{place}: {file} has no column {column!r}, which the run reads")
    return corpus


def source(cfg: DictConfig) -> Source:
    """The config's corpus, not read yet."""
    settings: Any = OmegaConf.to_container(cfg.data, resolve=True)
    return instantiated(settings)


def make_encoder(cfg: DictConfig) -> Encoder:
    """The config's inputs, not fitted yet."""
    return Encoder({name: instantiate(part.input) for name, part in readers(cfg).items()})


def readers(cfg: DictConfig) -> dict[str, DictConfig]:
    """Parts of the config that read the text: dense inputs, then direct features."""
    return {name: cfg[name] for name in DENSE if cfg[name]} | dict(cfg.direct)


def init_config(cfg: DictConfig) -> DictConfig:
    """Config of the run that provides the initial weights, see `config.init_from`."""
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    return OmegaConf.create(first_run(settings))


# Checksums of what an experiment reads


class Fingerprints:
    """Callable that returns the fingerprint of a config and reads the same corpus with the same inputs only once.

    It trains nothing. Raises ValueError or OSError for missing or malformed files.
    """

    def __init__(self) -> None:
        self.checksums: dict[str, str] = {}

    def __call__(self, cfg: DictConfig) -> str:
        settings = data_settings(cfg)
        if settings not in self.checksums:
            self.checksums[settings] = fingerprint(*read_data(cfg))
        if not cfg.init_from:
            return self.checksums[settings]
        start = init_config(cfg)
        return with_start(self.checksums[settings], identity(start, self(start)))


def fingerprint(corpus: Corpus, encoder: Encoder) -> str:
    """Checksums of the corpus and of every input that reads files, joined by colons."""
    return ":".join([corpus.checksum, *encoder.checksums()])


def with_start(fingerprint: str, identity: str) -> str:
    """Fingerprint of a run that starts from the weights of the run with this identity."""
    return f"{fingerprint}:{identity}"


def checksums_by_source(cfg: DictConfig, corpus: Corpus, encoder: Encoder) -> dict[str, str]:
    """Checksums of the corpus and of each input that reads files, by a digest of the settings that locate them."""
    data = OmegaConf.to_container(cfg.data, resolve=True)
    checksums: list[tuple[Any, str]] = [(data, corpus.checksum)]
    for name, part in readers(cfg).items():
        if checksum := encoder.inputs[name].checksum():
            checksums.append(([data, OmegaConf.to_container(part.input, resolve=True)], checksum))
    return {digest(json.dumps(settings)): checksum for settings, checksum in checksums}


def data_settings(cfg: DictConfig) -> str:
    """JSON of the settings that say where and how the corpus and each input are read."""
    inputs = {name: OmegaConf.to_container(part.input, resolve=True) for name, part in readers(cfg).items()}
    return json.dumps([OmegaConf.to_container(cfg.data, resolve=True), inputs])


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def unread_error(cfg: DictConfig) -> Path:
    """Where the error of an experiment is saved that fails before its data are read. Reading them removes it."""
    return unread_folder(cfg) / artifacts.unread_error_name(files_digest(cfg))


# A finished run's corpus


def corpus_of(run: Run) -> Corpus:
    """Corpus of a run. ValueError or OSError if it cannot be read or has changed since the run."""
    source = OmegaConf.to_yaml(run.config.data)
    try:
        return read_unchanged_corpus(source, run.metrics["data"]["checksum"])
    except ValueError as error:
        raise ValueError(f"{run.folder}: {error}") from error


def corpus_if_unchanged(run: Run) -> Corpus | None:
    """Corpus of a run; None, with a warning, if it cannot be read or has changed."""
    try:
        return corpus_of(run)
    except (ValueError, OSError) as error:
        log.warning("errors by mentions seen in train are left out: %s", error)
        return None


@lru_cache(maxsize=2)  # the runs of a table read one corpus after the other, or alternate between two
def read_unchanged_corpus(source: str, checksum: str) -> Corpus:
    """The corpus of a config given as YAML. ValueError if its checksum is not `checksum`."""
    corpus = read_corpus(OmegaConf.create(source))
    if corpus.checksum != checksum:
        raise ValueError(
            f"{corpus.name} has changed since the run: its checksum is {corpus.checksum}, the run's was {checksum}"
        )
    return corpus


def read_corpus(source: Any) -> Corpus:
    """Corpus of an untrusted config, such as one from a run's folder or from the overrides of a page in results/.

    Raises ValueError for a `_target_` that `safe_yaml.refuse_foreign` refuses.
    """
    settings: Any = OmegaConf.to_container(source, resolve=True)
    safe_yaml.refuse_foreign({"data": settings}, "the corpus")
    return load_corpus(instantiated(settings))
