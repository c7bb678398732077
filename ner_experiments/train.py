"""One experiment: trains, lets dev choose, scores, and leaves all of it in the folder of the run."""

from __future__ import annotations

import json
import logging
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from lightning.pytorch import Callback, Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import Logger
from omegaconf import DictConfig, OmegaConf
from safetensors.torch import load_file, save_file

from ner_experiments.build import build, make_encoder, readers
from ner_experiments.callbacks import EpochLog, Patience, Predictions
from ner_experiments.data.corpus import load as load_corpus
from ner_experiments.data.datamodule import CorpusModule
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus
from ner_experiments.identity import identity, run_folder
from ner_experiments.results import (
    count_parameters,
    describe,
    machine,
    peak_memory,
    reset_peak_memory,
    seqeval_f1,
    write_json,
    write_predictions,
)
from ner_experiments.tagger import Tagger

log = logging.getLogger(__name__)


def train(cfg: DictConfig) -> dict[str, Any]:
    """Runs the experiment, or finds that it was run; returns what metrics.json holds, and its folder."""
    start = train(first_step(cfg)) if cfg.first else None
    with traceback_in(run_folder(cfg, identity(cfg, checksum=""))):
        corpus, encoder = prepare(cfg)
        before = [start["identity"]] if start else []
        name = identity(cfg, ":".join([checksum(corpus, encoder), *before]))
    folder = run_folder(cfg, name)
    finished = folder / "metrics.json"
    if finished.exists():
        result = json.loads(finished.read_text(encoding="utf-8"))
        log.info("%s is finished (by commit %s); its result is taken as it is", folder, result["commit"])
        return {"folder": str(folder), **result}
    with traceback_in(folder):
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(cfg, folder / "config.yaml", resolve=True)
        result = {"identity": name, "seed": cfg.seed, **run(cfg, corpus, encoder, folder, start)}
    write_json(finished, result)
    return {"folder": str(folder), **result}


def prepare(cfg: DictConfig) -> tuple[Corpus, Encoder]:
    """What an experiment reads; ValueError or OSError for files that are missing or malformed."""
    corpus = load_corpus(instantiate(cfg.data))
    encoder = make_encoder(cfg)
    encoder.fit(corpus)
    return corpus, encoder


def checksum(corpus: Corpus, encoder: Encoder) -> str:
    """Stands for the contents of every file that was read."""
    return ":".join([corpus.checksum, *encoder.checksums()])


def identify(cfg: DictConfig, known: dict[str, str]) -> str:
    """The identity that the experiment's run has or would have: reads its files, and trains nothing.

    `known` keeps from call to call the checksums of what was read. ValueError and OSError as `prepare`.
    """
    before = [identify(first_step(cfg), known)] if cfg.first else []
    inputs = {name: OmegaConf.to_container(part.input, resolve=True) for name, part in readers(cfg).items()}
    files = json.dumps([OmegaConf.to_container(cfg.data, resolve=True), inputs])
    if files not in known:
        known[files] = checksum(*prepare(cfg))
    return identity(cfg, ":".join([known[files], *before]))


def first_step(cfg: DictConfig) -> DictConfig:
    """The run whose weights this one starts from: as this one, but for the parts that `first` holds."""
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    return OmegaConf.create(settings | settings["first"] | {"first": {}})


def start_from(folder: Path, tagger: Tagger) -> None:
    """Takes over the weights of a finished run, but for its words, which the two runs read differently."""
    words = "inputs.words."
    weights = load_file(folder / "model.safetensors")
    others = {name: weight for name, weight in weights.items() if not name.startswith(words)}
    missing, unexpected = tagger.load_state_dict(others, strict=False)
    assert not unexpected
    assert all(name.startswith(words) for name in missing)


@contextmanager
def traceback_in(folder: Path) -> Iterator[None]:
    """A failure leaves its traceback in the folder, as error.txt; success takes an older one away."""
    path = folder / "error.txt"
    try:
        yield
    except Exception as error:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(traceback.format_exc(), encoding="utf-8")
        error.add_note(f"(traceback: {path})")
        raise
    path.unlink(missing_ok=True)


def run(
    cfg: DictConfig, corpus: Corpus, encoder: Encoder, folder: Path, start: dict[str, Any] | None
) -> dict[str, Any]:
    """Trains, scores dev and test with the epoch that dev chose, and writes all but metrics.json."""
    reset_peak_memory()
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
    data = CorpusModule(corpus, encoder, instantiate(cfg.batches), seed=cfg.seed)
    epochs = EpochLog(folder, title=folder.parent.name, progress=cfg.runtime.progress)
    settings = OmegaConf.to_container(cfg, resolve=True)
    opened = instantiate(cfg.logger)(
        folder=folder, group=folder.parent.name, name=folder.name, config=settings
    )
    with opened as logger:
        trainer, scores = fit(cfg, folder, tagger, data, epochs, logger)
    device = trainer.strategy.root_device
    return {
        "data": {"name": corpus.name, "checksum": corpus.checksum, "notes": notes},
        "task": corpus.task,
        **scores,
        "epochs": len(epochs.rows),
        "seconds": sum(row["seconds"] for row in epochs.rows),
        "tokens_per_second": epochs.tokens_per_second,
        **counts,
        "peak_memory_bytes": peak_memory(device),
        **machine(device),
    }


def fit(
    cfg: DictConfig, folder: Path, tagger: Tagger, data: CorpusModule, epochs: EpochLog, logger: Logger | None
) -> tuple[Trainer, dict[str, Any]]:
    """Trains and scores; leaves the best weights, the encoder and the predictions in the folder."""
    dev_score = f"dev/{tagger.metric.headline}"
    (folder / "best.ckpt").unlink(missing_ok=True)  # of a run that was cut off
    best = ModelCheckpoint(folder, "best", monitor=dev_score, mode="max", save_weights_only=True)
    patience = Patience(dev_score, cfg.trainer.patience)
    predictions = Predictions()
    trainer = make_trainer(cfg, folder, [epochs, best, patience, predictions], logger)
    trainer.fit(tagger, datamodule=data)
    chosen = torch.load(best.best_model_path, weights_only=True)
    tagger.load_state_dict(chosen["state_dict"])
    scores: dict[str, Any] = {"best_epoch": chosen["epoch"] + 1}
    for split, score in (("dev", trainer.validate), ("test", trainer.test)):
        if split not in data.corpus.splits:
            continue
        score(tagger, datamodule=data, verbose=False)
        scores[split] = tagger.report
        tags = [[data.encoder.labels[tag] for tag in ids] for _, ids in sorted(predictions.tags.items())]
        path = folder / "predictions" / f"{split}.conll"
        write_predictions(path, data.corpus.task, data.corpus.splits[split], tags)
        if data.corpus.task == "mentions":
            again = seqeval_f1(path)
            assert abs(again - tagger.report["f1"]) < 1e-9, (
                f"{path}: {again} by seqeval, {tagger.report['f1']}"
            )
    if logger is not None:
        name = tagger.metric.headline
        measured = {
            f"best/{split}_{name}": scores[split][name] for split in ("dev", "test") if split in scores
        }
        logger.log_metrics(measured)
    save_file(tagger.state_dict(), folder / "model.safetensors")
    write_json(folder / "encoder.json", data.encoder.state())
    Path(best.best_model_path).unlink()
    return trainer, scores


def make_trainer(cfg: DictConfig, folder: Path, callbacks: list[Callback], logger: Logger | None) -> Trainer:
    """A trainer that says nothing itself: progress and results are ours to print."""
    quiet()
    settings = cfg.trainer
    for name, lowest in (("max_epochs", 1), ("patience", 1), ("gradient_clip", 0), ("train_batches", 0)):
        if settings[name] < lowest:
            raise ValueError(f"trainer.{name} must be at least {lowest}, got {settings[name]}")
    return Trainer(
        accelerator=cfg.runtime.accelerator,
        devices=1,
        precision=settings.precision,
        max_epochs=settings.max_epochs,
        limit_train_batches=settings.train_batches or 1.0,
        gradient_clip_val=settings.gradient_clip,
        logger=logger or False,
        callbacks=callbacks,
        default_root_dir=folder,
        reload_dataloaders_every_n_epochs=1,
        num_sanity_val_steps=0,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def quiet() -> None:
    """Lightning's hints are about settings that are ours."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
