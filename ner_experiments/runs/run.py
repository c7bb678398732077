"""Finished runs: a reader of a run's folder, and of the file of results/ that stands for one."""

from __future__ import annotations

import csv
import glob
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig

from ner_experiments.config.identity import identity, run_folder
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.data.tags import spans
from ner_experiments.runs import artifacts, predictions
from ner_experiments.runs.predictions import Predicted


@dataclass(frozen=True)
class Run:
    """A run in its own folder; `metrics` is its metrics.json. Of the other files DamagedError."""

    folder: Path
    metrics: Mapping[str, Any]

    @property
    def label(self) -> str:
        """DATA-MODEL-DECODER-IDENTITY."""
        return self.folder.parent.name

    @property
    def score(self) -> float:
        """F1 or accuracy on test, in percent."""
        return 100 * float(self.metrics["test"][self.primary_metric])

    @property
    def primary_metric(self) -> str:
        return PRIMARY_METRIC[self.metrics["task"]][0]

    def counts(self) -> np.ndarray:
        """Of each test sentence: mentions right, predicted and gold; or tags right and in all."""
        sentences = self.predicted()
        if self.metrics["task"] == "tags":
            return np.array([(sum(map(str.__eq__, it.gold, it.predicted)), len(it.gold)) for it in sentences])
        pairs = [(set(spans(it.gold)), set(spans(it.predicted))) for it in sentences]
        return np.array([(len(gold & found), len(found), len(gold)) for gold, found in pairs])

    def epochs(self) -> list[dict[str, float]]:
        """The learning curve: the rows of log.csv."""
        return rows_of(self.verified(artifacts.LOG))

    def test_every_epoch(self) -> list[float]:
        """Test scores after each epoch, in percent, if the run was made with audit.peek=true."""
        path = self.verified(artifacts.TEST_LOG)
        return [100 * row[f"test_{self.primary_metric}"] for row in rows_of(path)] if path.exists() else []

    def predicted(self) -> list[Predicted]:
        self.verified("predictions/test.conll")
        return predictions.read(self.folder)

    def verified(self, name: str) -> Path:
        """A file of the folder, as it was when the run was finished."""
        artifacts.verify(self.folder, self.metrics, [name])
        return self.folder / name


@dataclass(frozen=True)
class ArchivedRun(Run):
    """A run as `keep` wrote it into a file of results/, which stands for its folder."""

    content: Mapping[str, Any]

    @property
    def label(self) -> str:
        """Of the row that it was kept for."""
        return str(self.content["label"])

    def counts(self) -> np.ndarray:
        rows = [row.split(",") for row in self.content["counts"].split(" ")]
        return np.array(rows, dtype=np.int64)

    def epochs(self) -> list[dict[str, float]]:
        return list(self.content["epochs"])

    def test_every_epoch(self) -> list[float]:
        return list(self.content["peeked"])


def rows_of(path: Path) -> list[dict[str, float]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def candidates(cfg: DictConfig) -> Iterator[Run]:
    """Finished runs under `output_dir` with the corpus, model and decoder of the config."""
    any_identity = run_folder(cfg, "*").parent
    prefix = glob.escape(any_identity.name.removesuffix("*"))
    for path in sorted(any_identity.parent.glob(f"{prefix}*/seed-*/{artifacts.METRICS}")):
        yield Run(path.parent, artifacts.read(path))


def finished(cfg: DictConfig, fingerprint: Callable[[DictConfig], str]) -> dict[int, Run]:
    """The experiment's runs under `output_dir`, by seed, on the files as they are now.

    fingerprint: the checksum of what a config reads, such as `build.Fingerprints()`; called only where there is
        a run, and what it raises is handed on.
    ValueError if all runs of the experiment are on other files.
    """
    found = of_experiment(cfg, candidates(cfg))
    if not found:
        return {}
    read = fingerprint(cfg)
    if own := [run for run in found if run.metrics["checksum"] == read]:
        return by_seed(own)
    theirs, folder = found[0].metrics["checksum"], found[0].folder
    raise ValueError(f"{folder} read other files: their checksum was {theirs}, now it is {read}")


def of_experiment(cfg: DictConfig, runs: Iterable[Run]) -> list[Run]:
    """Those equal in identity, each on the files as they were."""
    return [run for run in runs if identity(cfg, run.metrics["checksum"]) == run.metrics["identity"]]


def finished_once(cfg: DictConfig, runs: Iterable[Run]) -> dict[int, Run]:
    """Those that are the experiment, by seed, on the files as they were; ValueError if these differ."""
    found = of_experiment(cfg, runs)
    for run in found[1:]:
        theirs, first = run.metrics["checksum"], found[0]
        if theirs != first.metrics["checksum"]:
            read = f"{first.metrics['checksum']}, {theirs}"
            raise ValueError(f"{first.folder} and {run.folder} read different files: {read}")
    return by_seed(found)


def by_seed(runs: Iterable[Run]) -> dict[int, Run]:
    return {run.metrics["seed"]: run for run in sorted(runs, key=lambda run: run.metrics["seed"])}


def format_counts(counts: np.ndarray) -> str:
    return " ".join(",".join(map(str, row)) for row in counts.tolist())


def archived_runs(folder: Path) -> Iterator[ArchivedRun]:
    """The runs that `keep` has written into a folder."""
    for path in sorted(folder.glob("*.json")):
        yield open_archived_run(path)


def open_run(folder: Path) -> Run:
    """ValueError if it is no finished run's folder, or its metrics.json is not as it was."""
    return Run(folder, artifacts.read(predictions.file(folder, artifacts.METRICS)))


def open_archived_run(path: Path) -> ArchivedRun:
    """ValueError for a file that `keep` did not write."""
    content = artifacts.read(path)
    if "metrics" not in content:
        raise ValueError(f"{path}: expected a run as results/ keeps it, but it has no metrics")
    return ArchivedRun(path, content["metrics"], content)
