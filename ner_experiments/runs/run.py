"""Readers of finished runs, each in a folder of its own; `archived_run` reads those of results/, `store` finds them."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.runs import artifacts, predictions
from ner_experiments.runs import code as code_of_runs
from ner_experiments.runs.artifacts import read_config
from ner_experiments.runs.predictions import Predicted

if TYPE_CHECKING:
    from omegaconf import DictConfig

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """A run in its own folder; `metrics` is its metrics.json.

    Reading any other file raises `DamagedError` if its checksum differs from the recorded one.
    """

    archived: ClassVar[bool] = False

    folder: Path
    metrics: Mapping[str, Any]
    test_name: str = field(default="test", kw_only=True)
    """The test set whose scores and predictions it has: test, or one of `extra_tests`."""

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
        """Name of the score that dev selects by, as in metrics.json."""
        return PRIMARY_METRIC[self.metrics["task"]][0]

    @property
    def score_name(self) -> str:
        """`F1` or `accuracy`."""
        return PRIMARY_METRIC[self.metrics["task"]][1]

    @property
    def extra_tests(self) -> list[str]:
        """The names of the further test sets that it was scored on."""
        return [*self.metrics.get("extra_tests", {})]

    def on(self, name: str) -> Self:
        """The run with the scores and predictions of a further test set in place of those of test."""
        found = self.metrics["extra_tests"][name]
        data = {**self.metrics["data"], "gold": found["gold"], "checksum": found["checksum"]}
        return replace(self, metrics={**self.metrics, "test": found["test"], "data": data}, test_name=name)

    def settings(self) -> Mapping[Any, Any]:
        """The settings that can change the result, as `identity.counted`. Raises ValueError with the file."""
        from ner_experiments.config.identity import counted  # as in `artifacts.read_config`

        config = self.config
        try:
            return counted(config)
        except ValueError as error:
            raise ValueError(f"{self.folder / artifacts.CONFIG}: {error}") from error

    @cached_property
    def config(self) -> DictConfig:
        """The content of config.yaml, which is slow to read. ValueError as `safe_yaml.read_config`."""
        return read_config(self.folder)

    def code(self) -> code_of_runs.Code | None:
        """The code that made the run, by module; None if it did not record that."""
        path = self.verified(artifacts.CODE)
        return code_of_runs.recorded(path) if path.is_file() else None

    @property
    def experiment(self) -> tuple[str, str]:
        """The key that the runs of a row share: their identity and, if it was recorded, the digest of their code."""
        code = self.code()
        return self.metrics["identity"], "" if code is None else code_of_runs.digest(code)

    @cached_property
    def outdated(self) -> str:
        """Why it is no run of the present code, as `code.outdated`; empty if it is one."""
        return code_of_runs.outdated(self.verified(artifacts.CODE))

    def counts(self) -> np.ndarray:
        """Counts per test sentence, as `runs.predictions.count`."""
        return predictions.count(self.predicted(), self.metrics["task"])

    @cached_property
    def num_gold(self) -> np.ndarray:
        """Number of gold mentions of each test sentence, or of its tags if single tokens are tagged."""
        return self.counts()[:, -1]

    @property
    def test_set(self) -> str:
        """The digest of the gold of its test set; the checksum of its corpus if it did not record that."""
        data = self.metrics["data"]
        return str(data.get("gold", data["checksum"]))

    def shares_test_set(self, other: Run) -> bool:
        """Whether two runs were scored on one test set: the same sentences with the same gold, whatever files have it.

        If one of them was made before the digest of the gold was recorded, their corpora must have the same checksum,
        and their sentences the same numbers of gold mentions.
        """
        ours, theirs = self.metrics["data"], other.metrics["data"]
        if "gold" in ours and "gold" in theirs:
            return bool(ours["gold"] == theirs["gold"])
        return (
            (self.metrics["task"], ours["checksum"]) == (other.metrics["task"], theirs["checksum"])
        ) and np.array_equal(self.num_gold, other.num_gold)

    def epochs(self) -> list[dict[str, float]]:
        """The learning curve: the rows of log.csv, which is read once."""
        return self._epochs

    @cached_property
    def _epochs(self) -> list[dict[str, float]]:
        return rows_of(self.verified(artifacts.LOG))

    def test_every_epoch(self) -> list[float]:
        """Test scores after each epoch, in percent, if the run was made with audit.test_every_epoch=true.

        None, with a warning, if the setting was turned on or off between two parts of an interrupted run.
        """
        path = self.verified(artifacts.TEST_LOG)
        if self.test_name != "test" or not path.exists():
            return []
        rows, epochs = rows_of(path), self.metrics["epochs"]
        if [row["epoch"] for row in rows] != [*range(1, epochs + 1)]:
            log_once(
                f"{path} has {len(rows)} of {epochs} epochs, and without the others there is no best one"
            )
            return []
        return [100 * row[f"test_{self.primary_metric}"] for row in rows]

    def predicted_tags(self) -> list[tuple[str, ...]]:
        """The predicted tags of the tokens of each test sentence, mentions in IOB2."""
        return [sentence.predicted[: sentence.num_tokens] for sentence in self.predicted()]

    def predicted(self) -> list[Predicted]:
        """The test sentences with their predicted tags, which are read once.

        ValueError for a tag that is none of the run's task.
        """
        return self._predicted

    @cached_property
    def _predicted(self) -> list[Predicted]:
        path = self.verified(artifacts.prediction_file(self.test_name))
        found = predictions.read(self.folder, self.test_name)
        for tag in set[str]().union(*(it.tags for it in found)):
            try:
                predictions.units([tag], self.metrics["task"])
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
        return found

    def probabilities(self) -> list[list[float]] | None:
        """Probabilities of the predicted mentions of each test sentence; None if the run did not record them."""
        path = self.verified(artifacts.PROBABILITIES)
        return predictions.read_probabilities(path) if self.test_name == "test" and path.is_file() else None

    def verified(self, name: str) -> Path:
        """Path of a file of the folder, after its checksum has been verified."""
        artifacts.verify(self.folder, self.metrics, [name])
        return self.folder / name


def rows_of(path: Path) -> list[dict[str, float]]:
    """The rows of a CSV file of numbers. ValueError, with the line, for anything else."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        try:
            return [{name: float(value) for name, value in row.items()} for row in reader]
        except (ValueError, TypeError, csv.Error) as error:
            columns = len(reader.fieldnames or ())
            raise ValueError(f"{path}:{reader.line_num}: expected {columns} numbers: {error}") from error


@cache
def log_once(warning: str) -> None:
    """Log a warning the first time: a table looks for the runs of each of its rows."""
    log.warning(warning)


def by_seed(runs: Iterable[Run]) -> dict[int, Run]:
    """Runs by seed, in ascending order; of several with one seed the last."""
    return {run.metrics["seed"]: run for run in sorted(runs, key=lambda run: run.metrics["seed"])}


def open_run(folder: Path) -> Run:
    """The run of a folder. Raises ValueError if it is not finished or its metrics.json is damaged."""
    return Run(folder, artifacts.read_metrics(predictions.file(folder, artifacts.METRICS_FILE), whole=False))
