"""A run from its first epoch to its scores: trains, lets dev choose, scores dev and test once each."""

from __future__ import annotations

import logging
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.pytorch import Callback, Trainer, seed_everything
from lightning.pytorch.loggers import Logger
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.strategies.launchers import _SubprocessScriptLauncher
from omegaconf import DictConfig, OmegaConf
from safetensors.torch import save

from ner_experiments.atomic import replacing
from ner_experiments.build import WEIGHTS, build, num_processes, read_weights
from ner_experiments.callbacks import EpochLog, FiniteLoss, Peek, Predictions, StepSeeds
from ner_experiments.checkpoints import STEPS, BestWeights, InPlace, LastCheckpoint, Patience, resumable
from ner_experiments.data.datamodule import CorpusModule
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.leakage import audit
from ner_experiments.data.sentence import Corpus
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
from ner_experiments.sigterm import Sigterm
from ner_experiments.tagger import Tagger

log = logging.getLogger(__name__)

GRACE = 5.0
"""Seconds after an error in which the other processes of a run may tell theirs."""


def run(
    cfg: DictConfig,
    corpus: Corpus,
    encoder: Encoder,
    folder: Path,
    start: dict[str, Any] | None,
    sigterm: Sigterm,
) -> dict[str, Any]:
    """Trains, from the folder's checkpoint if there is one, and writes all but metrics.json.

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
    epochs = EpochLog(folder, title=f"{folder.parent.name} {folder.name}", progress=cfg.runtime.progress)
    with open_logger(cfg, folder) as logger:
        trainer, scores = fit(cfg, folder, tagger, data, epochs, logger, sigterm)
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
        "commit": made_by_commit,
    }


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


def open_logger(cfg: DictConfig, folder: Path) -> Any:
    """A context manager around the logger that the config chooses."""
    settings = OmegaConf.to_container(cfg, resolve=True)
    make = instantiate(cfg.logger)
    return make(folder=folder, group=folder.parent.name, name=folder.name, config=settings)


def fit(
    cfg: DictConfig,
    folder: Path,
    tagger: Tagger,
    data: CorpusModule,
    epochs: EpochLog,
    logger: Logger | None,
    sigterm: Sigterm,
) -> tuple[Trainer, dict[str, Any]]:
    """Trains and scores; leaves the best weights, the encoder and the predictions in the folder."""
    dev_score = f"dev/{tagger.metric.headline}"
    best, predictions = BestWeights(dev_score), Predictions()
    callbacks = [
        StepSeeds(cfg.seed),
        FiniteLoss(steps=STEPS if torch.cuda.is_available() else 1),
        epochs,
        best,
        Patience(dev_score, cfg.trainer.patience),
        *([Peek(folder)] if cfg.audit.peek and "test" in data.corpus.splits else []),
        predictions,
        LastCheckpoint(folder, seconds=cfg.runtime.checkpoint_seconds, sigterm=sigterm),
    ]
    trainer = make_trainer(cfg, folder, callbacks, logger)
    with none_left(trainer):
        trainer.fit(tagger, datamodule=data, ckpt_path=resumable(folder))
    sigterm.obey()
    tagger.load_state_dict(best.weights)
    scores: dict[str, Any] = {"best_epoch": best.epoch}
    for split, score in (("dev", trainer.validate), ("test", trainer.test)):
        if split in data.corpus.splits:
            with none_left(trainer):
                score(tagger, datamodule=data, verbose=False)
            sigterm.obey()
            scores[split] = tagger.report
            found = predictions.of_all_processes(trainer)
            if trainer.is_global_zero:
                keep_predictions(folder, split, data, found, scores[split])
    if trainer.is_global_zero:
        with replacing(folder / WEIGHTS) as part:
            part.write_bytes(save(tagger.state_dict()))
        write_json(folder / "encoder.json", data.encoder.state())
        log_scores(logger, tagger.metric.headline, scores)
    return trainer, scores


@contextmanager
def none_left(trainer: Trainer) -> Iterator[None]:
    """After an error the processes that Lightning started get seconds to end: one that hangs never would."""
    try:
        yield
    except Exception:
        launcher = trainer.strategy.launcher
        for process in launcher.procs if isinstance(launcher, _SubprocessScriptLauncher) else ():
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
        raise


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


def log_scores(logger: Logger | None, headline: str, scores: dict[str, Any]) -> None:
    if logger is not None:
        splits = [split for split in ("dev", "test") if split in scores]
        logger.log_metrics({f"best/{split}_{headline}": scores[split][headline] for split in splits})


def make_trainer(cfg: DictConfig, folder: Path, callbacks: list[Callback], logger: Logger | None) -> Trainer:
    """A trainer that says nothing itself: progress and results are ours to print."""
    quiet()
    settings = cfg.trainer
    for name, lowest in LOWEST.items():
        if settings[name] < lowest:
            raise ValueError(f"trainer.{name} must be at least {lowest}, got {settings[name]}")
    several = num_processes(cfg) > 1
    return Trainer(
        accelerator=cfg.runtime.accelerator,
        devices=settings.devices,
        num_nodes=settings.num_nodes,
        strategy=DDPStrategy(timeout=timedelta(seconds=cfg.runtime.ddp_seconds)) if several else "auto",
        plugins=[InPlace(), *environment(several)],
        use_distributed_sampler=False,  # the data module deals out the batches
        precision=settings.precision,
        max_epochs=settings.max_epochs,
        gradient_clip_val=settings.gradient_clip,
        logger=logger or False,
        callbacks=callbacks,
        default_root_dir=folder,
        reload_dataloaders_every_n_epochs=1,
        num_sanity_val_steps=0,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


LOWEST = {
    "max_epochs": 1,
    "patience": 1,
    "gradient_clip": 0,
    "train_batches": 0,
    "devices": 1,
    "num_nodes": 1,
}


def environment(several: bool) -> list[Any]:
    """Who starts the processes: nobody, where there is one; else whom Lightning finds, such as torchrun."""
    if not several:
        return [LightningEnvironment()]
    return [SLURMEnvironment(auto_requeue=False)] if SLURMEnvironment.detect() else []


def quiet() -> None:
    """Lightning's hints are about settings that are ours."""
    for library in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(library).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
