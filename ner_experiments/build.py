"""From config to tagger, that of an experiment or of a finished run, and decoding with it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from ner_experiments.config.processes import num_processes
from ner_experiments.config.stand_ins import build_part
from ner_experiments.config.targets import check_targets
from ner_experiments.data.batches import EVALUATION
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.data.sentence import Corpus, Sentence
from ner_experiments.data.tags import Span, allowed_transitions, strict_spans
from ner_experiments.experiment_data import DENSE, corpus_of, make_encoder
from ner_experiments.modules.decoding import Decoder, Scores, Tags
from ner_experiments.modules.lookup import set_sparse
from ner_experiments.runs.artifacts import CODE, CONFIG, ENCODER, WEIGHTS, read_config
from ner_experiments.runs.code import other_tags
from ner_experiments.runs.predictions import units
from ner_experiments.runs.run import log_once, open_run
from ner_experiments.tagger import Architecture, Tagger
from ner_experiments.utils.files import atomic_write, write_json
from ner_experiments.utils.text import printable, read_json_object

log = logging.getLogger(__name__)

Kind = TypeVar("Kind", bound=Tagger)


# An experiment's tagger


def build(cfg: DictConfig, encoder: Encoder) -> Tagger:
    """The untrained tagger of the config, which `encoder` completes with the number of tags and vocabulary sizes."""
    return assemble(cfg, encoder, Tagger)


def assemble(cfg: DictConfig, encoder: Encoder, kind: Callable[..., Kind]) -> Kind:
    """A tagger as `build` returns, as an object of another class."""
    inputs = {
        name: instantiate(cfg[name].module)(**encoder.inputs[name].sizes()) for name in DENSE if cfg[name]
    }
    model = build_encoder(cfg, sum(module.output_size for module in inputs.values()))
    allowed = allowed_transitions(encoder.labels) if encoder.task == "mentions" else None
    decoder: Decoder = instantiate(cfg.decoder)(num_tags=len(encoder.labels), allowed=allowed)
    if not isinstance(getattr(decoder, "num_tags", None), int):
        raise ValueError(
            f"decoder: {cfg.decoder._target_} has no num_tags: set it in the constructor to the number of scores "
            "per token"
        )
    direct = {
        name: instantiate(part.module)(num_tags=decoder.num_tags, **encoder.inputs[name].sizes())
        for name, part in cfg.direct.items()
    }
    tagger = kind(
        inputs=inputs,
        direct=direct,
        model=model,
        decoder=decoder,
        penalty=instantiate(cfg.penalty) if cfg.penalty else None,
        optimizer=build_part(cfg.optimizer),
    )
    if takes_sparse_gradients(cfg):
        set_sparse(tagger)
    return tagger


def build_encoder(cfg: DictConfig, input_size: int) -> Architecture:
    """The encoder of the config. ValueError as `encoder_class`, and for one without `output_size`."""
    encoder: Architecture = encoder_class(cfg)(input_size=input_size)
    if not isinstance(getattr(encoder, "output_size", None), int):
        raise ValueError(
            f"model: {cfg.model._target_} has no output_size: set it in the constructor to the size of what it returns"
        )
    return encoder


def check_parts(cfg: DictConfig) -> None:
    """Raise ValueError, as `targets.check_targets`, `encoder_class` and `check_penalty`, before anything is read."""
    check_targets(cfg)
    encoder_class(cfg)
    check_penalty(cfg)


def check_penalty(cfg: DictConfig) -> None:
    """Raise ValueError if the config's penalty cannot be computed for its encoder."""
    if cfg.penalty and (encoder := encoder_without_weights(cfg)) is not None:
        try:
            instantiate(cfg.penalty).check(encoder)
        except ValueError as error:
            raise ValueError(f"penalty: {error}; penalty=none trains without it") from None


def encoder_size(cfg: DictConfig) -> int:
    """Number of weights of the config's encoder for inputs of size 100; 0 if it cannot be built."""
    encoder: Any = encoder_without_weights(cfg)
    return 0 if encoder is None else sum(weight.numel() for weight in encoder.parameters())


def encoder_without_weights(cfg: DictConfig) -> Architecture | None:
    """The config's encoder for inputs of size 100, with weights that are not stored; None if it cannot be built.

    What is wrong with an encoder is for the job that trains it to say.
    """
    try:
        with torch.device("meta"):
            return build_encoder(cfg, 100)
    except Exception:
        return None


def encoder_class(cfg: DictConfig) -> Callable[..., Architecture]:
    """The class of the encoder with its settings; `input_size` is still to be given.

    Raises ValueError for a config without `_partial_`, and for settings of its parts that these do not take.
    """
    if not cfg.model.get("_partial_"):
        raise ValueError(
            f"model: write `_partial_: true` below `_target_: {cfg.model._target_}`: input_size is known only later"
        )
    try:
        found: Callable[..., Architecture] = instantiate(cfg.model)
    except InstantiationException as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise ValueError(f"model: {reason}") from error
    return found


def takes_sparse_gradients(cfg: DictConfig) -> bool:
    """Whether gradients of words and direct features may be sparse (`modules.lookup`).

    The result is the same only for Adagrad, and SGD without momentum, in one process, without weight decay and gradient
    clipping. The cost of a step then depends on the words and features in its batch, not on the number of all.
    """
    optimizer = cfg.optimizer
    takes_them = optimizer._target_ in ("torch.optim.SGD", "torch.optim.Adagrad")
    changes_all_weights = (
        optimizer.get("weight_decay") or optimizer.get("momentum") or cfg.trainer.gradient_clip
    )
    return takes_them and not changes_all_weights and num_processes(cfg) == 1


# A finished run


def write_tagger(folder: Path, tagger: Tagger, encoder: Encoder) -> None:
    """Write the weights, and the state of the fitted inputs."""
    with atomic_write(folder / WEIGHTS) as part:
        part.write_bytes(save(tagger.state_dict()))
    write_json(folder / ENCODER, encoder.state())


def load(folder: Path) -> tuple[Tagger, Encoder]:
    """The trained tagger of a run's folder, in evaluation mode. Executes nothing from the folder.

    Raises ValueError, with the file, for content that no run of the suite writes.
    """
    return load_with_config(folder, read_config(folder))


def load_with_config(folder: Path, cfg: DictConfig) -> tuple[Tagger, Encoder]:
    """As `load`, given the content of its config.yaml, which is slow to read."""
    if changed := other_tags(folder / CODE, cfg):
        log_once(f"{folder}: {changed}, by which its weights may give other tags than those that were scored")
    with as_value_error(f"{folder / CONFIG}: expected the settings of the inputs"):
        encoder = make_encoder(cfg)
    path = folder / ENCODER
    with as_value_error(f"{path}: expected the state of the fitted inputs"):
        encoder.restore(read_json_object(path))
    with as_value_error(f"{folder}: {CONFIG} and {ENCODER} make no tagger"):
        tagger = build(cfg, encoder)
    weights = read_weights(folder)
    with as_value_error(f"{folder / WEIGHTS}: expected the weights of this tagger"):
        tagger.load_state_dict(weights)
    return tagger.eval(), encoder


@contextmanager
def as_value_error(expected: str) -> Iterator[None]:
    """Turn any exception into a ValueError with the place: reading files of strangers can raise anything."""
    try:
        yield
    except Exception as error:
        cause = error.__cause__ if isinstance(error, InstantiationException) and error.__cause__ else error
        raise ValueError(f"{expected}: {printable(f'{type(cause).__name__}: {cause}', 4_000)}") from error


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Weights of a finished run. ValueError for a truncated file, or one that is not safetensors."""
    path = folder / WEIGHTS
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path}: expected weights as safetensors: {error}") from error
    for name, weight in weights.items():
        if weight.is_complex() or not weight.isfinite().all():
            raise ValueError(
                f"{path}: {name}: expected finite real numbers, got {weight.dtype}, or NaN or infinity in it"
            )
    return weights


def load_with_corpus(folder: Path) -> tuple[Tagger, Encoder, Corpus]:
    """The trained tagger of a run's folder, and its corpus. Executes nothing from the folder.

    ValueError or OSError if the run is not finished, or if its corpus cannot be read or has changed.
    """
    run = open_run(folder)
    corpus = corpus_of(run)
    return *load_with_config(folder, run.config), corpus


# Decoding


def batches(
    encoder: Encoder, sentences: Sequence[Sentence], device: torch.device | str = "cpu"
) -> Iterator[Batch]:
    """Yield the sentences in batches, from short to long ones, as in the evaluation on dev and test."""
    encoded = encoder.encode(sentences, torch.device(device))
    yield from map(encoded.batch, EVALUATION.in_order(encoded.lengths))


def decode(tagger: Tagger, batch: Batch) -> Tensor:
    """Ids of the predicted tags, [batch, time]."""
    return tagger.decoder.decode(tagger(batch), batch.mask)


def decode_with_probabilities(
    tagger: Tagger, encoder: Encoder, batch: Batch
) -> Iterator[tuple[list[str], list[Span], list[float]]]:
    """Yield the predicted tags of each sentence, its mentions, and the probability of each mention.

    In a corpus that is scored tag by tag, each token counts as a mention. Otherwise a sequence of tags is a mention
    only if it is complete (`tags.strict_spans`), as for F1.
    """
    scores = tagger(batch)
    ids = tagger.decoder.decode(scores, batch.mask)
    yield from with_probabilities(tagger.decoder, encoder, batch, scores, ids)


def with_probabilities(
    decoder: Decoder, encoder: Encoder, batch: Batch, scores: Scores, ids: Tags
) -> Iterator[tuple[list[str], list[Span], list[float]]]:
    """As `decode_with_probabilities`, given the tag scores of a batch and the decoded ids."""
    tags = [
        [encoder.labels[tag] for tag in row[:length]]
        for row, length in zip(ids.tolist(), batch.lengths.tolist(), strict=True)
    ]
    mentions = [strict_spans(row) if encoder.task == "mentions" else units(row, encoder.task) for row in tags]
    bounds = [(number, start, end) for number, spans in enumerate(mentions) for start, end, _ in spans]
    probabilities: Iterator[float] = iter(())
    if bounds:
        spans = torch.tensor(bounds, device=scores.device)
        of_spans = decoder.span_probabilities(scores, ids, batch.mask, spans)
        probabilities = iter(of_spans.clamp(max=1).tolist())
    for row, row_mentions in zip(tags, mentions, strict=True):
        yield row, row_mentions, [next(probabilities) for _ in row_mentions]
