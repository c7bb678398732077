"""Runs that differ in nothing but the seed are a row: a row's errors, and those of two rows side by side.

The figures of a row's errors over its runs: the mean over seeds, and how far it can be trusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from ner_experiments.analysis import disagreements, statistics
from ner_experiments.analysis.archive import Errors, run_calibration, run_errors
from ner_experiments.analysis.breakdown import Bucket
from ner_experiments.analysis.calibration import Bin, Calibration
from ner_experiments.analysis.disagreements import Agreements, Case, check_same_sentences
from ner_experiments.analysis.errors import NONE, Confusion, Kind
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import Run, by_seed, open_archived_run, open_run


@dataclass(frozen=True)
class RowErrors:
    """The runs of a row, by seed: folders or files of results/, one at least."""

    name: str
    runs: Mapping[int, Run]

    @cached_property
    def errors(self) -> dict[int, Errors]:
        """By seed."""
        return {seed: run_errors(run) for seed, run in self.runs.items()}

    def breakdown(self) -> dict[str, dict[str, MeanBucket]]:
        return breakdown([errors.breakdown for errors in self.errors.values()])

    def kinds(self) -> dict[str, Mean]:
        return kinds([errors.kinds for errors in self.errors.values()])

    def confusion(self) -> MeanConfusion | None:
        return confusion(errors.confusion for errors in self.errors.values())

    def calibration(self) -> MeanCalibration | None:
        return calibration(map(run_calibration, self.runs.values()))

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
        run = open_archived_run(path) if path.is_file() else open_run(path)
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
    known = [{seed: errors.outcomes for seed, errors in row.errors.items()} for row in (first, second)]
    there = [{seed: it for seed, it in of_row.items() if it is not None} for of_row in known]
    if [len(of_row) for of_row in known] != [len(of_row) for of_row in there]:
        return None
    one, other = first.predicted(), second.predicted()
    if one and other:
        (a, same), *rest = [*one.items(), *other.items()]
        for b, sentences in rest:
            check_same_sentences(a, same, b, sentences)
    cases = disagreements.cases([*one.values()], [*other.values()]) if one and other else []
    return Compared(first, second, disagreements.agreements(*there), cases)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over runs, with its 95 % interval.

    Of two seeds or more that is Student's, of the mean over new seeds on the same sentences. Of one run it is
    its bootstrap's, of new sentences for the same trained model. `over` says which.
    """

    value: float
    low: float
    high: float
    runs: int
    over: Literal["seeds", "sentences"]


@dataclass(frozen=True, slots=True)
class MeanBucket:
    """F1 of a group, in [0, 1], over the runs that have it; precision and recall are means without one."""

    f1: Mean
    precision: float
    recall: float
    gold: int


def breakdown(runs: Sequence[Mapping[str, Mapping[str, Bucket]]]) -> dict[str, dict[str, MeanBucket]]:
    """Of what each run of a row gives as `breakdown()`; those that give nothing are left out.

    Groups without a gold mention are left out: their F1 is 0 or undefined, as the run has it.
    """
    found: dict[str, dict[str, MeanBucket]] = {}
    for dimension in keys(runs):
        of_runs = [run[dimension] for run in runs if dimension in run]
        groups = {name: [run[name] for run in of_runs if name in run] for name in keys(of_runs)}
        found[dimension] = {name: mean_bucket(buckets) for name, buckets in groups.items() if buckets[0].gold}
    return found


def mean_bucket(buckets: Sequence[Bucket]) -> MeanBucket:
    precision, recall = (
        statistics.summarize(scores).mean
        for scores in ([it.precision for it in buckets], [it.recall for it in buckets])
    )
    return MeanBucket(mean([(it.f1, it.low, it.high) for it in buckets]), precision, recall, buckets[0].gold)


def kinds(runs: Sequence[Mapping[str, Kind]]) -> dict[str, Mean]:
    """Errors of each kind as a share of the gold mentions, of what each run gives as `kinds()`."""
    return {
        name: mean([(run[name].rate, run[name].low, run[name].high) for run in runs if run])
        for name in keys(runs)
    }


def mean(figures: Sequence[tuple[float, float, float]]) -> Mean:
    """Of each run: a figure, and its interval over sentences."""
    summary = statistics.summarize(value for value, _, _ in figures)
    if summary.low is None or summary.high is None:
        return Mean(*figures[0], 1, "sentences")
    return Mean(summary.mean, summary.low, summary.high, summary.n, "seeds")


@dataclass(frozen=True, slots=True)
class MeanConfusion:
    """As `Confusion`: the mean counts over runs."""

    types: tuple[str, ...]
    counts: tuple[tuple[float, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the rows, and of the columns."""
        return (*self.types, NONE)


def confusion(runs: Iterable[Confusion | None]) -> MeanConfusion | None:
    """Of what each run of a row gives as `confusion()`; None if no run gives any."""
    found = [run for run in runs if run is not None]
    if not found:
        return None
    types = sorted({kind for run in found for kind in run.types})
    total: Counter[tuple[str, str]] = Counter()
    for run in found:
        total.update(run.pairs())
    names = [*types, ""]
    means = tuple(tuple(total[gold, other] / len(found) for other in names) for gold in names)
    return MeanConfusion(tuple(types), means)


def keys(runs: Sequence[Mapping[str, object]]) -> list[str]:
    """Of all runs: in the order of the first, and behind it what only others have."""
    return list(dict.fromkeys(name for run in runs for name in run))


@dataclass(frozen=True, slots=True)
class MeanBin:
    """As `calibration.Bin`: `count` over all runs, `mean` the mean probability of these, `right` by runs."""

    start: float
    end: float
    count: int
    mean: float
    right: Mean


@dataclass(frozen=True, slots=True)
class MeanCalibration:
    """The expected calibration error, and the bins of which any run has a mention."""

    error: Mean
    bins: tuple[MeanBin, ...]


def calibration(runs: Iterable[Calibration | None]) -> MeanCalibration | None:
    """Of what each run of a row gives as `calibration()`; None if no run gives any."""
    found = [run for run in runs if run is not None]
    if not found:
        return None
    edges = sorted({(bin_.start, bin_.end) for run in found for bin_ in run.bins})
    bins = [[it for run in found for it in run.bins if it.start == start] for start, _ in edges]
    return MeanCalibration(
        mean([(run.error, run.low, run.high) for run in found]), tuple(mean_bin(group) for group in bins)
    )


def mean_bin(bins: Sequence[Bin]) -> MeanBin:
    count = sum(it.count for it in bins)
    probability = sum(it.count * it.mean for it in bins) / count
    right = mean([(it.right, it.low, it.high) for it in bins])
    return MeanBin(bins[0].start, bins[0].end, count, probability, right)
