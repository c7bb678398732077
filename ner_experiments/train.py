"""One experiment: find or resume its run, train, let dev choose the epoch, score test once, write metrics.json."""

from __future__ import annotations

import glob
import json
import logging
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, partial
from math import ceil
from pathlib import Path
from typing import Any, TypeGuard

import torch
from hydra.utils import instantiate
from lightning.pytorch import Callback, Trainer, seed_everything
from omegaconf import DictConfig, OmegaConf
from safetensors.torch import save

from ner_experiments.build import assemble, check_penalty, encoder_class, read_weights
from ner_experiments.config.identity import identity, run_folder, run_name, tags
from ner_experiments.config.processes import check_program, is_first_process, num_processes, processes_note
from ner_experiments.config.values import check_experiment
from ner_experiments.data.about import about_data
from ner_experiments.data.datamodule import CorpusModule, refuse_few_sentences
from ner_experiments.data.encoder import Encoder
from ner_experiments.data.sentence import Corpus, Task
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
from ner_experiments.loggers.base import Logger, NullLogger, RunInfo, csv
from ner_experiments.loggers.epoch import LogEpochs
from ner_experiments.metrics import SpanF1, TagAccuracy
from ner_experiments.runs import artifacts, progress
from ner_experiments.runs.artifacts import CODE, CONFIG, ENCODER, METRICS_FILE, WEIGHTS
from ner_experiments.runs.code import Code, code_of, digest
from ner_experiments.runs.provenance import commit, machine, peak_memory, reset_peak_memory
from ner_experiments.runs.run import by_other_code
from ner_experiments.runs.status import interrupted_by_other_code
from ner_experiments.tagger import Tagger, count_parameters, describe
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
from ner_experiments.training.module import LightningTagger
from ner_experiments.training.preemption import Sigterm, sigterm_handler
from ner_experiments.training.progress import Progress
from ner_experiments.training.scoring import score, score_extra_tests, unscored
from ner_experiments.training.trainer import killing_stragglers, make_trainer
from ner_experiments.utils.files import atomic_write, remove_partial_files, write_json
from ner_experiments.utils.locks import hold_lock
from ner_experiments.utils.machine import keep_freed_memory
from ner_experiments.utils.text import read_json_object

log = logging.getLogger(__name__)

FEW_UPDATES = 1000
"""Number of updates of the weights below which a run whose last epoch is its best is said to be short."""

TRAINING = threading.RLock()
"""Held by the thread that trains: PyTorch's random numbers, which make a run reproducible, are those of the process."""

METRICS: dict[str, type[SpanF1] | type[TagAccuracy]] = {"mentions": SpanF1, "tags": TagAccuracy}


def train(cfg: DictConfig, *, wait: bool = True) -> dict[str, Any]:
    """Run the experiment unless its run is finished; return the content of metrics.json, with the run's `folder`.

    If another process works on the same run, wait for its result; without `wait`, return only its folder, as `busy`.
    The threads of one process train one after another, also without `wait`. On SIGTERM the process exits with status
    143 once a checkpoint is written. ValueError as `values.check_experiment`, `processes.check_program`,
    `build.build_encoder`, `build.check_penalty` and `read_experiment`.
    """
    check_experiment(cfg)
    is_first = is_first_process(cfg)
    if not is_first:  # the first process locks the folder, writes the files and logs
        logging.getLogger("ner_experiments").setLevel(logging.WARNING)
    elif note := processes_note(cfg):
        log.info("%s", note)
    # both refuse before anything is read or written
    encoder_class(cfg)
    check_penalty(cfg)
    start = train(init_config(cfg), wait=wait) if cfg.init_from else None
    if start is not None and "busy" in start:
        return start
    corpus, encoder, about = read_experiment(cfg, start)
    extra = read_extra_tests(cfg, encoder)
    code = code_of(cfg)
    about["code"] = digest(code)
    folder = run_folder(cfg, run_name(about["identity"], about["code"]))
    reused = None if folder.exists() else result_by_other_code(cfg, about["identity"], corpus, extra)
    if reused is not None:
        return reused
    if not is_first:
        finished = finished_result(folder)
        if not is_complete(finished, cfg, corpus, extra):
            finished = about | run_as_follower(cfg, corpus, encoder, extra, folder, start, finished)
        return {"folder": str(folder), **finished}
    finished = finished_result(folder)
    if is_complete(finished, cfg, corpus, extra):  # needs no lock: the disk may be read-only
        log_finished(cfg, corpus, encoder, folder, finished)
        return {"folder": str(folder), **finished}
    check_program(cfg)
    with TRAINING, hold_lock(folder, wait=wait) as ours:
        if not ours:
            return {"busy": str(folder)}
        finished = finished_result(folder)
        if is_complete(finished, cfg, corpus, extra):
            log_finished(cfg, corpus, encoder, folder, finished)
            return {"folder": str(folder), **finished}

        def finish(result: dict[str, Any]) -> dict[str, Any]:
            """Write metrics.json, unless another command has meanwhile finished a run on other data."""
            refuse_changed_data(cfg, about["read"])
            return write_metrics(folder, about | result)

        with sigterm_handler() as sigterm, saved_traceback(folder / "error.txt"):
            if finished is None:
                prepare_folder(folder, cfg, code)
                result = run(cfg, corpus, encoder, extra, folder, start, sigterm, finish)
            else:
                result = finish(score_tests(cfg, corpus, encoder, extra, folder, finished, sigterm))
                log_finished(cfg, corpus, encoder, folder, result, resumed=True)
    return {"folder": str(folder), **result}


def read_experiment(cfg: DictConfig, start: dict[str, Any] | None) -> tuple[Corpus, Encoder, dict[str, Any]]:
    """Read the corpus and fit the encoder; return both, and the entries of metrics.json that follow from the data.

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
    name = identity(cfg, checksum)
    return corpus, encoder, {"identity": name, "checksum": checksum, "read": sources, "seed": cfg.seed}


def run(
    cfg: DictConfig,
    corpus: Corpus,
    encoder: Encoder,
    extra: Mapping[str, Corpus],
    folder: Path,
    start: dict[str, Any] | None,
    sigterm: Sigterm,
    finish: Callable[[dict[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """Train, resuming from the folder's checkpoint if there is one; return the content of metrics.json.

    Writes all files of the run but config.yaml. `start` is the result of the run whose weights this one starts from.
    `finish` writes metrics.json in the first process, as soon as test is scored: until then no test score is shown,
    logged or read by any command, and a process that is killed later does not score test again. On SIGTERM the process
    exits with status 143 once a checkpoint is written.
    """
    reset_peak_memory()
    # the checkout may have changed by the time the run is finished
    started = Start(commit=commit(), claims=[*cfg.sweep.claims], registration=cfg.sweep.registration)
    data_of_run = about_data(corpus, source(cfg), [*corpus.notes, *encoder.notes()])
    tagger = seeded_tagger(cfg, encoder)
    if start is not None:
        init_from(cfg, Path(start["folder"]), tagger, encoder)
    counts = count_parameters(tagger)
    log.info("%s: %s", folder, describe(counts))
    data = corpus_module(cfg, corpus, encoder)
    epochs = EpochLog(folder)
    checkpoint = resumable_checkpoint(folder)
    if checkpoint is None and is_first_process(cfg):
        for name in (artifacts.TEST_LOG, artifacts.GRADIENTS):  # of a part that is trained again
            (folder / name).unlink(missing_ok=True)
    with open_logger(cfg, folder, resumed=checkpoint is not None, finished=False) as logger:
        monitoring = [started, *monitoring_callbacks(cfg, folder, epochs, logger)]
        trainer, best_epoch, predictions = fit(cfg, folder, tagger, data, monitoring, sigterm, checkpoint)
        splits = ("dev", "test") if cfg.audit.test else ("dev",)
        dev_scores = [float(row[f"dev_{tagger.metric.primary_metric}"]) for row in epochs.rows]
        updates, decays = trainer.global_step, bool(cfg.schedule)
        hint = hint_of_few_updates(cfg.batches, best_epoch, dev_scores, updates, decays=decays)
        if hint and not cfg.trainer.train_batches:  # a smoke run is short on purpose
            log.info("%s: %s", folder, hint)
        scores: dict[str, Any] = {"best_epoch": best_epoch}
        scores |= score(trainer, tagger, data, predictions, folder, sigterm, splits)
        modules = {name: corpus_module(cfg, test, encoder) for name, test in extra.items()}
        if found := score_extra_tests(trainer, tagger, modules, predictions, folder, sigterm):
            scores["extra_tests"] = found
        result = run_summary(trainer, data_of_run, corpus.task, scores, epochs, counts) | started.recorded
        if trainer.is_global_zero:
            write_tagger(folder, tagger, encoder)
            result = finish(result)
        if trainer.is_global_zero and not isinstance(logger, NullLogger):
            from ner_experiments.loggers.final import log_final  # slow to import: SciPy

            log_final(logger, folder, result, tagger, data)
    return result


def is_complete(
    finished: dict[str, Any] | None, cfg: DictConfig, corpus: Corpus, extra: Mapping[str, Corpus]
) -> TypeGuard[dict[str, Any]]:
    """Whether a run is finished and has all the test scores that the config asks for and the corpus has a set for."""
    return finished is not None and not unscored(finished, corpus, extra, test=cfg.audit.test)


def score_tests(
    cfg: DictConfig,
    corpus: Corpus,
    encoder: Encoder,
    extra: Mapping[str, Corpus],
    folder: Path,
    finished: dict[str, Any],
    sigterm: Sigterm,
) -> dict[str, Any]:
    """Score what is `unscored` with the weights that a finished run selected on dev; return its results."""
    names = unscored(finished, corpus, extra, test=cfg.audit.test)
    log.info("%s: scoring %s, which was left out in training", folder, ", ".join(names))
    tagger = seeded_tagger(cfg, encoder)
    tagger.load_state_dict(read_weights(folder))
    predictions = Predictions(encoder)
    trainer = make_trainer(cfg, folder, [predictions])
    scores: dict[str, Any] = {}
    if "test" in names:
        data = corpus_module(cfg, corpus, encoder)
        scores |= score(trainer, tagger, data, predictions, folder, sigterm, ("test",))
    modules = {name: corpus_module(cfg, test, encoder) for name, test in extra.items() if name in names}
    if found := score_extra_tests(trainer, tagger, modules, predictions, folder, sigterm):
        scores["extra_tests"] = finished.get("extra_tests", {}) | found
    return {name: value for name, value in finished.items() if name != artifacts.CHECKSUM} | scores


def run_as_follower(
    cfg: DictConfig,
    corpus: Corpus,
    encoder: Encoder,
    extra: Mapping[str, Corpus],
    folder: Path,
    start: dict[str, Any] | None,
    finished: dict[str, Any] | None,
) -> dict[str, Any]:
    """`run` in a process other than the first, or `score_tests` if the run is `finished`.

    On SIGTERM the process exits with status 0; otherwise Lightning would kill the first process before it can write
    a checkpoint.
    """
    try:
        with sigterm_handler() as sigterm:
            if finished is not None:
                return score_tests(cfg, corpus, encoder, extra, folder, finished, sigterm)
            return run(cfg, corpus, encoder, extra, folder, start, sigterm, finish=dict)
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
) -> tuple[Trainer, int, Predictions]:
    """Train, then load the weights of the epoch with the best dev score.

    Returns the trainer, the 1-based number of that epoch, and the callback that holds the predicted tags. The
    `monitoring` callbacks are called in their order, before the best weights are updated.
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
    with killing_stragglers(trainer):
        trainer.fit(tagger, datamodule=data, ckpt_path=checkpoint)
    sigterm.exit_if_requested()
    tagger.load_state_dict(best.weights)
    return trainer, best.epoch, predictions


def hint_of_few_updates(
    batches: Mapping[str, Any], best_epoch: int, scores: Sequence[float], updates: int, *, decays: bool
) -> str:
    """A hint for a corpus so small that training ended before it found anything or stopped improving, or "".

    scores: that of dev after each epoch. decays: whether the learning rate falls towards the last epoch, so that dev is
    expected to be best there. On 60 sentences of the toy corpus, 30 epochs are 90 updates of the weights by
    default, and dev F1 is 7.1; with 100 epochs it is 44.4, and with batches of 64 tokens 47.2. The hint names as many
    epochs as `FEW_UPDATES` updates take.
    """
    epochs = len(scores)
    if updates >= FEW_UPDATES or ((decays or best_epoch < epochs) and max(scores) > 0):
        return ""
    so_far = "dev was best at the last epoch" if max(scores) > 0 else "the score on dev is 0"
    size = next((name for name in ("tokens", "sentences") if name in batches), None)
    smaller = f", or smaller batches, such as batches.{size}={max(1, batches[size] // 8)}" if size else ""
    return (
        f"{so_far}, after only {updates:,} weight update{'s' * (updates != 1)}: set more epochs, "
        f"such as trainer.max_epochs={ceil(epochs * FEW_UPDATES / updates)}{smaller}"
    )


def run_summary(
    trainer: Trainer,
    data: dict[str, Any],
    task: Task,
    scores: dict[str, Any],
    epochs: EpochLog,
    counts: dict[str, Any],
) -> dict[str, Any]:
    """Content of metrics.json, except for what `train` adds."""
    device = trainer.strategy.root_device
    return {
        "data": data,
        "task": task,
        **scores,
        "epochs": len(epochs.rows),
        "seconds": sum(row["seconds"] for row in epochs.rows),
        "tokens_per_second": epochs.tokens_per_second,
        **counts,
        "processes": trainer.world_size,
        "peak_memory_bytes": peak_memory(device),
        **machine(device),
    }


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


def init_from(cfg: DictConfig, folder: Path, tagger: Tagger, encoder: Encoder) -> None:
    """Load the weights of the first run, which is finished. If the runs' word inputs differ, the second keeps its own.

    Raises ValueError if labels or another input were fitted on other data, and if a layer has another shape.
    """
    before, now = read_json_object(folder / ENCODER), json.loads(json.dumps(encoder.state()))
    inputs, own_inputs = before.pop("inputs"), now.pop("inputs")
    weights = read_weights(folder)
    shapes, own_shapes = (
        {name: [*weight.shape] for name, weight in each.items()} for each in (weights, tagger.state_dict())
    )
    words = [name for name in shapes | own_shapes if name.startswith("inputs.words.")]
    if (
        "input" in (cfg.init_from.get("words") or {})
        or inputs.get("words") != own_inputs.get("words")
        or any(shapes.get(name) != own_shapes.get(name) for name in words)
    ):
        for each in (weights, shapes, own_shapes):
            for name in words:
                each.pop(name, None)
        inputs.pop("words", None), own_inputs.pop("words", None)
    if other := differing_keys(before | inputs, now | own_inputs):
        raise ValueError(
            f"init_from: {', '.join(other)} of {folder} and of this run differ, as they were fitted on other data"
        )
    if other := differing_keys(shapes, own_shapes):
        name = other[0]
        raise ValueError(
            f"init_from: {name} has the shape {shapes.get(name)} in {folder}, and {own_shapes.get(name)} in this run"
        )
    tagger.load_state_dict(tagger.state_dict() | weights)


def differing_keys(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The keys that do not have the same value in both."""
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def corpus_module(cfg: DictConfig, corpus: Corpus, encoder: Encoder) -> CorpusModule:
    limit = cfg.trainer.train_batches
    return CorpusModule(corpus, encoder, instantiate(cfg.batches), seed=cfg.seed, train_batches=limit)


def open_logger(
    cfg: DictConfig, folder: Path, *, resumed: bool, finished: bool
) -> AbstractContextManager[Logger]:
    """The config's logger in the first process, a null logger in the others."""
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    sweep = settings.pop("sweep")
    group = sweep["row"] or folder.parent.name
    name = f"{group} seed={cfg.seed}"
    about = RunInfo(folder, group, name, sweep["name"], tags(cfg), settings, resumed, finished)
    return instantiate(cfg.logger)(about) if is_first_process(cfg) else csv(about)


def log_finished(
    cfg: DictConfig,
    corpus: Corpus,
    encoder: Encoder,
    folder: Path,
    result: dict[str, Any],
    *,
    resumed: bool = False,
) -> None:
    """Log a run that was finished before, from its files, unless the config's logger has it.

    resumed: whether test has been scored since, which the logger cannot have.
    """
    with open_logger(cfg, folder, resumed=resumed, finished=True) as logger:
        if isinstance(logger, NullLogger):
            return
        from ner_experiments.loggers.final import log_from_files  # slow to import: SciPy

        log.info("%s: logged from its files", folder)
        tagger = seeded_tagger(cfg, encoder)
        tagger.load_state_dict(read_weights(folder))
        log_from_files(logger, folder, result, tagger, corpus_module(cfg, corpus, encoder))


def monitoring_callbacks(cfg: DictConfig, folder: Path, epochs: EpochLog, logger: Logger) -> list[Callback]:
    """Callbacks that observe training without changing it."""
    progress = Progress(folder, epochs, patience=cfg.trainer.patience, show=cfg.runtime.progress)
    gradients = [Gradients(folder, cfg.audit.gradients)] if cfg.audit.gradients else []
    return [epochs, *gradients, LogEpochs(logger, epochs, gradients), progress]


def write_tagger(folder: Path, tagger: Tagger, encoder: Encoder) -> None:
    """Write the weights, and the state of the fitted inputs."""
    with atomic_write(folder / WEIGHTS) as part:
        part.write_bytes(save(tagger.state_dict()))
    write_json(folder / ENCODER, encoder.state())


# The run's folder


def finished_result(folder: Path) -> dict[str, Any] | None:
    """Content of metrics.json; None if the run is not finished or, with a warning, if one of its files is damaged."""
    path = folder / METRICS_FILE
    if not path.exists():
        return None
    try:
        result = artifacts.read_metrics(path)
        artifacts.verify(folder, result)
    except artifacts.DamagedError as error:
        log.warning("%s; the run is repeated", error)
        return None
    log.info("%s is finished (by commit %s); its result is reused", folder, result["commit"])
    return result


def result_by_other_code(
    cfg: DictConfig, identity: str, corpus: Corpus, extra: Mapping[str, Corpus]
) -> dict[str, Any] | None:
    """The result of a finished run whose code has changed since, if runtime.reuse=any; else None.

    Says which finished and interrupted runs are not taken, and what has changed.
    """
    beside = "in a folder beside it"
    if (other := by_other_code(cfg, identity)) is not None:
        if cfg.runtime.reuse == "any" and is_complete(dict(other.metrics), cfg, corpus, extra):
            rule = "reused, as runtime.reuse=any, and not logged again"
            log.info("%s is finished, but %s; %s", other.folder, other.outdated, rule)
            return {"folder": str(other.folder), **other.metrics}
        rule = f"trained again {beside} (runtime.reuse=any reuses it)"
        log.info("%s is finished, but %s; %s", other.folder, other.outdated, rule)
    for folder, reason in interrupted_by_other_code(cfg):
        log.info("%s was interrupted, and %s; it starts over %s", folder, reason, beside)
    return None


def prepare_folder(folder: Path, cfg: DictConfig, code: Code) -> None:
    """Remove partial files, set a damaged metrics.json aside, and write config.yaml and code.json."""
    remove_partial_files(folder)
    if (folder / METRICS_FILE).exists():
        (folder / METRICS_FILE).replace(folder / f"{METRICS_FILE}.damaged")
    with atomic_write(folder / CONFIG) as part:
        OmegaConf.save(cfg, part, resolve=True)
    write_json(folder / CODE, dict(code))


def write_metrics(folder: Path, result: dict[str, Any]) -> dict[str, Any]:
    """Write metrics.json with the checksums of all files, delete the checkpoint, and return the content.

    From then on the run counts as finished.
    """
    whole = artifacts.add_checksum(result | {artifacts.FILES: artifacts.checksums(folder)})
    write_json(folder / METRICS_FILE, whole)
    for name in (progress.CHECKPOINT, progress.PROGRESS_FILE):
        (folder / name).unlink(missing_ok=True)
    return whole


def refuse_train_without_mentions(corpus: Corpus) -> None:
    """Raise ValueError for a corpus annotated with mentions that has none in train: nothing can be learned from it."""
    train = corpus.splits["train"]
    if corpus.task == "mentions" and all(tag == "O" for sentence in train for tag in sentence.tags):
        raise ValueError(
            f"{corpus.name}: train has no mentions (sentences: {len(train):,}); `ner-experiments data check` shows how "
            "its files are read"
        )


def refuse_changed_data(cfg: DictConfig, sources: Mapping[str, str]) -> None:
    """Raise ValueError if a finished run under `output_dir` read other content from the same place.

    `sources` are the checksums of `checksums_by_source`.
    """
    corpus = glob.escape(cfg.data.name)
    for path in sorted(Path(cfg.output_dir).glob(f"{corpus}-*/seed-*/{METRICS_FILE}")):
        earlier = sources_of(path, path.stat().st_mtime_ns)
        for place, checksum in earlier.items():
            if sources.get(place, checksum) != checksum:
                raise ValueError(
                    f"{cfg.data.name}: files have changed between two runs: their checksum is {sources[place]}, "
                    f"and was {checksum} for {path.parent}; restore those files, or choose another output_dir"
                )


@cache  # a sweep asks for all runs before and after each of its own
def sources_of(path: Path, changed: int) -> Mapping[str, str]:
    """Checksums of what a finished run read, as `checksums_by_source`; if metrics.json is damaged, none and a warning.

    changed: its modification time; a new one invalidates the cache.
    """
    try:
        sources: Mapping[str, str] = artifacts.read_metrics(path).get("read", {})
        return sources
    except artifacts.DamagedError as error:
        log.warning("%s; this run is left out", error)
        return {}


@contextmanager
def saved_traceback(path: Path) -> Iterator[None]:
    """Write the traceback of an exception in the block to a file; after a success remove the file."""
    try:
        yield
    except Exception as error:
        with suppress(OSError):  # such as a full disk, which the exception then reports
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as part:
                part.write_text(traceback.format_exc(), encoding="utf-8")
            error.add_note(f"(traceback: {path})")
        raise
    if path.exists():  # on a read-only disk removing a file that does not exist fails
        path.unlink()
