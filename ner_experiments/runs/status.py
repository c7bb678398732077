"""How the runs of a sweep stand, told from the files in their folders alone; they notice nothing of it."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ner_experiments.config.identity import experiment
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.runs import artifacts, progress
from ner_experiments.runs.artifacts import CONFIG, METRICS, read_config
from ner_experiments.utils.locks import is_held

RUNNING, DONE, CUT_OFF, FAILED, WAITING = STATES = ("running", "done", "cut off", "failed", "waiting")
ALIVE = 6 * progress.HEARTBEAT_SECONDS
"""Seconds without a sign of life after which a run of another machine, seen to hold no lock, is cut off."""


@dataclass(frozen=True)
class Status:
    """Scores are in [0, 1], times in seconds; None is what is not known. epoch: those that are over.

    part: of the next epoch, what is done. left: at least and at most. silent: since its last sign of life.
    best: on dev; of a finished run dev and best are the same. reason: why a run failed, or waits.
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
    silent: float | None = None
    host: str = ""
    slurm: str = ""
    reason: str = ""

    def record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Wanted:
    """A run that a sweep is to have."""

    label: str
    seed: int
    experiment: str

    @classmethod
    def of(cls, label: str, cfg: Any, seed: int) -> Wanted:
        return cls(label, seed, experiment(cfg))


def everything(output: Path) -> list[Status]:
    """All runs under a folder."""
    found = [look(folder, folder.parent.name) for folder in folders(output)]
    return [status for status in found if status is not None]


def of_sweep(wanted: Iterable[Wanted], output: Path, queued: Mapping[Wanted, str]) -> list[Status]:
    """In the order of the sweep; what has no folder yet is waiting, in SLURM's queue if it is `queued`."""
    there: dict[tuple[str, int], list[Path]] = {}
    for folder in folders(output):
        if (key := experiment_of(folder)) is not None:
            there.setdefault(key, []).append(folder)
    return [status_of(run, there.get((run.experiment, run.seed), []), queued) for run in wanted]


def status_of(run: Wanted, places: Sequence[Path], queued: Mapping[Wanted, str]) -> Status:
    """An experiment has several folders if it failed before its data was there, or was run on other data."""
    found = [status for place in places if (status := look(place, run.label)) is not None]
    if found:
        return min(found, key=lambda status: STATES.index(status.state))
    if run in queued:
        return Status(run.label, run.seed, WAITING, slurm=queued[run], reason="in SLURM's queue")
    return Status(run.label, run.seed, WAITING)


def folders(output: Path) -> list[Path]:
    found = output.glob("*/seed-*")
    return sorted(path for path in found if path.is_dir() and path.name.removeprefix("seed-").isdecimal())


def seed_of(folder: Path) -> int:
    return int(folder.name.removeprefix("seed-"))


def experiment_of(folder: Path) -> tuple[str, int] | None:
    """As `Wanted` has it; None for a folder that no run of the suite has made.

    A run that fails before it has read its data leaves no config, in a folder named by the settings alone.
    """
    path, seed = folder / CONFIG, seed_of(folder)
    if not path.exists():
        return f"experiment-{folder.parent.name.rpartition('-')[2]}", seed
    try:
        return read_experiment(folder, path.stat().st_mtime_ns), seed
    except (ValueError, OSError):
        return None


@lru_cache(maxsize=4096)
def read_experiment(folder: Path, changed: int) -> str:
    return experiment(read_config(folder))


def look(folder: Path, label: str) -> Status | None:
    """None if there is nothing but a lock that nobody holds."""
    seed = seed_of(folder)
    held, (told, silent) = is_held(folder), last_sign(folder)  # first: when there is a result both are gone
    if (folder / METRICS).exists():
        return finished(folder, label, seed)
    known: dict[str, Any] = {
        **{"label": label, "seed": seed, "folder": str(folder), "epoch": told.get("epoch"), "silent": silent},
        **{name: told.get(name) for name in ("max_epochs", "dev", "best", "best_epoch")},
        **{name: told.get(name, "") for name in ("host", "slurm")},
    }
    elsewhere = bool(told) and told.get("host") != platform.node()
    if held or (elsewhere and silent is not None and silent < ALIVE):
        why = "" if told else "reads its data"
        part, left = told.get("part", 0.0), told.get("seconds_left")
        scoring = told.get("stage") == "scoring"
        return Status(state=RUNNING, part=part, left=left, reason="scores" if scoring else why, **known)
    errors = sorted(folder.glob("error*.txt"), key=written)
    if errors and written(errors[-1]) >= written(folder / progress.NAME):
        return Status(state=FAILED, reason=last_line(errors[-1]), **known)
    if (folder / progress.CHECKPOINT).exists():
        return Status(state=CUT_OFF, reason="continues when the command is repeated", **known)
    if told or (folder / CONFIG).exists():
        return Status(state=CUT_OFF, reason="before its first checkpoint", **known)
    return None


def finished(folder: Path, label: str, seed: int) -> Status:
    try:
        metrics = artifacts.read(folder / METRICS)
    except (artifacts.DamagedError, OSError) as error:
        return Status(label, seed, FAILED, str(folder), reason=str(error))
    primary_metric = PRIMARY_METRIC[metrics["task"]][0]
    dev, test = metrics["dev"][primary_metric], metrics.get("test", {}).get(primary_metric)
    epochs = {"epoch": metrics["epochs"], "best_epoch": metrics["best_epoch"]}
    return Status(label, seed, DONE, str(folder), dev=dev, best=dev, test=test, **epochs)


def last_sign(folder: Path) -> tuple[dict[str, Any], float | None]:
    """What a run has told of itself, and how long ago that was."""
    path = folder / progress.NAME
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return dict(told), max(0.0, time.time() - path.stat().st_mtime)
    except (OSError, ValueError):  # there is none yet, or the run has just been finished
        return {}, None


def written(path: Path) -> float:
    """When, in seconds; 0 if there is none, or not any more."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def last_line(path: Path) -> str:
    """Of a traceback: the error."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines else ""


def counts(runs: Iterable[Status]) -> dict[str, int]:
    states = [run.state for run in runs]
    return {state: states.count(state) for state in STATES}
