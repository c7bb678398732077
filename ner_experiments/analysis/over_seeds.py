"""The figures of a row's errors over its runs: the mean over seeds, and how far it can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ner_experiments import statistics
from ner_experiments.analysis.breakdown import Bucket
from ner_experiments.analysis.calibration import Bin, Calibration
from ner_experiments.analysis.confusion import NONE, Confusion
from ner_experiments.analysis.kinds import Kind


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
        statistics.summarise(scores).mean
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
    summary = statistics.summarise(value for value, _, _ in figures)
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
