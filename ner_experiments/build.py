"""From config to objects: the inputs and the tagger of an experiment, new or trained.

A finished run put to work again: its tagger, its inputs and its corpus.
"""

from __future__ import annotations

import hashlib
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
from ner_experiments.config.identity import identity
from ner_experiments.config.processes import num_processes
from ner_experiments.data.corpus import Source
from ner_experiments.data.corpus import load as load_corpus
from ner_experiments.data.datamodule import EVALUATION
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.data.tags import Span, allowed_transitions, strict_spans
from ner_experiments.metrics import SpanF1, TagAccuracy
from ner_experiments.runs.artifacts import ENCODER, WEIGHTS, read_config
from ner_experiments.runs.predictions import units
from ner_experiments.runs.run import open_run
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
    cfg = read_config(folder)
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
    checksum = open_run(folder).metrics["data"]["checksum"]
    source = OmegaConf.to_yaml(read_config(folder).data)
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


def decoded(
    tagger: Tagger, encoder: Encoder, batch: Batch
) -> Iterator[tuple[list[str], list[Span], list[float]]]:
    """Of each sentence its tags, the mentions they make, and the probability of each; or of each tag.

    What is no whole mention by `tags.strict_spans` is none, as where F1 is counted.
    """
    scores = tagger(batch)
    ids = tagger.decoder.decode(scores, batch.mask)
    tags = [
        [encoder.labels[tag] for tag in row[:length]]
        for row, length in zip(ids.tolist(), batch.lengths.tolist(), strict=True)
    ]
    mentions = encoder.task == "mentions"
    found = [strict_spans(it) if mentions else units(it, encoder.task) for it in tags]
    rows = [(row, start, end) for row, spans in enumerate(found) for start, end, _ in spans]
    probabilities: Iterator[float] = iter(())
    if rows:
        places = torch.tensor(rows, device=scores.device)
        of_all = tagger.decoder.span_probabilities(scores, ids, batch.mask, places)
        probabilities = iter(of_all.clamp(max=1).tolist())
    for of_sentence, spans in zip(tags, found, strict=True):
        yield of_sentence, spans, [next(probabilities) for _ in spans]


def prepare(cfg: DictConfig) -> tuple[Corpus, Encoder]:
    """What an experiment reads; ValueError or OSError for files that are missing or malformed."""
    corpus = load_corpus(instantiate(cfg.data))
    encoder = make_encoder(cfg)
    encoder.fit(corpus)
    return corpus, encoder


def checksum(corpus: Corpus, encoder: Encoder) -> str:
    """Stands for the contents of every file that was read."""
    return ":".join([corpus.checksum, *encoder.checksums()])


def sources(cfg: DictConfig, corpus: Corpus, encoder: Encoder) -> dict[str, str]:
    """For the corpus, and for each input on it, a digest of where it was read: the checksum of what was."""
    data = OmegaConf.to_container(cfg.data, resolve=True)
    found: list[tuple[Any, str]] = [(data, corpus.checksum)]
    for name, part in readers(cfg).items():
        if content := encoder.inputs[name].checksum():
            found.append(([data, OmegaConf.to_container(part.input, resolve=True)], content))
    return {digest(json.dumps(place)): content for place, content in found}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def what_is_read(cfg: DictConfig) -> str:
    """The settings of the corpus and of each input on it: where they are read, and how."""
    inputs = {name: OmegaConf.to_container(part.input, resolve=True) for name, part in readers(cfg).items()}
    return json.dumps([OmegaConf.to_container(cfg.data, resolve=True), inputs])


def identify(cfg: DictConfig, known: dict[str, str]) -> str:
    """The identity that the experiment's run has or would have: reads its files, and trains nothing."""
    return identity(cfg, fingerprint(cfg, known))


def fingerprint(cfg: DictConfig, known: dict[str, str]) -> str:
    """The checksum of what the experiment would read.

    `known` keeps those of what was read from call to call. ValueError and OSError as `prepare`.
    """
    before = [identify(first_step(cfg), known)] if cfg.first else []
    files = what_is_read(cfg)
    if files not in known:
        known[files] = checksum(*prepare(cfg))
    return ":".join([known[files], *before])


def first_step(cfg: DictConfig) -> DictConfig:
    """The run whose weights this one starts from: as this one, but for the parts that `first` holds."""
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    return OmegaConf.create(settings | settings["first"] | {"first": {}})
