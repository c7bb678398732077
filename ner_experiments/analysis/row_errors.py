"""Errors of a row, which is a group of runs that differ only in the seed: means over seeds with intervals.

`rows` groups runs into rows, `pairs` compares all pairs of rows on one test set.
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
from ner_experiments.analysis.archive import Errors, errors_by_seed, run_calibration
from ner_experiments.analysis.breakdown import Bucket
from ner_experiments.analysis.calibration import Bin, Calibration
from ner_experiments.analysis.disagreements import Agreements, Case, check_same_sentences
from ner_experiments.analysis.errors import NONE, Confusion, Kind
from ner_experiments.analysis.looser_scores import looser_scores
from ner_experiments.analysis.sentences import WrongSentence, by_kind, with_sentences, wrong_sentences
from ner_experiments.analysis.statistics import Summary
from ner_experiments.runs.archived_run import open_archived_run
from ner_experiments.runs.predictions import Predicted
from ner_experiments.runs.run import Run, by_seed, open_run


@dataclass(frozen=True)
class RowErrors:
    """The runs of a row by seed, at least one, each in its own folder or archived."""

    name: str
    runs: Mapping[int, Run]

    @cached_property
    def errors(self) -> dict[int, Errors]:
        """Errors of each run by seed."""
        return errors_by_seed(self.runs)

    @cached_property
    def breakdown(self) -> dict[str, dict[str, MeanBucket]]:
        """Mean scores by dimension and group."""
        return breakdown([errors.breakdown for errors in self.errors.values()])

    def kinds(self) -> dict[str, Mean]:
        """Mean share of the gold mentions by kind of error."""
        return kinds([errors.kinds for errors in self.errors.values()])

    def looser_scores(self) -> dict[str, Summary]:
        """Mean F1 of the types and F1 by looser matches (`analysis.looser_scores`), for runs whose errors are known."""
        runs = [found for errors in self.errors.values() if (found := looser_scores(errors))]
        return {name: statistics.summarize([run[name] for run in runs]) for name in keys(runs)}

    def confusion(self) -> MeanConfusion | None:
        """Mean confusion of types; None if no run has one."""
        return confusion(errors.confusion for errors in self.errors.values())

    def calibration(self, most: int | None = None) -> MeanCalibration | None:
        """Mean calibration; None if no run has one.

        most: maximum number of run folders; all archived runs are taken.
        """
        archived = [run for run in self.runs.values() if run.archived]
        trained = [run for run in self.runs.values() if not run.archived]
        return calibration(map(run_calibration, [*archived, *trained[:most]]))

    def predicted(self) -> dict[Path, list[Predicted]]:
        """Test sentences by folder, of the runs in their own folders; archived runs have no sentences."""
        return {run.folder: run.predicted() for run in with_sentences(self.runs).values()}

    @property
    def identity(self) -> str:
        """Identity of the row's runs. It is unique, while the names of archived rows may repeat."""
        return str(next(iter(self.runs.values())).metrics["identity"])

    def shares_test_set(self, other: RowErrors) -> bool:
        """Whether two rows can be compared, as `Run.shares_test_set`."""
        one, another = (next(iter(row.runs.values())) for row in (self, other))
        return one.shares_test_set(another)

    @cached_property
    def wrong(self) -> list[WrongSentence]:
        """The test sentences with errors, those with most first, of the runs that have sentences."""
        return wrong_sentences(self.runs)

    def record(self, sentences: int) -> dict[str, Any]:
        """JSON content, with as many of the sentences with most errors, and for each kind of error."""
        confusion, calibration = self.confusion(), self.calibration()
        worst = self.wrong[:sentences]
        of_kinds = by_kind(self.wrong[sentences:], sentences)
        return {
            "name": self.name,
            "identity": self.identity,
            "runs": {seed: str(run.folder) for seed, run in self.runs.items()},
            "breakdown": {
                dimension: {name: asdict(bucket) for name, bucket in buckets.items()}
                for dimension, buckets in self.breakdown.items()
            },
            "kinds": {name: asdict(kind) for name, kind in self.kinds().items()},
            "looser_scores": {name: asdict(score) for name, score in self.looser_scores().items()},
            "confusion": confusion and {"names": confusion.names, "counts": confusion.counts},
            "calibration": calibration and asdict(calibration),
            "sentences": [it.record() for part in (worst, *of_kinds.values()) for it in part],
        }


@dataclass(frozen=True)
class RowPair:
    """Two rows on one test set; `cases` as `disagreements.cases`, from the runs whose folders exist."""

    first: RowErrors
    second: RowErrors
    agreements: Agreements
    cases: list[Case]

    def record(self, sentences: int) -> dict[str, Any]:
        """JSON content with the first `sentences` cases."""
        return {
            "first": self.first.name,
            "second": self.second.name,
            "identities": [self.first.identity, self.second.identity],
            **asdict(self.agreements),
            "cases": [case.record() for case in self.cases[:sentences]],
        }


def opened(path: Path) -> Run:
    """The finished run of a folder, or of the file of an archived run. Raises ValueError for another path."""
    return open_archived_run(path) if path.is_file() else open_run(path)


def rows(runs: Mapping[Path, str]) -> list[RowErrors]:
    """Group runs into rows by identity and code, in order of first appearance.

    If runs of a row share a seed, the first is used.

    runs: path of each run -> label of its row; an empty label stands for the name of the run's folder.
    Raises ValueError for a path that is not a finished run with a test score.
    """
    groups: dict[tuple[str, str], dict[int, Run]] = {}
    names: dict[tuple[str, str], str] = {}
    for path, label in runs.items():
        run = opened(path)
        if "test" not in run.metrics:
            raise ValueError(f"{path}: its corpus has no test set to analyze errors on")
        if lacking := {"identity", "seed"} - {*run.metrics}:
            raise ValueError(f"{path}: its metrics lack {', '.join(sorted(lacking))}")
        names.setdefault(run.experiment, label or run.label)
        groups.setdefault(run.experiment, {}).setdefault(run.metrics["seed"], run)
    return [RowErrors(names[experiment], by_seed(runs.values())) for experiment, runs in groups.items()]


def pairs(row_errors: Sequence[RowErrors]) -> list[RowPair]:
    """Comparisons of all pairs of rows on one test set, except where a run was archived without its errors."""
    rows = combinations(row_errors, 2)
    both = [compare(one, other) for one, other in rows if one.shares_test_set(other)]
    return [pair for pair in both if pair is not None]


def compare(first: RowErrors, second: RowErrors) -> RowPair | None:
    """Compare two rows; None if a run has no outcomes. Raises ValueError if their test sentences differ."""
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
    return RowPair(first, second, disagreements.agreements(*there), cases)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over runs with its 95 % interval.

    With several seeds it is Student's interval, for new seeds on the same sentences. With one run it is the
    bootstrap interval, for new sentences and the same trained model. `over` says which.
    """

    value: float
    low: float
    high: float
    runs: int
    over: Literal["seeds", "sentences"]


INTERVALS = {
    "seeds": "Several runs: means and 95 % t-intervals over seeds, on the same sentences.",
    "sentences": "One run: 95 % bootstrap intervals over sentences, for the same trained model.",
}
"""Meaning of the intervals, by `Mean.over`."""


def explain_intervals(means: Iterable[Mean]) -> str:
    """Meaning of the intervals, a sentence for each kind that the means have."""
    kinds = {mean.over for mean in means}
    return " ".join(text for kind, text in INTERVALS.items() if kind in kinds)


@dataclass(frozen=True, slots=True)
class MeanBucket:
    """Mean scores of a group over the runs that have it, in [0, 1]; only F1 has an interval."""

    f1: Mean
    precision: float
    recall: float
    gold: int


def breakdown(runs: Sequence[Mapping[str, Mapping[str, Bucket]]]) -> dict[str, dict[str, MeanBucket]]:
    """Mean scores over the breakdowns of a row's runs, of which some may be empty.

    Groups without a gold mention are left out: their F1 is 0 or undefined, depending on the run.
    """
    means: dict[str, dict[str, MeanBucket]] = {}
    for dimension in keys(runs):
        of_runs = [run[dimension] for run in runs if dimension in run]
        groups = {name: [run[name] for run in of_runs if name in run] for name in keys(of_runs)}
        means[dimension] = {name: mean_bucket(buckets) for name, buckets in groups.items() if buckets[0].gold}
    return means


def mean_bucket(buckets: Sequence[Bucket]) -> MeanBucket:
    """Mean scores of one group over runs."""
    precision, recall = (
        statistics.summarize(scores).mean
        for scores in ([it.precision for it in buckets], [it.recall for it in buckets])
    )
    return MeanBucket(mean([(it.f1, it.low, it.high) for it in buckets]), precision, recall, buckets[0].gold)


def kinds(runs: Sequence[Mapping[str, Kind]]) -> dict[str, Mean]:
    """Mean share of the gold mentions by kind of error, over the runs that have kinds."""
    return {
        name: mean([(run[name].rate, run[name].low, run[name].high) for run in runs if run])
        for name in keys(runs)
    }


def mean(figures: Sequence[tuple[float, float, float]]) -> Mean:
    """Mean of one (value, low, high) per run, where low to high is the run's interval over sentences."""
    summary = statistics.summarize(value for value, _, _ in figures)
    if summary.low is None or summary.high is None:
        return Mean(*figures[0], 1, "sentences")
    return Mean(summary.mean, summary.low, summary.high, summary.n, "seeds")


@dataclass(frozen=True, slots=True)
class MeanConfusion:
    """Mean counts over runs, laid out as `errors.Confusion`."""

    types: tuple[str, ...]
    counts: tuple[tuple[float, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rows, and of the columns."""
        return (*self.types, NONE)


def confusion(runs: Iterable[Confusion | None]) -> MeanConfusion | None:
    """Mean confusion over the runs that have one; None if no run does."""
    present = [run for run in runs if run is not None]
    if not present:
        return None
    types = sorted({kind for run in present for kind in run.types})
    total: Counter[tuple[str, str]] = Counter()
    for run in present:
        total.update(run.pairs())
    names = [*types, ""]
    means = tuple(tuple(total[gold, other] / len(present) for other in names) for gold in names)
    return MeanConfusion(tuple(types), means)


def keys(runs: Sequence[Mapping[str, object]]) -> list[str]:
    """Keys of all runs: those of the first in its order, then those that only others have."""
    return list(dict.fromkeys(name for run in runs for name in run))


@dataclass(frozen=True, slots=True)
class MeanBin:
    """A bin over all runs: `count` and mean probability are pooled, `correct` is a mean over runs."""

    start: float
    end: float
    count: int
    mean: float
    correct: Mean


@dataclass(frozen=True, slots=True)
class MeanCalibration:
    """The mean expected calibration error, and the bins that are not empty in every run."""

    error: Mean
    bins: tuple[MeanBin, ...]

    @property
    def means(self) -> list[Mean]:
        """All figures that have an interval."""
        return [self.error, *(each.correct for each in self.bins)]


def calibration(runs: Iterable[Calibration | None]) -> MeanCalibration | None:
    """Mean calibration over the runs that have one; None if no run does."""
    present = [run for run in runs if run is not None]
    if not present:
        return None
    edges = sorted({(bin_.start, bin_.end) for run in present for bin_ in run.bins})
    bins = [[it for run in present for it in run.bins if it.start == start] for start, _ in edges]
    return MeanCalibration(
        mean([(run.error, run.low, run.high) for run in present]), tuple(mean_bin(group) for group in bins)
    )


def mean_bin(bins: Sequence[Bin]) -> MeanBin:
    """One bin over the runs in which it is not empty."""
    count = sum(it.count for it in bins)
    probability = sum(it.count * it.mean for it in bins) / count
    correct = mean([(it.correct, it.low, it.high) for it in bins])
    return MeanBin(bins[0].start, bins[0].end, count, probability, correct)
