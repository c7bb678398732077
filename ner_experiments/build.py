"""From config to objects: the inputs and the tagger of an experiment, new or trained."""

from __future__ import annotations

import json
from pathlib import Path

from hydra.utils import instantiate
from omegaconf import DictConfig
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ner_experiments import run_config
from ner_experiments.data.corpus import Source
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.tags import allowed_transitions
from ner_experiments.metrics import SpanF1, TagAccuracy
from ner_experiments.processes import num_processes
from ner_experiments.sealed import ENCODER, WEIGHTS
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
    cfg = run_config.read(folder)
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
