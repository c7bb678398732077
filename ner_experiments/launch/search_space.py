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
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.types import (
    IntervalSweep,
    Override,
    RangeSweep,
    Sweep,
)

from ner_experiments.config import conf, safe_yaml
from ner_experiments.config.choices import parse
from ner_experiments.config.compose import compose
from ner_experiments.config.conf import file_of
from ner_experiments.config.identity import NOT_THE_EXPERIMENT
from ner_experiments.config.job import CommandLine
from ner_experiments.launch.checks import check_jobs
from ner_experiments.tables.experiments import root
from ner_experiments.utils.text import did_you_mean

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

DIGITS = 4
"""Significant digits of a value that is drawn from an interval, so that what is printed is what was run."""
MAX_POINTS = 10_000
"""Largest space whose untried points are enumerated."""
RANDOM_TRIES = 1000
NO_TEST = "audit.test=false"
"""Override of every job of a search, whose runs do not score test."""

Value = str | int | float


@dataclass(frozen=True)
class Choice:
    """A setting that takes one of several values, as they are written on a command line."""

    key: str
    text: str
    values: tuple[str, ...]

    @property
    def size(self) -> float:
        return len(self.values)

    def distribution(self) -> BaseDistribution:
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.values)

    def override(self, value: Value) -> str:
        return f"{self.key}={value}"

    def checked(self) -> Sequence[Value]:
        """The values with which a job is composed before the search starts: all of them."""
        return self.values

    def points(self) -> Iterator[Value]:
        return iter(self.values)

    def draw(self, rng: random.Random) -> Value:
        return rng.choice(self.values)


@dataclass(frozen=True)
class Numbers:
    """A setting that takes a number from `low` to `high`, both included. step: None for all numbers in between."""

    key: str
    text: str
    low: int | float
    high: int | float
    step: int | float | None = None
    log: bool = False

    @property
    def size(self) -> float:
        return math.inf if self.step is None else round((self.high - self.low) / self.step) + 1

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int)

    def distribution(self) -> BaseDistribution:
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.whole:
            return IntDistribution(int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
        return FloatDistribution(self.low, self.high, log=self.log, step=self.step)

    def override(self, value: Value) -> str:
        if self.whole:
            return f"{self.key}={value}"
        rounded = float(f"{value:.{DIGITS}g}")
        return f"{self.key}={min(max(rounded, self.low), self.high)!r}"

    def checked(self) -> Sequence[Value]:
        return (self.low, self.high)

    def points(self) -> Iterator[Value]:
        assert self.step is not None
        return (self.low + number * self.step for number in range(int(self.size)))

    def draw(self, rng: random.Random) -> Value:
        if self.step is not None:
            return self.low + rng.randrange(int(self.size)) * self.step
        if self.log:
            return math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        return rng.uniform(self.low, self.high)


Dimension = Choice | Numbers


@dataclass(frozen=True)
class Space:
    """The settings that all trials share, those that vary, and the seeds with which each trial is run."""

    fixed: tuple[str, ...]
    dimensions: tuple[Dimension, ...]
    seeds: tuple[int, ...]

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        return {each.key: each.distribution() for each in self.dimensions}

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

    def untried(self, tried: Collection[tuple[str, ...]], rng: random.Random) -> dict[str, Value] | None:
        """A random point whose overrides are not among those tried; None if there is none."""
        if self.size <= MAX_POINTS:
            every = itertools.product(*(each.points() for each in self.dimensions))
            left = [point for point in map(self.point, every) if tuple(self.overrides(point)) not in tried]
            return rng.choice(left) if left else None
        for _ in range(RANDOM_TRIES):
            point = self.point([each.draw(rng) for each in self.dimensions])
            if tuple(self.overrides(point)) not in tried:
                return point
        return None

    def point(self, values: Sequence[Value]) -> dict[str, Value]:
        return {each.key: value for each, value in zip(self.dimensions, values, strict=True)}

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

    def check(self, line: CommandLine) -> None:
        """Raise ValueError if a choice or an end of a range is invalid for its setting, or changes the data."""
        data = None
        for each, job in self.checked_jobs():
            try:
                cfg = compose(job)
            except ValueError as error:
                raise ValueError(f"{each.key}={each.text}: {error}{whole_hint(each)}") from error
            check_values(each, [job], line)
            data = data or cfg.data
            if cfg.data != data:
                raise ValueError(f"{each.key}={each.text}: trials on different data cannot be compared")
            if cfg.audit.test_every_epoch:
                raise ValueError("audit.test_every_epoch=true scores test, which a search must not see")

    def checked_jobs(self) -> Iterator[tuple[Dimension, list[str]]]:
        """For each choice and each end of a range, a job with it and the first values of the other settings."""
        first = {each.key: each.checked()[0] for each in self.dimensions}
        for each in self.dimensions:
            for value in each.checked():
                yield each, self.jobs(self.overrides({**first, each.key: value}))[0]


def check_values(dimension: Dimension, jobs: Sequence[Sequence[str]], line: CommandLine) -> None:
    """Raise ValueError, with the range, for values that no job can have."""
    try:
        check_jobs(jobs, line)
    except ValueError as error:
        raise ValueError(f"{dimension.key}={dimension.text}: {error}") from error


def whole_hint(dimension: Dimension) -> str:
    """Hint for an error, if an interval may have been meant as a range of integers; empty otherwise."""
    if isinstance(dimension, Numbers) and not dimension.whole and dimension.step is None:
        return f" (for whole numbers: {dimension.key}=int({dimension.text}))"
    return ""


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
        else:
            fixed.append(str(item.input_line))
    if not dimensions:
        raise ValueError(
            "there is nothing to search: give a setting a range, such as 'optimizer.lr=interval(0.001,0.01)', "
            "or choose a space of conf/search, such as search=residual"
        )
    for each in dimensions:
        if root(each.key) in NOT_THE_EXPERIMENT:
            raise ValueError(
                f"{each.key}={each.text}: {each.key} cannot change a result, so it is not searched"
            )
    for override in fixed:
        if override.lstrip("+").startswith("audit.test="):
            raise ValueError(f"{override}: a search does not score test; score the best settings after it")
    return Space(tuple(fixed), tuple(dimensions), seeds)


def seeds_of(item: Override) -> tuple[int, ...]:
    """The seeds of each trial, whose mean dev score is its score. A seed is never searched."""
    values: list[Any] = [item.value()]
    if item.is_discrete_sweep():
        values = [*item.sweep_iterator()]
    if not values or not all(type(value) is int and value >= 0 for value in values):
        raise ValueError(f"{item.input_line}: expected seeds, such as seed=1 or seed=1,2,3")
    if len({*values}) != len(values):
        raise ValueError(f"{item.input_line}: the seeds must be different")
    return tuple(values)


def dimension(item: Override) -> Dimension:
    """The range of an override. ValueError for one without values, or with an unknown tag."""
    key, text, value = item.get_key_element(), item.get_value_string(), item.value()
    tags = value.tags if isinstance(value, Sweep) else set()
    if unknown := {*tags} - {"log"}:
        raise ValueError(f"{item.input_line}: there is no tag {sorted(unknown)[0]!r}; there is: log")
    log = "log" in tags
    if isinstance(value, IntervalSweep):
        numbers = interval(key, text, value, log)
    elif isinstance(value, RangeSweep):
        numbers = number_range(key, text, value, log)
    else:
        values = tuple(dict.fromkeys(item.sweep_string_iterator()))
        if log or not values:
            why = "a choice has no logarithmic scale" if log else "nothing to choose from"
            raise ValueError(f"{item.input_line}: {why}")
        return Choice(key, text, values)
    if log and numbers.low <= 0:
        raise ValueError(f"{item.input_line}: a logarithmic range starts above 0")
    return numbers


def interval(key: str, text: str, value: IntervalSweep, log: bool) -> Numbers:
    low, high = value.start, value.end
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{key}={text}: an interval must go from a number to a larger one")
    if isinstance(low, int) and isinstance(high, int):
        return Numbers(key, text, low, high, 1, log)
    return Numbers(key, text, float(low), float(high), None, log)


def number_range(key: str, text: str, value: RangeSweep, log: bool) -> Numbers:
    values = [*value.range()] if value.step else []
    if not values:
        raise ValueError(f"{key}={text}: the range has no values")
    if log and abs(value.step) != 1:
        raise ValueError(f"{key}={text}: a logarithmic range has no step")
    if all(isinstance(each, int) for each in values):
        return Numbers(key, text, min(values), max(values), abs(value.step), log)
    if log:
        raise ValueError(
            f"{key}={text}: a logarithmic range must be of integers; for other numbers use an interval"
        )
    return Numbers(key, text, float(min(values)), float(max(values)), abs(float(value.step)), log)


# Spaces of conf/search


def names() -> list[str]:
    return conf.names("search")


def shipped(name: str) -> list[str]:
    """The overrides of conf/search/NAME.yaml. ValueError for a name that is not there."""
    if name not in names():
        raise ValueError(f"search={name}: there is no search {name!r}{did_you_mean(name, names())}")
    settings = safe_yaml.load(file_of(f"search/{name}"))
    return [f"{key}={value}" for key, value in settings.items()]
