"""A finished run put to work again: its tagger, its inputs and its corpus."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor

from ner_experiments import build, run_config
from ner_experiments.data.corpus import load as load_corpus
from ner_experiments.data.datamodule import EVALUATION
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.runs import run_of
from ner_experiments.tagger import Tagger

log = logging.getLogger(__name__)


def load_with_corpus(folder: Path) -> tuple[Tagger, Encoder, Corpus]:
    """A run with the corpus that its config names. Executes nothing that lies in the folder.

    ValueError if the run is not finished, or if its corpus cannot be read or is not what it was; or OSError.
    """
    corpus = corpus_of(folder)
    return *build.load(folder), corpus


def corpus_of(folder: Path) -> Corpus:
    """What a run was trained and scored on. ValueError if that cannot be read or has changed; or OSError."""
    checksum = run_of(folder).metrics["data"]["checksum"]
    source = OmegaConf.to_yaml(run_config.read(folder).data)
    try:
        return as_it_was(source, checksum)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error


def train_of(folder: Path) -> list[Sentence] | None:
    """The sentences that a run was trained on; None if they cannot be read as they were: the log says why."""
    try:
        return corpus_of(folder).splits["train"]
    except (ValueError, OSError) as error:
        log.warning("errors by what train has are left out: %s", error)
        return None


@lru_cache(maxsize=2)  # the runs of a table follow each other, or go from one corpus to the next and back
def as_it_was(source: str, checksum: str) -> Corpus:
    """`source`: the config of a corpus, as YAML."""
    corpus = read_corpus(OmegaConf.create(source))
    if corpus.checksum != checksum:
        raise ValueError(
            f"{corpus.name} has changed since: its checksum is {corpus.checksum}, the run's was {checksum}"
        )
    return corpus


def read_corpus(source: Any) -> Corpus:
    """`source` is the config of a corpus, as `conf/data` has them; ValueError if it would call anything else.

    It may come from a run's folder, or from the overrides that a page in results/ was made with.
    """
    run_config.refuse_foreign({"data": OmegaConf.to_container(source, resolve=True)}, "the corpus")
    return load_corpus(instantiate(source))


def batches(
    encoder: Encoder, sentences: Sequence[Sentence], device: torch.device | str = "cpu"
) -> Iterator[Batch]:
    """From short to long, as when dev and test are scored."""
    encoded = encoder.encode(sentences, torch.device(device))
    yield from map(encoded.batch, EVALUATION.in_order(encoded.lengths))


def decode(tagger: Tagger, batch: Batch) -> Tensor:
    """The predicted tags, [batch time]."""
    return tagger.decoder.decode(tagger(batch), batch.mask)
