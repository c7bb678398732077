"""From config to objects: the inputs and the tagger of an experiment, new or trained.

A finished run put to work again: its tagger, its inputs and its corpus.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ner_experiments.config import safe_yaml
from ner_experiments.config.processes import num_processes
from ner_experiments.data.corpus import Source
from ner_experiments.data.corpus import load as load_corpus
from ner_experiments.data.datamodule import EVALUATION
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.data.tags import allowed_transitions
from ner_experiments.metrics import SpanF1, TagAccuracy
from ner_experiments.runs.artifacts import ENCODER, WEIGHTS
from ner_experiments.runs.run import run_of
from ner_experiments.tagger import Tagger

DENSE = ("words", "chars", "features")
METRICS: dict[str, type[SpanF1] | type[TagAccuracy]] = {"mentions": SpanF1, "tags": TagAccuracy}


def make_encoder(cfg: DictConfig) -> Encoder:
    """The inputs that the config names, nothing learned yet."""
    return Encoder({name: instantiate(part.input) for name, part in readers(cfg).items()})


def readers(cfg: DictConfig) -> dict[str, DictConfig]:
    """The parts of the config that read the text: dense inputs, then sparse ones for the tag scores."""
    return {name: cfg[name] for name in DENSE if cfg[name]} | dict(cfg.direct)


def build(cfg: DictConfig, encoder: Encoder) -> Tagger:
    """Completes each part with what config cannot know: vocabulary sizes and the width of the part before."""
    num_tags = len(encoder.labels)
    inputs = {
        name: instantiate(cfg[name].module)(**encoder.inputs[name].sizes()) for name in DENSE if cfg[name]
    }
    sparse = takes_sparse_gradients(cfg)
    direct = {
        name: instantiate(part.module)(num_tags=num_tags, sparse=sparse, **encoder.inputs[name].sizes())
        for name, part in cfg.direct.items()
    }
    allowed = allowed_transitions(encoder.labels) if encoder.task == "mentions" else None
    return Tagger(
        inputs=inputs,
        direct=direct,
        model=instantiate(cfg.model)(input_size=sum(module.output_size for module in inputs.values())),
        decoder=instantiate(cfg.decoder)(num_tags=num_tags, allowed=allowed),
        num_tags=num_tags,
        metric=METRICS[encoder.task](encoder.labels),
        penalty=instantiate(cfg.penalty) if cfg.penalty else None,
        optimizer=instantiate(cfg.optimizer),
    )


def takes_sparse_gradients(cfg: DictConfig) -> bool:
    """A step then costs what its features cost, not what all features do; the result is the same.

    Several processes exchange dense gradients.
    """
    plain_sgd = cfg.optimizer._target_ == "torch.optim.SGD" and not cfg.optimizer.weight_decay
    return plain_sgd and not cfg.trainer.gradient_clip and num_processes(cfg) == 1


def source(cfg: DictConfig) -> Source:
    """The corpus that the config describes, of which nothing is read yet."""
    return instantiate(cfg.data)


def load(folder: Path) -> tuple[Tagger, Encoder]:
    """The trained tagger of a run's folder, ready to decode. Executes nothing that lies in the folder.

    ValueError, with the file, for what no run of the suite writes.
    """
    cfg = safe_yaml.read(folder)
    encoder = make_encoder(cfg)
    path = folder / ENCODER
    try:
        encoder.restore(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: expected what the inputs have learned: {error!r}") from error
    tagger, weights = build(cfg, encoder), read_weights(folder)
    try:
        tagger.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"{folder / WEIGHTS}: {' '.join(str(error).split())}") from error
    return tagger.eval(), encoder


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Of a finished run. ValueError for a file that is not whole, or holds anything else."""
    path = folder / WEIGHTS
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path}: expected weights as safetensors: {error}") from error


log = logging.getLogger(__name__)


def load_with_corpus(folder: Path) -> tuple[Tagger, Encoder, Corpus]:
    """A run with the corpus that its config names. Executes nothing that lies in the folder.

    ValueError if the run is not finished, or if its corpus cannot be read or is not what it was; or OSError.
    """
    corpus = corpus_of(folder)
    return *load(folder), corpus


def corpus_of(folder: Path) -> Corpus:
    """What a run was trained and scored on. ValueError if that cannot be read or has changed; or OSError."""
    checksum = run_of(folder).metrics["data"]["checksum"]
    source = OmegaConf.to_yaml(safe_yaml.read(folder).data)
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
    safe_yaml.refuse_foreign({"data": OmegaConf.to_container(source, resolve=True)}, "the corpus")
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
