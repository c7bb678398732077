"""The only place where config becomes objects: `train` runs an experiment into a folder, `load` reads it."""

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
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import Logger
from omegaconf import DictConfig, OmegaConf
from safetensors.torch import load_file, save_file

from ner_experiments.callbacks import EpochLog, Predictions
from ner_experiments.data.corpus import load as load_corpus
from ner_experiments.data.datamodule import CorpusModule
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus
from ner_experiments.data.tags import allowed_transitions
from ner_experiments.identity import identity, run_folder
from ner_experiments.metrics import SpanF1, TagAccuracy
from ner_experiments.results import (
    count_parameters,
    describe,
    machine,
    peak_memory,
    reset_peak_memory,
    write_json,
    write_predictions,
)
from ner_experiments.tagger import Tagger

log = logging.getLogger(__name__)

DENSE = ("words", "chars", "features")
METRICS: dict[str, type[SpanF1] | type[TagAccuracy]] = {"mentions": SpanF1, "tags": TagAccuracy}
TRUSTED = ("ner_experiments.", "torch.")
"""All that the config of a run may name when the run is loaded."""
GET_CLASS = "hydra.utils.get_class"


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
    """A step then costs what its features cost, not what all features do; the result is the same."""
    plain_sgd = cfg.optimizer._target_ == "torch.optim.SGD" and not cfg.optimizer.weight_decay
    return plain_sgd and not cfg.trainer.gradient_clip and cfg.runtime.devices == 1


def train(cfg: DictConfig) -> dict[str, Any]:
    """Runs the experiment, or finds that it was run; returns what metrics.json holds, and its folder."""
    with traceback_in(run_folder(cfg, identity(cfg, checksum=""))):
        corpus = load_corpus(instantiate(cfg.data))
        encoder = make_encoder(cfg)
        encoder.fit(corpus)
        name = identity(cfg, ":".join([corpus.checksum, *encoder.checksums()]))
    folder = run_folder(cfg, name)
    finished = folder / "metrics.json"
    if finished.exists():
        log.info("%s is finished; its result is taken as it is", folder)
        return {"folder": str(folder), **json.loads(finished.read_text(encoding="utf-8"))}
    with traceback_in(folder):
        folder.mkdir(parents=True, exist_ok=True)
        OmegaConf.save(cfg, folder / "config.yaml", resolve=True)
        result = {"identity": name, "seed": cfg.seed, **run(cfg, corpus, encoder, folder)}
    write_json(finished, result)
    return {"folder": str(folder), **result}


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


def run(cfg: DictConfig, corpus: Corpus, encoder: Encoder, folder: Path) -> dict[str, Any]:
    """Trains, scores dev and test with the epoch that dev chose, and writes all but metrics.json."""
    reset_peak_memory()
    torch.set_num_threads(cfg.runtime.threads)
    notes = [*corpus.notes, *encoder.notes()]
    for note in notes:
        log.info("%s", note)
    seed_everything(cfg.seed, verbose=False)
    tagger = build(cfg, encoder)
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
        "best_epoch": epochs.best_epoch(tagger.metric.headline),
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
    best = ModelCheckpoint(folder, "best", monitor=dev_score, mode="max", save_weights_only=True)
    patience = EarlyStopping(dev_score, mode="max", patience=cfg.trainer.patience)
    predictions = Predictions()
    trainer = make_trainer(cfg, folder, [epochs, best, patience, predictions], logger)
    trainer.fit(tagger, datamodule=data)
    tagger.load_state_dict(torch.load(best.best_model_path, weights_only=True)["state_dict"])
    scores = {}
    for split, score in (("dev", trainer.validate), ("test", trainer.test)):
        if split not in data.corpus.splits:
            continue
        score(tagger, datamodule=data, verbose=False)
        scores[split] = tagger.report
        tags = [[data.encoder.labels[tag] for tag in ids] for _, ids in sorted(predictions.tags.items())]
        path = folder / "predictions" / f"{split}.conll"
        write_predictions(path, data.corpus.task, data.corpus.splits[split], tags)
    if logger is not None:
        name = tagger.metric.headline
        logger.log_metrics({f"best/{split}_{name}": score[name] for split, score in scores.items()})
    save_file(tagger.state_dict(), folder / "model.safetensors")
    write_json(folder / "encoder.json", data.encoder.state())
    Path(best.best_model_path).unlink()
    return trainer, scores


def make_trainer(cfg: DictConfig, folder: Path, callbacks: list[Callback], logger: Logger | None) -> Trainer:
    """A trainer that says nothing itself: progress and results are ours to print."""
    quiet()
    settings = cfg.trainer
    return Trainer(
        accelerator=cfg.runtime.accelerator,
        devices=cfg.runtime.devices,
        precision=settings.precision,
        max_epochs=settings.max_epochs,
        limit_train_batches=settings.train_batches,
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


def load(folder: Path) -> tuple[Tagger, Encoder]:
    """The trained tagger of a run's folder, ready to decode. Executes nothing that lies in the folder."""
    cfg = OmegaConf.load(folder / "config.yaml")
    assert isinstance(cfg, DictConfig)
    refuse_untrusted(cfg, folder / "config.yaml")
    encoder = make_encoder(cfg)
    encoder.restore(json.loads((folder / "encoder.json").read_text(encoding="utf-8")))
    tagger = build(cfg, encoder)
    tagger.load_state_dict(load_file(folder / "model.safetensors"))
    return tagger.eval(), encoder


def refuse_untrusted(node: Any, path: Path) -> None:
    """ValueError if a config names anything to be called that is not of this package or of torch."""
    if not isinstance(node, DictConfig):
        return
    target = node.get("_target_", TRUSTED[0])
    named = node.path if target == GET_CLASS else target
    if not named.startswith(TRUSTED):
        raise ValueError(f"{path}: what is called must be of {' or '.join(TRUSTED)}, got {named!r}")
    for child in node.values():
        refuse_untrusted(child, path)
