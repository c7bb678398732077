"""A run from its first epoch to its scores: trains, lets dev choose, scores dev and test once each.

One experiment, run once: finds what is finished, goes on with what was cut off, and says what failed.
"""

from __future__ import annotations

import glob
import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from hydra.utils import instantiate
from lightning.pytorch import Callback, Trainer, seed_everything
from omegaconf import DictConfig, OmegaConf
from safetensors.torch import save

from ner_experiments.build import (
    build,
    checksum,
    digest,
    first_step,
    prepare,
    read_weights,
    sources,
    what_is_read,
)
from ner_experiments.config.identity import identity, run_folder, tags
from ner_experiments.config.processes import is_first_process
from ner_experiments.data.corpus import audit
from ner_experiments.data.datamodule import CorpusModule
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus
from ner_experiments.loggers.base import Logger, RunInfo, csv
from ner_experiments.loggers.epoch import LogEpochs
from ner_experiments.loggers.final import log_final
from ner_experiments.runs import artifacts, progress
from ner_experiments.runs.artifacts import CONFIG, ENCODER, METRICS, WEIGHTS
from ner_experiments.runs.predictions import seqeval_f1, write_predictions
from ner_experiments.runs.provenance import commit, machine, peak_memory, reset_peak_memory
from ner_experiments.tagger import Tagger, count_parameters, describe
from ner_experiments.training.callbacks import EpochLog, FiniteLoss, Peek, Predictions, StepSeeds
from ner_experiments.training.checkpoints import STEPS, BestWeights, LastCheckpoint, Patience, resumable
from ner_experiments.training.gradients import Gradients
from ner_experiments.training.preemption import Sigterm, noted
from ner_experiments.training.progress import Progress
from ner_experiments.training.trainer import make_trainer, none_left
from ner_experiments.utils.files import clear, replacing, write_json
from ner_experiments.utils.locks import claim


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
    with open_logger(cfg, folder, resumed=checkpoint is not None) as logger:
        watching = watchers(cfg, folder, epochs, logger)
        trainer, epoch, predictions = fit(cfg, folder, tagger, data, watching, sigterm, checkpoint)
        scores = {"best_epoch": epoch} | score(trainer, tagger, data, predictions, folder, sigterm)
        if trainer.is_global_zero:
            keep_tagger(folder, tagger, encoder)
        result = told(trainer, corpus, notes, scores, epochs, counts) | {"commit": made_by_commit}
        if trainer.is_global_zero:
            log_final(logger, folder, result, tagger, data)
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
    return [epochs, *gradients, LogEpochs(logger, epochs, gradients), progress]


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


def open_logger(cfg: DictConfig, folder: Path, *, resumed: bool) -> AbstractContextManager[Logger]:
    """The logger that the config chooses, in the first of several processes."""
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    about = RunInfo(folder, folder.parent.name, folder.name, tags(cfg), settings, resumed)
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


log = logging.getLogger(__name__)


def train(cfg: DictConfig, *, wait: bool = True) -> dict[str, Any]:
    """Runs the experiment, or finds that it was run; returns what metrics.json holds, and its folder.

    Where another process works on the same run: waits for its result, or without `wait` returns the folder
    alone, as "busy". Ends the process with status 143 on SIGTERM, when a checkpoint is written.
    """
    first = is_first_process(cfg)
    if not first:  # it follows the first, which claims, writes and speaks
        logging.getLogger("ner_experiments").setLevel(logging.WARNING)
    start = train(first_step(cfg)) if cfg.first else None
    unread, place = run_folder(cfg, identity(cfg, checksum="")), digest(what_is_read(cfg))
    with traceback_in(unread, f"error-{place}.txt"):
        corpus, encoder = prepare(cfg)
        read = ":".join([checksum(corpus, encoder), *([start["identity"]] if start else [])])
        places = sources(cfg, corpus, encoder)
        refuse_changed(cfg, places)
    name = identity(cfg, read)
    folder = run_folder(cfg, name)
    about = {"identity": name, "checksum": read, "read": places, "seed": cfg.seed}
    if not first:
        return {
            "folder": str(folder),
            **(finished(folder) or about | follow(cfg, corpus, encoder, folder, start)),
        }
    with claim(folder, wait=wait) as ours:
        if not ours:
            return {"busy": str(folder)}
        if (done := finished(folder)) is not None:
            return {"folder": str(folder), **done}
        with traceback_in(folder), noted() as sigterm:
            begin(folder, cfg)
            result = about | run(cfg, corpus, encoder, folder, start, sigterm)
            refuse_changed(cfg, places)  # another command may have finished a run meanwhile
            result = finish(folder, result)
    sigterm.obey()
    return {"folder": str(folder), **result}


def follow(
    cfg: DictConfig, corpus: Corpus, encoder: Encoder, folder: Path, start: dict[str, Any] | None
) -> dict[str, Any]:
    """Told to end, a follower ends well: for a crash Lightning would kill the first process at once."""
    try:
        with noted() as sigterm:
            return run(cfg, corpus, encoder, folder, start, sigterm)
    except SystemExit:
        raise SystemExit(0) from None


def finished(folder: Path) -> dict[str, Any] | None:
    """The run's result. Where one of its files is damaged that is said, and there is none."""
    path = folder / METRICS
    if not path.exists():
        return None
    try:
        result = artifacts.read(path)
        artifacts.verify(folder, result)
    except artifacts.DamagedError as error:
        log.warning("%s; the run is made anew", error)
        return None
    log.info("%s is finished (by commit %s); its result is taken as it is", folder, result["commit"])
    return result


def begin(folder: Path, cfg: DictConfig) -> None:
    """What is there of a result is damaged: it is kept under another name."""
    clear(folder)
    if (folder / METRICS).exists():
        (folder / METRICS).replace(folder / f"{METRICS}.damaged")
    with replacing(folder / CONFIG) as part:
        OmegaConf.save(cfg, part, resolve=True)


def finish(folder: Path, result: dict[str, Any]) -> dict[str, Any]:
    """metrics.json last: with it a run counts, and needs its checkpoint no more."""
    whole = artifacts.add_checksum(result | {artifacts.FILES: artifacts.checksums(folder)})
    write_json(folder / METRICS, whole)
    for name in (progress.CHECKPOINT, progress.NAME):
        (folder / name).unlink(missing_ok=True)
    return whole


def refuse_changed(cfg: DictConfig, read: Mapping[str, str]) -> None:
    """ValueError if a finished run under `output_dir` found something else in the same place.

    read: of the corpus and the inputs, as `sources`.
    """
    corpus = glob.escape(cfg.data.name)
    for path in sorted(Path(cfg.output_dir).glob(f"{corpus}-*/seed-*/{METRICS}")):
        try:
            theirs = artifacts.read(path).get("read", {})
        except artifacts.DamagedError:
            continue
        for place, found in theirs.items():
            if read.get(place, found) != found:
                raise ValueError(
                    f"{cfg.data.name}: files have changed between two runs: their checksum is {read[place]}, "
                    f"and was {found} for {path.parent}; put back what it read, or take another output_dir"
                )


@contextmanager
def traceback_in(folder: Path, name: str = "error.txt") -> Iterator[None]:
    """A failure leaves its traceback in the folder; success takes an older one away."""
    path = folder / name
    try:
        yield
    except Exception as error:
        with suppress(OSError):  # a full disk, say, which the error then tells
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(path) as part:
                part.write_text(traceback.format_exc(), encoding="utf-8")
            error.add_note(f"(traceback: {path})")
        raise
    path.unlink(missing_ok=True)
