"""A run from its first epoch to its scores: trains, lets dev choose, scores dev and test once each."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from lightning.pytorch import Callback, Trainer, seed_everything
from omegaconf import DictConfig, OmegaConf
from safetensors.torch import save

from ner_experiments.atomic import replacing
from ner_experiments.build import build, read_weights
from ner_experiments.callbacks import EpochLog, FiniteLoss, Peek, Predictions, StepSeeds
from ner_experiments.checkpoints import STEPS, BestWeights, LastCheckpoint, Patience, resumable
from ner_experiments.curves import Curves
from ner_experiments.data.datamodule import CorpusModule
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.leakage import audit
from ner_experiments.data.sentence import Corpus
from ner_experiments.gradients import Gradients
from ner_experiments.identity import tags
from ner_experiments.loggers import About, Logger, csv
from ner_experiments.processes import is_first_process
from ner_experiments.progress import Progress
from ner_experiments.results import (
    commit,
    count_parameters,
    describe,
    machine,
    peak_memory,
    reset_peak_memory,
    seqeval_f1,
    write_json,
    write_predictions,
)
from ner_experiments.sealed import ENCODER, WEIGHTS
from ner_experiments.shown import show
from ner_experiments.sigterm import Sigterm
from ner_experiments.tagger import Tagger
from ner_experiments.trainer import make_trainer, none_left



def run(
    cfg: DictConfig,
    corpus: Corpus,
    encoder: Encoder,
    folder: Path,
    start: dict[str, Any] | None,
    sigterm: Sigterm,
) -> dict[str, Any]:
    """Trains, from the folder's checkpoint if there is one, and writes all but config.yaml and metrics.json.

    `start`: the result of the run whose weights this one starts from. On SIGTERM the process ends with
    status 143, when a checkpoint is written.
    """
    reset_peak_memory()
    made_by_commit = commit()  # now, as the checkout may be another when the run is finished
    torch.set_num_threads(cfg.runtime.threads)
    notes = [*corpus.notes, *encoder.notes()]
    for note in notes:
        log.info("%s", note)
    seed_everything(cfg.seed, verbose=False)
    tagger = build(cfg, encoder)
    if start is not None:
        start_from(Path(start["folder"]), tagger)
    counts = count_parameters(tagger)
    log.info("%s: %s", folder, describe(counts))
    data = CorpusModule(
        corpus, encoder, instantiate(cfg.batches), seed=cfg.seed, train_batches=cfg.trainer.train_batches
    )
    epochs = EpochLog(folder)
    checkpoint = resumable(folder)
    with open_logger(cfg, folder, goes_on=checkpoint is not None) as logger:
        watching = watchers(cfg, folder, epochs, logger)
        trainer, epoch, predictions = fit(cfg, folder, tagger, data, watching, sigterm, checkpoint)
        scores = {"best_epoch": epoch} | score(trainer, tagger, data, predictions, folder, sigterm)
        if trainer.is_global_zero:
            keep_tagger(folder, tagger, encoder)
        result = told(trainer, corpus, notes, scores, epochs, counts) | {"commit": made_by_commit}
        if trainer.is_global_zero:
            show(logger, folder, result, tagger, data)
    return result


def told(
    trainer: Trainer,
    corpus: Corpus,
    notes: list[str],
    scores: dict[str, Any],
    epochs: EpochLog,
    counts: dict[str, Any],
) -> dict[str, Any]:
    """All that metrics.json says but for what `train` knows."""
    device = trainer.strategy.root_device
    return {
        "data": audited(corpus, notes),
        "task": corpus.task,
        **scores,
        "epochs": len(epochs.rows),
        "seconds": sum(row["seconds"] for row in epochs.rows),
        "tokens_per_second": epochs.tokens_per_second,
        **counts,
        "processes": trainer.world_size,
        "peak_memory_bytes": peak_memory(device),
        **machine(device),
    }


def watchers(cfg: DictConfig, folder: Path, epochs: EpochLog, logger: Logger) -> list[Callback]:
    """They see what training does, and change nothing of it."""
    progress = Progress(folder, epochs, patience=cfg.trainer.patience, show=cfg.runtime.progress)
    if cfg.audit.gradients < 0:
        raise ValueError(f"audit.gradients must be at least 0, got {cfg.audit.gradients}")
    gradients = [Gradients(folder, cfg.audit.gradients)] if cfg.audit.gradients else []
    return [epochs, *gradients, Curves(logger, epochs, gradients), progress]


def audited(corpus: Corpus, notes: list[str]) -> dict[str, Any]:
    """What was read, with how many sentences of dev and test the model has seen elsewhere."""
    about = {"name": corpus.name, "checksum": corpus.checksum, "notes": notes}
    return {**about, "leakage": audit(corpus.splits)}


def start_from(folder: Path, tagger: Tagger) -> None:
    """Takes over the weights of a finished run, but for its words, which the two runs read differently."""
    words = "inputs.words."
    others = {name: weight for name, weight in read_weights(folder).items() if not name.startswith(words)}
    missing, unexpected = tagger.load_state_dict(others, strict=False)
    assert not unexpected
    assert all(name.startswith(words) for name in missing)


def open_logger(cfg: DictConfig, folder: Path, *, goes_on: bool) -> AbstractContextManager[Logger]:
    """The logger that the config chooses, in the first of several processes."""
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    about = About(folder, folder.parent.name, folder.name, tags(cfg), settings, goes_on)
    return instantiate(cfg.logger)(about) if is_first_process(cfg) else csv(about)


def fit(
    cfg: DictConfig,
    folder: Path,
    tagger: Tagger,
    data: CorpusModule,
    watching: list[Callback],
    sigterm: Sigterm,
    checkpoint: Path | None,
) -> tuple[Trainer, int, Predictions]:
    """Trains, and gives the tagger the weights of the epoch that dev chooses, whose number is returned.

    `watching` are called in that order, and before the best weights are kept.
    """
    dev_score = f"dev/{tagger.metric.headline}"
    best, predictions = BestWeights(dev_score), Predictions()
    callbacks = [
        StepSeeds(cfg.seed),
        FiniteLoss(steps=STEPS if torch.cuda.is_available() else 1),
        *watching,
        best,
        Patience(dev_score, cfg.trainer.patience),
        *([Peek(folder)] if cfg.audit.peek and "test" in data.corpus.splits else []),
        predictions,
        LastCheckpoint(folder, seconds=cfg.runtime.checkpoint_seconds, sigterm=sigterm),
    ]
    trainer = make_trainer(cfg, folder, callbacks)
    with none_left(trainer):
        trainer.fit(tagger, datamodule=data, ckpt_path=checkpoint)
    sigterm.obey()
    tagger.load_state_dict(best.weights)
    return trainer, best.epoch, predictions


def score(
    trainer: Trainer,
    tagger: Tagger,
    data: CorpusModule,
    predictions: Predictions,
    folder: Path,
    sigterm: Sigterm,
) -> dict[str, Any]:
    """Dev and test, each where the corpus has it; the first process writes what was predicted."""
    scores: dict[str, Any] = {}
    for split, evaluate in (("dev", trainer.validate), ("test", trainer.test)):
        if split not in data.corpus.splits:
            continue
        with none_left(trainer):
            evaluate(tagger, datamodule=data, verbose=False)
        sigterm.obey()
        scores[split] = tagger.report
        found = predictions.of_all_processes(trainer)
        if trainer.is_global_zero:
            keep_predictions(folder, split, data, found, scores[split])
    return scores


def keep_tagger(folder: Path, tagger: Tagger, encoder: Encoder) -> None:
    """The weights, and what makes their inputs of text."""
    with replacing(folder / WEIGHTS) as part:
        part.write_bytes(save(tagger.state_dict()))
    write_json(folder / ENCODER, encoder.state())


def keep_predictions(
    folder: Path, split: str, data: CorpusModule, ids: list[list[int]], report: dict[str, Any]
) -> None:
    """As a file that anyone can score; seqeval must find in it the F1 that is reported."""
    tags = [[data.encoder.labels[tag] for tag in sentence] for sentence in ids]
    path = folder / "predictions" / f"{split}.conll"
    write_predictions(path, data.corpus.task, data.corpus.splits[split], tags)
    if data.corpus.task == "mentions":
        again = seqeval_f1(path)
        assert abs(again - report["f1"]) < 1e-9, f"{path}: {again} by seqeval, {report['f1']}"
