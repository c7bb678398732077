"""Status of the runs of a sweep, read from the files in their folders without disturbing them."""

from __future__ import annotations

import json
import platform
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ner_experiments.config.identity import files_digest
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.runs import artifacts, progress, store
from ner_experiments.runs.artifacts import CONFIG, METRICS_FILE
from ner_experiments.runs.run import log_once
from ner_experiments.utils.checks import is_number
from ner_experiments.utils.locks import is_held

if TYPE_CHECKING:
    from omegaconf import DictConfig

RUNNING, DONE, INTERRUPTED, FAILED, WAITING = STATES = ("running", "done", "interrupted", "failed", "waiting")
NUMBERS = ("epoch", "part", "max_epochs", "dev", "best", "best_epoch", "trained")
"""Values of progress.json that are numbers."""
STARTING = "first batch"
"""Stage of a run before the end of its first batch, in which it may compile kernels for minutes, without heartbeat."""
HEARTBEAT_TIMEOUT = 6 * progress.HEARTBEAT_SECONDS
"""Seconds without a heartbeat after which a run on another machine counts as interrupted: its lock may be invisible."""


@dataclass(frozen=True)
class Status:
    """Status of one run. Scores are in [0, 1], times in seconds; unknown values are None.

    epoch: finished epochs. part: finished share of the current epoch. left: bounds of the time left. trained: time of
    the finished epochs. silent: time since the last heartbeat. best: best dev score; for a finished run, dev equals
    best. reason: why a run failed or waits.
    """

    label: str
    seed: int
    state: str
    folder: str = ""
    epoch: int | None = None
    part: float = 0.0
    max_epochs: int | None = None
    dev: float | None = None
    best: float | None = None
    best_epoch: int | None = None
    test: float | None = None
    left: Sequence[float] | None = None
    trained: float = 0.0
    silent: float | None = None
    host: str = ""
    slurm: str = ""
    reason: str = ""

    def record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class PlannedRun:
    """A run that belongs to a sweep, finished or not.

    files: digest of the settings that say what files it reads. reuse: "any" if runs of other code count.
    """

    label: str
    seed: int
    experiment: str
    files: str
    reuse: str = "unchanged"


def planned_run(label: str, cfg: DictConfig) -> PlannedRun:
    return PlannedRun(label, cfg.seed, store.experiment_key(cfg), files_digest(cfg), cfg.runtime.reuse)


def all_statuses(output: Path) -> list[Status]:
    """Status of every run under a folder.

    A run that once failed to read its data is left out if it has since read them, in a folder of their checksum, and
    so are runs of other code, with a warning.
    """
    reasons = {folder: store.outdated(folder) for folder in store.run_folders(output)}
    folders = [folder for folder, reason in reasons.items() if not reason]
    if others := [folder for folder, reason in reasons.items() if reason]:
        log_once(f"left out: {store.and_others(others)}: {reasons[others[0]]}")
    unread = {folder for folder in folders if not (folder / CONFIG).exists()}
    if unread:
        read = {store.experiment_and_seed(folder) for folder in folders if folder not in unread}
        folders = [it for it in folders if it not in unread or store.experiment_and_seed(it) not in read]
    statuses = [status_of_folder(folder, folder.parent.name) for folder in folders]
    return [status for status in statuses if status is not None]


def sweep_statuses(
    planned: Sequence[PlannedRun], output: Path, queued: Mapping[PlannedRun, str] = {}
) -> list[Status]:
    """Status of each run, in the order of the sweep. A run without a folder is waiting, or in SLURM's queue.

    The files of a run may have moved since, so their settings count only between planned runs that differ in nothing
    else.
    """
    folders: dict[tuple[str, int], list[Path]] = {}
    of_other_code: dict[tuple[str, int], str] = {}
    any_code = {run.reuse for run in planned} == {"any"}
    number = Counter((run.experiment, run.seed) for run in planned)
    for folder in store.run_folders(output):
        key = store.experiment_and_seed(folder)
        if key is None or key not in number:
            continue
        if not any_code and (changed := store.outdated(folder)):
            of_other_code[key] = f"its run is left out: {changed}"
        else:
            folders.setdefault(key, []).append(folder)

    def status_of(run: PlannedRun) -> Status:
        """A run has several folders if it failed before its data could be read, or was repeated on other data."""
        key = run.experiment, run.seed
        own = [it for it in folders.get(key, ()) if number[key] == 1 or store.reads(it, run.files)]
        own.sort(key=store.finished_at, reverse=True)  # of several finished ones, the last counts
        statuses = [status for it in own if (status := status_of_folder(it, run.label)) is not None]
        if statuses:
            return min(statuses, key=lambda status: STATES.index(status.state))
        if run in queued:
            return Status(run.label, run.seed, WAITING, slurm=queued[run], reason="in SLURM's queue")
        return Status(run.label, run.seed, WAITING, reason=of_other_code.get(key, ""))

    return [*map(status_of, planned)]


def status_of_folder(folder: Path, label: str) -> Status | None:
    """Status of the run in a folder; None if the folder has nothing but a released lock."""
    seed = store.seed_of(folder)
    held, (heartbeat, silent) = is_held(folder), last_heartbeat(folder)  # read first: a result replaces both
    if (folder / METRICS_FILE).exists():
        return finished_status(folder, label, seed)
    known: dict[str, Any] = {"label": label, "seed": seed, "folder": str(folder), "silent": silent}
    known |= {name: heartbeat.get(name) for name in ("epoch", "max_epochs", "dev", "best", "best_epoch")}
    known |= {name: heartbeat.get(name, "") for name in ("host", "slurm")}
    elsewhere = bool(heartbeat) and heartbeat.get("host") != platform.node()
    if held or (elsewhere and silent is not None and silent < HEARTBEAT_TIMEOUT):
        stage = "" if heartbeat else "reading its data"
        stage = {"starting": STARTING, "scoring": "scores"}.get(heartbeat.get("stage", ""), stage)
        part, left = heartbeat.get("part", 0.0), heartbeat.get("seconds_left")
        trained = heartbeat.get("trained", 0.0)
        return Status(state=RUNNING, part=part, left=left, trained=trained, reason=stage, **known)
    errors = sorted(folder.glob("error*.txt"), key=modified_at)
    if errors and modified_at(errors[-1]) >= modified_at(folder / progress.PROGRESS_FILE):
        return Status(state=FAILED, reason=last_line(errors[-1]), **known)
    if (folder / progress.CHECKPOINT).exists():
        return Status(state=INTERRUPTED, reason="repeat the command to resume", **known)
    if heartbeat or (folder / CONFIG).exists():
        return Status(
            state=INTERRUPTED, reason="stopped before its first checkpoint; repeat the command", **known
        )
    return None


def finished_status(folder: Path, label: str, seed: int) -> Status:
    try:
        metrics = artifacts.read_metrics(folder / METRICS_FILE)
        artifacts.verify_present(folder, metrics)
    except (artifacts.DamagedError, OSError) as error:
        return Status(label, seed, FAILED, str(folder), reason=str(error))
    primary_metric = PRIMARY_METRIC[metrics["task"]][0]
    dev, test = metrics["dev"][primary_metric], metrics.get("test", {}).get(primary_metric)
    epochs = {"epoch": metrics["epochs"], "best_epoch": metrics["best_epoch"]}
    return Status(label, seed, DONE, str(folder), dev=dev, best=dev, test=test, **epochs)


def last_heartbeat(folder: Path) -> tuple[dict[str, Any], float | None]:
    """Content of a run's progress.json, and its age in seconds; {} and None if there is none.

    Values that `Progress` does not write are left out.
    """
    path = folder / progress.PROGRESS_FILE
    try:
        heartbeat = json.loads(path.read_text(encoding="utf-8"))
        known = {name: value for name, value in dict(heartbeat).items() if is_of_progress(name, value)}
        return known, max(0.0, time.time() - path.stat().st_mtime)
    except (OSError, ValueError, TypeError, RecursionError):  # not written yet, or the run has just finished
        return {}, None


def is_of_progress(name: str, value: Any) -> bool:
    """Whether progress.json can have this value under this name."""
    if name == "seconds_left":
        return value is None or (isinstance(value, list) and len(value) == 2 and all(map(is_number, value)))
    return is_number(value) if name in NUMBERS else isinstance(value, str)


def modified_at(path: Path) -> float:
    """Modification time in seconds; 0 if the file does not exist."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def last_line(path: Path) -> str:
    """Last line of a traceback, which has the error."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines else ""


def counts(runs: Iterable[Status]) -> dict[str, int]:
    states = [run.state for run in runs]
    return {state: states.count(state) for state in STATES}
