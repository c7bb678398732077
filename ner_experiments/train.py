"""One experiment: find or resume its run, train, let dev choose the epoch, score test once, write metrics.json."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, TypeGuard

import torch
from hydra.utils import instantiate
from lightning.pytorch import Callback, Trainer, seed_everything
from omegaconf import DictConfig, OmegaConf

from ner_experiments.build import assemble, check_parts, read_weights, write_tagger
from ner_experiments.config.identity import identity, run_folder, run_name, tags
from ner_experiments.config.processes import check_program, is_first_process, num_processes, processes_note
from ner_experiments.config.values import check_experiment
from ner_experiments.data.about import about_data
from ner_experiments.data.datamodule import CorpusModule, refuse_few_sentences, refuse_train_without_mentions
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.indexed_text import ROUNDED
from ner_experiments.data.sentence import PRIMARY_METRIC, Corpus
from ner_experiments.experiment_data import (
    checksums_by_source,
    fingerprint,
    init_config,
    read_data,
    read_extra_tests,
    source,
    unread_error,
    with_start,
)
from ner_experiments.loggers.base import NOTHING, Logger, RunInfo, csv
from ner_experiments.loggers.epoch import LogEpochs
from ner_experiments.metrics import METRICS
from ner_experiments.runs import artifacts
from ner_experiments.runs.code import Code, code_of, digest
from ner_experiments.runs.folder import (
    finished_result,
    prepare_folder,
    refuse_changed_data,
    saved_traceback,
    write_metrics,
)
from ner_experiments.runs.progress import row_and_seed
from ner_experiments.runs.provenance import commit, machine, peak_memory, reset_peak_memory
from ner_experiments.runs.store import by_other_code, interrupted_by_other_code
from ner_experiments.tagger import count_parameters, describe
from ner_experiments.training import graphs
from ner_experiments.training.callbacks import (
    EpochLog,
    FiniteLoss,
    LearningRate,
    Predictions,
    StepSeeds,
    TestEveryEpoch,
)
from ner_experiments.training.checkpoints import (
    STEPS,
    BestWeights,
    LastCheckpoint,
    Start,
    resumable_checkpoint,
)
from ner_experiments.training.early_stopping import DelayedEarlyStopping
from ner_experiments.training.gradients import Gradients
from ner_experiments.training.initial_weights import load_first_run
from ner_experiments.training.module import LightningTagger
from ner_experiments.training.preemption import Sigterm, sigterm_handler
from ner_experiments.training.progress import Progress, hint_of_few_updates
from ner_experiments.training.scoring import Scorer, unscored
from ner_experiments.training.trainer import killing_stragglers, make_trainer
from ner_experiments.utils.locks import hold_lock
from ner_experiments.utils.machine import keep_freed_memory

log = logging.getLogger(__name__)

TRAINING = threading.RLock()
"""Held by the thread that trains: PyTorch's random numbers, which make a run reproducible, are those of the process."""


@dataclass(frozen=True)
class Experiment:
    """An experiment whose data have been read: what its run is made from, and the folder of the run.

    extra: further test sets by name. start: folder of the finished run from whose weights it starts. about: the entries
    of metrics.json that are known before training.
    """

    cfg: DictConfig
    corpus: Corpus
    encoder: Encoder
    extra: Mapping[str, Corpus]
    start: Path | None
    code: Code
    about: Mapping[str, Any]
    folder: Path

    def is_complete(self, finished: Mapping[str, Any] | None) -> TypeGuard[dict[str, Any]]:
        """Whether the run is finished and has all test scores that the config asks for and the corpus has a set for."""
        return finished is not None and not self.unscored(finished)

    def unscored(self, finished: Mapping[str, Any]) -> list[str]:
        """The test sets on which the finished run is still to be scored, as `scoring.unscored`."""
        return unscored(finished, self.corpus, self.extra, test=self.cfg.audit.test)

    def data(self) -> CorpusModule:
        return corpus_module(self.cfg, self.corpus, self.encoder)

    def extra_data(self, names: Collection[str]) -> dict[str, CorpusModule]:
        """The further test sets of these names."""
        sets = {name: test for name, test in self.extra.items() if name in names}
        return {name: corpus_module(self.cfg, test, self.encoder) for name, test in sets.items()}

    def result(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """The result of `train` for a finished run, given the content of its metrics.json."""
        return {"folder": str(self.folder), **metrics}

    def finish(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Write metrics.json, unless another command has meanwhile finished a run on other data; return its content."""
        refuse_changed_data(self.cfg, self.about["read"])
        return write_metrics(self.folder, {**self.about, **metrics})


def train(cfg: DictConfig, *, wait: bool = True) -> dict[str, Any]:
    """Run the experiment unless its run is finished; return the content of metrics.json, with the run's `folder`.

    That of a short run has a `hint`, as `hint_of_few_updates`.
    If another process works on the same run, wait for its result; without `wait`, return only its folder, as `busy`.
    The threads of one process train one after another, also without `wait`. On SIGTERM the process exits with status
    143 once a checkpoint is written. ValueError as `values.check_experiment`, `build.check_parts`,
    `processes.check_program`, `build.build_encoder` and `read_experiment`.
    """
    check_experiment(cfg)
    is_first = is_first_process(cfg)
    if not is_first:  # the first process locks the folder, writes the files and logs
        logging.getLogger("ner_experiments").setLevel(logging.WARNING)
    elif note := processes_note(cfg):
        log.info("%s", note)
    check_parts(cfg)  # refuses before anything is read or written
    start = train(init_config(cfg), wait=wait) if cfg.init_from else None
    if start is not None and "busy" in start:
        return start
    experiment = read_experiment(cfg, start)
    folder = experiment.folder
    if not folder.exists() and (reused := result_by_other_code(experiment)) is not None:
        return reused
    finished = finished_result(folder)
    if experiment.is_complete(finished):  # needs no lock: the disk may be read-only
        if is_first:
            log_finished(experiment, finished)
        return experiment.result(finished)
    if not is_first:
        return experiment.result({**experiment.about, **run_as_follower(experiment, finished)})
    check_program(cfg)
    with TRAINING, hold_lock(folder, wait=wait) as ours:
        if not ours:
            return {"busy": str(folder)}
        finished = finished_result(folder)
        if experiment.is_complete(finished):  # by another process, while this one waited
            log_finished(experiment, finished)
            return experiment.result(finished)
        # several processes end together, at a step
        at_once = finished is None and num_processes(cfg) == 1
        with sigterm_handler(at_once=at_once) as sigterm, saved_traceback(folder / "error.txt"):
            if finished is None:
                prepare_folder(folder, OmegaConf.to_yaml(cfg, resolve=True), experiment.code)
                metrics = run(experiment, sigterm)
            else:
                metrics = experiment.finish(score_tests(experiment, finished, sigterm))
                log_finished(experiment, metrics, resumed=True)
    return experiment.result(metrics)


def read_experiment(cfg: DictConfig, start: Mapping[str, Any] | None) -> Experiment:
    """Read the corpus and fit the encoder. start: the result of the run whose weights this one starts from.

    Raises ValueError for malformed files, and if a finished run read other data from the same place.
    """
    with saved_traceback(unread_error(cfg)):
        corpus, encoder = read_data(cfg)
        refuse_train_without_mentions(corpus)
        refuse_few_sentences(corpus, num_processes(cfg))
        checksum = fingerprint(corpus, encoder)
        if start is not None:
            checksum = with_start(checksum, start["identity"])
        sources = checksums_by_source(cfg, corpus, encoder)
    refuse_changed_data(cfg, sources)
    extra = read_extra_tests(cfg, encoder)
    code = code_of(cfg)
    about = {"identity": identity(cfg, checksum), "checksum": checksum, "read": sources, "seed": cfg.seed}
    about["code"] = digest(code)
    folder = run_folder(cfg, run_name(about["identity"], about["code"]))
    first = None if start is None else Path(start["folder"])
    return Experiment(cfg, corpus, encoder, extra, first, code, about, folder)


def result_by_other_code(experiment: Experiment) -> dict[str, Any] | None:
    """The result of a finished run whose code has changed since, if runtime.reuse=any; else None.

    Says which finished and interrupted runs are not taken, and what has changed.
    """
    cfg, beside = experiment.cfg, "in a folder beside it"
    if (other := by_other_code(cfg, experiment.about["identity"])) is not None:
        if cfg.runtime.reuse == "any" and experiment.is_complete(other.metrics):
            rule = "reused, as runtime.reuse=any, and not logged again"
            log.info("%s is finished, but %s; %s", other.folder, other.outdated, rule)
            return {"folder": str(other.folder), **other.metrics}
        rule = f"trained again {beside} (runtime.reuse=any reuses it)"
        log.info("%s is finished, but %s; %s", other.folder, other.outdated, rule)
    for folder, reason in interrupted_by_other_code(cfg):
        log.info("%s was interrupted, and %s; it starts over %s", folder, reason, beside)
    return None


def run(experiment: Experiment, sigterm: Sigterm) -> dict[str, Any]:
    """Train, resuming from the folder's checkpoint if there is one; return the content of metrics.json.

    Writes all files of the run but config.yaml and code.json. The first process writes metrics.json as soon as test is
    scored: until then no test score is shown, logged or read by any command, and a process that is killed later does
    not score test again. On SIGTERM the process exits with status 143 once a checkpoint is written.
    """
    cfg, folder, encoder = experiment.cfg, experiment.folder, experiment.encoder
    reset_peak_memory()
    # the checkout may have changed by the time the run is finished
    started = Start(commit=commit(), claims=[*cfg.sweep.claims], registration=cfg.sweep.registration)
    notes = [*experiment.corpus.notes, *encoder.notes()]
    data_of_run = about_data(experiment.corpus, source(cfg), notes)
    tagger = seeded_tagger(cfg, encoder)
    if experiment.start is not None:
        own_words = "input" in (cfg.init_from.get("words") or {})
        load_first_run(experiment.start, tagger, encoder, own_words=own_words)
    counts = count_parameters(tagger)
    row = cfg.sweep.row or folder  # equal for all seeds of a row: a sweep shows equal notes once
    log.info("%s: %s", row, describe(counts))
    data = experiment.data()
    epochs = EpochLog(folder)
    checkpoint = resumable_checkpoint(folder)
    if checkpoint is None and is_first_process(cfg):
        for name in (artifacts.TEST_LOG, artifacts.GRADIENTS):  # of a part that is trained again
            (folder / name).unlink(missing_ok=True)
    with open_logger(experiment, resumed=checkpoint is not None) as logger:
        monitoring = [started, *monitoring_callbacks(cfg, folder, epochs, logger)]
        scorer, best_epoch = fit(cfg, folder, tagger, data, monitoring, sigterm, checkpoint)
        trainer = scorer.trainer
        dev_scores = [float(row[f"dev_{tagger.metric.primary_metric}"]) for row in epochs.rows]
        updates, decays = trainer.global_step, bool(cfg.schedule)
        task, sentences = experiment.corpus.task, experiment.corpus.splits["train"]
        hint = hint_of_few_updates(
            cfg.batches,
            best_epoch,
            dev_scores,
            updates,
            decays=decays,
            score=PRIMARY_METRIC[task][1],
            sentence=fmean(len(it.words) for it in sentences),
        )
        result: dict[str, Any] = {
            "data": data_of_run,
            "task": task,
            "best_epoch": best_epoch,
        }
        if hint and not cfg.trainer.train_batches:  # a smoke run is short on purpose
            result["hint"] = hint
        result |= scorer.score(data, ("dev", "test") if cfg.audit.test else ("dev",))
        if found := scorer.score_extra_tests(experiment.extra_data(experiment.extra)):
            result["extra_tests"] = found
        result |= costs(trainer, epochs, counts) | started.recorded
        if trainer.is_global_zero:
            write_tagger(folder, tagger, encoder)
            result = experiment.finish(result)
        if trainer.is_global_zero and logger is not NOTHING:
            from ner_experiments.loggers.final import log_final  # slow to import: SciPy

            log_final(logger, folder, result, tagger, data)
    return result


def costs(trainer: Trainer, epochs: EpochLog, counts: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of metrics.json on time, size and memory, and on the machine."""
    device = trainer.strategy.root_device
    return {
        "epochs": len(epochs.rows),
        "seconds": sum(row["seconds"] for row in epochs.rows),
        "tokens_per_second": epochs.tokens_per_second,
        **counts,
        "processes": trainer.world_size,
        "peak_memory_bytes": peak_memory(device),
        **machine(device),
    }


def run_as_follower(experiment: Experiment, finished: Mapping[str, Any] | None) -> dict[str, Any]:
    """`run` in a process other than the first, or `score_tests` if the run is `finished`.

    On SIGTERM the process exits with status 0; otherwise Lightning would kill the first process before it can write
    a checkpoint.
    """
    try:
        with sigterm_handler() as sigterm:
            if finished is not None:
                return score_tests(experiment, finished, sigterm)
            return run(experiment, sigterm)
    except SystemExit:
        raise SystemExit(0) from None


def fit(
    cfg: DictConfig,
    folder: Path,
    tagger: LightningTagger,
    data: CorpusModule,
    monitoring: list[Callback],
    sigterm: Sigterm,
    checkpoint: Path | None,
) -> tuple[Scorer, int]:
    """Train, then load the weights of the epoch with the best dev score.

    Returns what scores the tagger, and the 1-based number of that epoch. The `monitoring` callbacks are called in their
    order, before the best weights are updated.
    """
    keep_freed_memory()
    dev_score = f"dev/{tagger.metric.primary_metric}"
    best = BestWeights(dev_score)
    predictions = Predictions(data.encoder, best)
    callbacks = [
        StepSeeds(cfg.seed),
        *([LearningRate(instantiate(cfg.schedule))] if cfg.schedule else []),
        FiniteLoss(steps=STEPS if torch.cuda.is_available() else 1),
        *monitoring,
        best,
        DelayedEarlyStopping(dev_score, cfg.trainer.patience),
        *([TestEveryEpoch(folder)] if cfg.audit.test_every_epoch and "test" in data.corpus.splits else []),
        predictions,
        LastCheckpoint(folder, seconds=cfg.runtime.checkpoint_seconds, sigterm=sigterm),
    ]
    trainer = make_trainer(cfg, folder, callbacks)
    if uses_graphs(cfg):
        data.multiples = ROUNDED
        record = graphs.recorder(trainer.strategy.root_device)
        tagger.graphs = graphs.Graphs(tagger.losses, tagger.trained(), record)
    with killing_stragglers(trainer):
        trainer.fit(tagger, datamodule=data, ckpt_path=checkpoint)
    sigterm.exit_if_requested()
    tagger.load_state_dict(best.weights)
    return Scorer(trainer, tagger, predictions, folder, sigterm), best.epoch


def uses_graphs(cfg: DictConfig) -> bool:
    """Whether the run is to use graphs. They hold the gradients of one process."""
    if cfg.runtime.cuda_graphs == "auto":
        on_gpu = cfg.runtime.accelerator != "cpu" and torch.cuda.is_available()
        return graphs.BY_DEFAULT and on_gpu and num_processes(cfg) == 1
    return bool(cfg.runtime.cuda_graphs)


def score_tests(experiment: Experiment, finished: Mapping[str, Any], sigterm: Sigterm) -> dict[str, Any]:
    """Score what is `unscored` with the weights that a finished run selected on dev; return its results."""
    cfg, folder, encoder = experiment.cfg, experiment.folder, experiment.encoder
    names = experiment.unscored(finished)
    log.info("%s: scoring %s, which was left out in training", folder, ", ".join(names))
    tagger = seeded_tagger(cfg, encoder)
    tagger.load_state_dict(read_weights(folder))
    predictions = Predictions(encoder)
    scorer = Scorer(make_trainer(cfg, folder, [predictions]), tagger, predictions, folder, sigterm)
    result = {name: value for name, value in finished.items() if name != artifacts.CHECKSUM}
    if "test" in names:
        result |= scorer.score(experiment.data(), ("test",))
    if found := scorer.score_extra_tests(experiment.extra_data(names)):
        result["extra_tests"] = finished.get("extra_tests", {}) | found
    return result


def log_finished(experiment: Experiment, metrics: Mapping[str, Any], *, resumed: bool = False) -> None:
    """Log a run that was finished before, from its files, unless the config's logger has it.

    resumed: whether test has been scored since, which the logger cannot have.
    """
    with open_logger(experiment, resumed=resumed, finished=True) as logger:
        if logger is NOTHING:
            return
        from ner_experiments.loggers.final import log_from_files  # slow to import: SciPy

        log.info("%s: logged from its files", experiment.folder)
        tagger = seeded_tagger(experiment.cfg, experiment.encoder)
        tagger.load_state_dict(read_weights(experiment.folder))
        log_from_files(logger, experiment.folder, metrics, tagger, experiment.data())


# The parts of a run


def seeded_tagger(cfg: DictConfig, encoder: Encoder) -> LightningTagger:
    """The tagger with its initial weights. Sets the process to the run's seed and number of threads."""
    torch.set_num_threads(cfg.runtime.threads)
    seed_everything(cfg.seed, verbose=False)
    return build_for_training(cfg, encoder)


def build_for_training(cfg: DictConfig, encoder: Encoder) -> LightningTagger:
    """The untrained tagger of the config, with the metric of its task."""
    metric = METRICS[encoder.task](encoder.labels)
    return assemble(cfg, encoder, partial(LightningTagger, metric=metric))


def corpus_module(cfg: DictConfig, corpus: Corpus, encoder: Encoder) -> CorpusModule:
    limit = cfg.trainer.train_batches
    return CorpusModule(corpus, encoder, instantiate(cfg.batches), seed=cfg.seed, train_batches=limit)


def monitoring_callbacks(cfg: DictConfig, folder: Path, epochs: EpochLog, logger: Logger) -> list[Callback]:
    """Callbacks that observe training without changing it."""
    name = row_and_seed(cfg.sweep.row, cfg.seed)
    progress = Progress(folder, epochs, name, patience=cfg.trainer.patience, show=cfg.runtime.progress)
    gradients = [Gradients(folder, cfg.audit.gradients)] if cfg.audit.gradients else []
    return [epochs, *gradients, LogEpochs(logger, epochs, gradients), progress]


def open_logger(
    experiment: Experiment, *, resumed: bool, finished: bool = False
) -> AbstractContextManager[Logger]:
    """The config's logger in the first process, a null logger in the others."""
    cfg = experiment.cfg
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    about = RunInfo.of_run(experiment.folder, config, tags(cfg), resumed=resumed, finished=finished)
    return instantiate(cfg.logger)(about) if is_first_process(cfg) else csv(about)
