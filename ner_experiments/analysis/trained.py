"""A finished run put to work again: its tagger, its inputs and its corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from torch import Tensor

from ner_experiments import build, run_config
from ner_experiments.analysis.predictions import metrics
from ner_experiments.data.corpus import load as load_corpus
from ner_experiments.data.datamodule import EVALUATION
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.tagger import Tagger


def load(folder: Path) -> tuple[Tagger, Encoder, Corpus]:
    """A run with the corpus that its config names. Executes nothing that lies in the folder.

    ValueError if the run is not finished, or if its corpus cannot be read or is not what it was; or OSError.
    """
    trained_on = metrics(folder)["data"]["checksum"]
    corpus = read_corpus(run_config.read(folder).data)
    if corpus.checksum != trained_on:
        raise ValueError(
            f"{folder}: {corpus.name} has changed since: its checksum is {corpus.checksum}, "
            f"the run's was {trained_on}"
        )
    return *build.load(folder), corpus


def read_corpus(source: Any) -> Corpus:
    """`source` is the config of a corpus, as `conf/data` has them; ValueError if it would call anything else.

    It may come from a run's folder, or from the overrides that a page in results/ was made with.
    """
    run_config.refuse_foreign({"data": OmegaConf.to_container(source, resolve=True)}, "the corpus")
    return load_corpus(instantiate(source))


def batches(encoder: Encoder, sentences: Sequence[Sentence]) -> Iterator[Batch]:
    """From short to long, as when dev and test are scored."""
    encoded = encoder.encode(sentences, torch.device("cpu"))
    yield from map(encoded.batch, EVALUATION.in_order(encoded.lengths))


def decode(tagger: Tagger, batch: Batch) -> Tensor:
    """The predicted tags, [batch time]."""
    return tagger.decoder.decode(tagger(batch), batch.mask)
