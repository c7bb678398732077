"""Runs that differ in nothing but the seed are a row: a row's errors, and those of two rows side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from ner_experiments.analysis import over_seeds, pairs
from ner_experiments.analysis.cases import Case, check_same_sentences
from ner_experiments.analysis.over_seeds import Mean, MeanBucket, MeanCalibration, MeanConfusion
from ner_experiments.analysis.pairs import Agreements
from ner_experiments.analysis.predictions import Predicted
from ner_experiments.runs import Run, by_seed, kept_run, run_of


@dataclass(frozen=True)
class RowErrors:
    """The runs of a row, by seed: folders or files of results/, one at least."""

    name: str
    runs: Mapping[int, Run]

    def breakdown(self) -> dict[str, dict[str, MeanBucket]]:
        return over_seeds.breakdown([run.breakdown() for run in self.runs.values()])

    def kinds(self) -> dict[str, Mean]:
        return over_seeds.kinds([run.kinds() for run in self.runs.values()])

    def confusion(self) -> MeanConfusion | None:
        return over_seeds.confusion(run.confusion() for run in self.runs.values())

    def calibration(self) -> MeanCalibration | None:
        return over_seeds.calibration(run.calibration() for run in self.runs.values())

    def predicted(self) -> dict[Path, list[Predicted]]:
        """The test sentences of each run whose folder is there; results/ keeps none."""
        return {run.folder: run.predicted() for run in self.runs.values() if run.folder.is_dir()}

    @property
    def identity(self) -> str:
        """Of its runs; rows that were kept may have one name."""
        return str(next(iter(self.runs.values())).metrics["identity"])

    @property
    def test_set(self) -> tuple[str, str]:
        """Equal if two rows can be held against each other."""
        metrics = next(iter(self.runs.values())).metrics
        return metrics["task"], metrics["data"]["checksum"]

    def record(self) -> dict[str, Any]:
        """As JSON."""
        confusion, calibration = self.confusion(), self.calibration()
        return {
            "name": self.name,
            "identity": self.identity,
            "runs": {seed: str(run.folder) for seed, run in self.runs.items()},
            "breakdown": {
                dimension: {name: asdict(bucket) for name, bucket in buckets.items()}
                for dimension, buckets in self.breakdown().items()
            },
            "kinds": {name: asdict(kind) for name, kind in self.kinds().items()},
            "confusion": confusion and {"names": confusion.names, "counts": confusion.counts},
            "calibration": calibration and asdict(calibration),
        }


@dataclass(frozen=True)
class Compared:
    """Two rows on one test set; `cases` are as `pairs.cases`, of those runs whose folders are there."""

    first: RowErrors
    second: RowErrors
    agreements: Agreements
    cases: list[Case]

    def record(self, sentences: int) -> dict[str, Any]:
        """As JSON, with so many of the cases."""
        return {
            "first": self.first.name,
            "second": self.second.name,
            "identities": [self.first.identity, self.second.identity],
            **asdict(self.agreements),
            "cases": [case.record() for case in self.cases[:sentences]],
        }


def rows(paths: Iterable[Path]) -> list[RowErrors]:
    """Runs by their identity, in the order in which they first appear; of one seed the first counts.

    ValueError for what is no finished run that was scored on test.
    """
    found: dict[str, dict[int, Run]] = {}
    for path in paths:
        run = kept_run(path) if path.is_file() else run_of(path)
        if "test" not in run.metrics:
            raise ValueError(f"{path}: its corpus has no test set, of which errors are")
        found.setdefault(run.metrics["identity"], {}).setdefault(run.metrics["seed"], run)
    return [RowErrors(next(iter(runs.values())).label, by_seed(runs.values())) for runs in found.values()]


def compared(found: Sequence[RowErrors]) -> list[Compared]:
    """Each two rows of one test set, but for those of which a run was kept before there were outcomes."""
    both = [compare(one, other) for one, other in combinations(found, 2) if one.test_set == other.test_set]
    return [pair for pair in both if pair is not None]


def compare(first: RowErrors, second: RowErrors) -> Compared | None:
    """None if a run does not know its outcomes. ValueError if the rows' mentions or sentences differ."""
    known = [{seed: run.outcomes() for seed, run in row.runs.items()} for row in (first, second)]
    there = [{seed: it for seed, it in of_row.items() if it is not None} for of_row in known]
    if [len(of_row) for of_row in known] != [len(of_row) for of_row in there]:
        return None
    one, other = first.predicted(), second.predicted()
    if one and other:
        (a, same), *rest = [*one.items(), *other.items()]
        for b, sentences in rest:
            check_same_sentences(a, same, b, sentences)
    cases = pairs.cases([*one.values()], [*other.values()]) if one and other else []
    return Compared(first, second, pairs.agreements(*there), cases)
