"""The search space of a command line: settings with one value, and settings with a range, in Hydra's grammar.

`optimizer.lr=interval(0.001,0.01)`, `tag(log, interval(...))`, `layers=range(1,4)` (without 4, as everywhere in Hydra),
`int(interval(1,3))` (with 3), `model.hidden_size=choice(50,100)` or `50,100`, and `model=glob(res*)`.
Optuna is optional and slow to import, so functions import it where they use it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.override_parser.types import (
    IntervalSweep,
    Override,
    RangeSweep,
    Sweep,
)

from ner_experiments.config import config_dirs, plain_yaml
from ner_experiments.config.choices import parse
from ner_experiments.config.compose import compose
from ner_experiments.config.config_dirs import file_of
from ner_experiments.config.identity import NOT_THE_EXPERIMENT
from ner_experiments.config.job import CommandLine
from ner_experiments.config.row_settings import root
from ner_experiments.launch.checks import check_jobs
from ner_experiments.utils.text import did_you_mean

DIGITS = 4
"""Significant digits of a value that is drawn from an interval, so that what is printed is what was run."""
MAX_POINTS = 10_000
"""Largest space whose untried points are enumerated."""
NO_TEST = "audit.test=false"
"""Override of every job of a search, whose runs do not score test."""

Value = str | int | float


@dataclass(frozen=True)
class Dimension:
    """A setting that varies: its range as it was typed, and as Optuna's distribution."""

    key: str
    text: str
    distribution: Any

    @property
    def values(self) -> tuple[str, ...]:
        """The values of a choice, as they are written on a command line; empty for numbers."""
        return tuple(getattr(self.distribution, "choices", ()))

    @property
    def size(self) -> float:
        if self.values:
            return len(self.values)
        low, high, step = self.distribution.low, self.distribution.high, self.distribution.step
        return math.inf if step is None else round((high - low) / step) + 1

    def override(self, value: Value) -> str:
        if isinstance(value, float):
            rounded = float(f"{value:.{DIGITS}g}")
            value = min(max(rounded, self.distribution.low), self.distribution.high)
        return f"{self.key}={value}"

    def checked(self) -> Sequence[Value]:
        """The values with which a job is composed before the search starts: all choices, and the ends of a range."""
        return self.values or (self.distribution.low, self.distribution.high)

    def points(self) -> Sequence[Value]:
        """All values, of which there are finitely many."""
        if self.values:
            return self.values
        return [self.distribution.low + number * self.distribution.step for number in range(int(self.size))]


@dataclass(frozen=True)
class Space:
    """The settings that all trials share, those that vary, and the seeds with which each trial is run."""

    fixed: tuple[str, ...]
    dimensions: tuple[Dimension, ...]
    seeds: tuple[int, ...]

    @property
    def distributions(self) -> dict[str, Any]:
        return {each.key: each.distribution for each in self.dimensions}

    @property
    def ranges(self) -> list[str]:
        """The overrides that vary, as typed."""
        return [f"{each.key}={each.text}" for each in self.dimensions]

    @property
    def size(self) -> float:
        return math.prod(each.size for each in self.dimensions)

    def overrides(self, point: Mapping[str, Any]) -> list[str]:
        """The overrides of a point, given as a value for each key."""
        return [each.override(point[each.key]) for each in self.dimensions]

    def jobs(self, overrides: Sequence[str]) -> list[list[str]]:
        """The jobs of a trial, one per seed. Their runs do not score test."""
        return [[*self.fixed, *overrides, f"seed={seed}", NO_TEST] for seed in self.seeds]

    def untried(self, tried: Collection[tuple[str, ...]]) -> list[dict[str, Value]]:
        """The points whose overrides are not among those tried, of a space of at most `MAX_POINTS`."""
        every = itertools.product(*(each.points() for each in self.dimensions))
        points = (dict(zip(self.distributions, values, strict=True)) for values in every)
        return [point for point in points if tuple(self.overrides(point)) not in tried]

    def settings(self) -> dict[str, list[str]]:
        """Settings that identify a study: trials with other settings cannot be compared."""
        experiment = [item for item in self.fixed if root(item) not in NOT_THE_EXPERIMENT]
        return {
            "fixed": sorted(experiment),
            "ranges": sorted(self.ranges),
            "seeds": [str(seed) for seed in sorted(self.seeds)],
        }

    def name(self, *more: str) -> str:
        """Name of the space: the varying keys, and a digest of the settings and of `more`, as keys may be equal."""
        keys = "-".join(each.key.rpartition(".")[2].replace("/", "-") for each in self.dimensions)
        text = json.dumps([self.settings(), *more], sort_keys=True)
        return f"{keys[:50]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def check(self, line: CommandLine, files: Mapping[str, str] = {}) -> None:
        """Raise ValueError if a choice or an end of a range is invalid for its setting, or changes the data.

        files: the file of conf/search/ that each key is from; none for those of the command line.
        """
        data = None
        for each, job in self.checked_jobs():
            try:
                cfg = compose(job)
            except ValueError as error:
                each = each if data else self.refused_alone() or each
                place = f"{files.get(each.key, '')}{each.key}={each.text}"
                whole = f" (for whole numbers: {each.key}=int({each.text}))" if each.size == math.inf else ""
                raise ValueError(f"{place}: {error}{whole}") from error
            place = f"{files.get(each.key, '')}{each.key}={each.text}"
            try:
                check_jobs([job], line)
            except ValueError as error:
                raise ValueError(f"{place}: {error}") from error
            data = data or cfg.data
            if cfg.data != data:
                raise ValueError(f"{place}: trials on different data cannot be compared")
            if cfg.audit.test_every_epoch:
                raise ValueError("audit.test_every_epoch=true scores test, which a search must not see")

    def refused_alone(self) -> Dimension | None:
        """The first setting whose first value is invalid beside the fixed settings."""
        for each in self.dimensions:
            try:
                compose([*self.fixed, each.override(each.checked()[0])])
            except ValueError:
                return each
        return None

    def checked_jobs(self) -> Iterator[tuple[Dimension, list[str]]]:
        """For each choice and each end of a range, a job with it and the first values of the other settings."""
        first = {each.key: each.checked()[0] for each in self.dimensions}
        for each in self.dimensions:
            for value in each.checked():
                yield each, self.jobs(self.overrides({**first, each.key: value}))[0]


def read_space(overrides: Sequence[str]) -> Space:
    """The space of the overrides of a command line. ValueError for an impossible range."""
    dimensions: list[Dimension] = []
    fixed: list[str] = []
    seeds: tuple[int, ...] = (1,)
    for item in parse(overrides):
        if item.key_or_group == "seed":
            seeds = seeds_of(item)
        elif item.is_sweep_override():
            dimensions.append(dimension(item))
        elif item.key_or_group == "audit.test":
            raise ValueError(
                f"{item.input_line}: a search does not score test; score the best settings after it"
            )
        else:
            fixed.append(str(item.input_line))
    if not dimensions:
        raise ValueError(
            "there is nothing to search: give a setting a range, such as 'optimizer.lr=interval(0.001,0.01)', "
            "or choose a space of conf/search, such as search=residual"
        )
    return Space(tuple(fixed), tuple(dimensions), seeds)


def seeds_of(item: Override) -> tuple[int, ...]:
    """The seeds of each trial, whose mean dev score is its score. A seed is never searched."""
    values: list[Any] = [*item.sweep_iterator()] if item.is_discrete_sweep() else [item.value()]
    if not values or not all(type(value) is int and value >= 0 for value in values):
        raise ValueError(f"{item.input_line}: expected seeds, such as seed=1 or seed=1,2,3")
    if len({*values}) != len(values):
        raise ValueError(f"{item.input_line}: the seeds must be different")
    return tuple(values)


def dimension(item: Override) -> Dimension:
    """The range of an override. ValueError for one without values, with an unknown tag, or that changes no result."""
    from optuna.distributions import CategoricalDistribution

    line, value, key = item.input_line, item.value(), item.key_or_group
    tags = value.tags if isinstance(value, Sweep) else set()
    if unknown := {*tags} - {"log"}:
        raise ValueError(f"{line}: there is no tag {sorted(unknown)[0]!r}; there is: log")
    log = "log" in tags
    try:
        if root(key) in NOT_THE_EXPERIMENT:
            raise ValueError(f"{key} cannot change a result, so it is not searched")
        if isinstance(value, IntervalSweep):
            low, high = value.start, value.end
            if low is None or high is None or not -math.inf < low < high < math.inf:
                raise ValueError("an interval must go from a number to a larger one")
            distribution = numbers(low, high, None, log)
        elif isinstance(value, RangeSweep):
            values = [*value.range()] if value.step else []
            if not values:
                raise ValueError("the range has no values")
            if log and abs(value.step) != 1:
                raise ValueError("a logarithmic range has no step")
            if log and not all(isinstance(each, int) for each in values):
                raise ValueError("a logarithmic range must be of integers; for other numbers use an interval")
            distribution = numbers(min(values), max(values), abs(value.step), log)
        elif log:
            raise ValueError("a choice has no logarithmic scale")
        elif choices := tuple(dict.fromkeys(item.sweep_string_iterator())):
            distribution = CategoricalDistribution(choices)
        else:
            raise ValueError("nothing to choose from")
    except ValueError as error:
        raise ValueError(f"{line}: {error}") from error
    return Dimension(item.get_key_element(), item.get_value_string(), distribution)


def numbers(low: float, high: float, step: float | None, log: bool) -> Any:
    """The distribution of numbers from `low` to `high`, both included. step: None for all numbers in between."""
    from optuna.distributions import FloatDistribution, IntDistribution

    if log and low <= 0:
        raise ValueError("a logarithmic range starts above 0")
    if isinstance(low, int) and isinstance(high, int):
        return IntDistribution(low, high, log=log, step=int(step or 1))
    return FloatDistribution(float(low), float(high), log=log, step=None if step is None else float(step))


# Spaces of conf/search


def shipped(name: str) -> list[str]:
    """The overrides of conf/search/NAME.yaml. ValueError for a name that is not there."""
    names = config_dirs.names("search")
    if name not in names:
        raise ValueError(f"search={name}: there is no search {name!r}{did_you_mean(name, names)}")
    settings = plain_yaml.load(file_of(f"search/{name}"))
    return [f"{key}={value}" for key, value in settings.items()]
