"""A search for settings by dev score: its trials, as stored in search.json, and statistics of them.

There are no test scores here: a search neither computes nor reads one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import accumulate
from pathlib import Path
from typing import Any

from ner_experiments.utils.checks import is_number
from ner_experiments.utils.files import write_json
from ner_experiments.utils.text import truncated_repr

FOLDER = "searches"
"""Folder of the searches under `output_dir`, each in a folder of its own."""
FILE = "search.json"
COMPLETE, FAILED, RUNNING = "complete", "failed", "running"


@dataclass(frozen=True)
class Trial:
    """One point of the search space.

    overrides: the settings that vary. score: the mean of `scores`, one per seed, in [0, 1]; None unless complete.
    folders: the runs, in the order of the seeds. error: why it failed.
    """

    number: int
    state: str
    overrides: tuple[str, ...]
    score: float | None = None
    scores: tuple[float, ...] = ()
    folders: tuple[str, ...] = ()
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Search:
    """A search and its trials so far.

    metric: name of the score, such as F1. fixed, ranges: the overrides of all trials and those that vary, as typed.
    importance: share of the variance of the score that each varying setting explains alone; empty if unknown.
    """

    name: str
    metric: str
    fixed: tuple[str, ...]
    ranges: tuple[str, ...]
    seeds: tuple[int, ...]
    n_trials: int
    sampler: str
    trials: tuple[Trial, ...] = ()
    importance: Mapping[str, float] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        """The settings that vary."""
        return [item.partition("=")[0] for item in self.ranges]

    @property
    def ranked(self) -> list[Trial]:
        """The complete trials, best first; of equal ones the earlier first."""
        complete = [trial for trial in self.trials if trial.state == COMPLETE]
        return sorted(complete, key=lambda trial: (-(trial.score or 0.0), trial.number))

    @property
    def failed(self) -> list[Trial]:
        """The last failure of each point that was never completed."""
        failed = {trial.overrides: trial for trial in self.trials if trial.state == FAILED}
        complete = {trial.overrides for trial in self.ranked}
        return [trial for point, trial in failed.items() if point not in complete]

    @property
    def scores(self) -> list[float]:
        """Scores of the complete trials in the order in which they were proposed."""
        return [trial.score for trial in self.trials if trial.score is not None]

    def command(self, trial: Trial) -> list[str]:
        """The command that trains the trial's settings and scores test, or only scores test if they are trained."""
        seeds = ",".join(map(str, self.seeds))
        program = ["python", "run.py", *(["-m"] if len(self.seeds) > 1 else [])]
        return [*program, *self.fixed, *trial.overrides, f"seed={seeds}"]


def write(search: Search, path: Path) -> None:
    write_json(path, asdict(search))


def read(path: Path) -> Search:
    """The search of a search.json. ValueError, with the path, for a file that is not one; OSError as `open`."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        trials = tuple(
            Trial(**{name: as_tuple(value) for name, value in each.items()}) for each in content["trials"]
        )
        plain = {name: as_tuple(value) for name, value in content.items()}
        search = Search(**{**plain, "trials": trials})
        parts: list[Search | Trial] = [search, *trials]
        for part in parts:
            check_types(part)
        return search
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is not a valid search.json: {error!r}") from error


def check_types(part: Search | Trial) -> None:
    """Raise TypeError for a field that is not of its type."""
    for each in fields(part):
        if not IS_OF[str(each.type)](value := getattr(part, each.name)):
            raise TypeError(f"{each.name} must be {each.type}, got {truncated_repr(value)}")


def tuple_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and all(map(fits, value))


IS_OF: Mapping[str, Callable[[Any], bool]] = {
    "int": lambda value: type(value) is int,
    "str": lambda value: isinstance(value, str),
    "float": is_number,
    "float | None": lambda value: value is None or is_number(value),
    "tuple[str, ...]": tuple_of(lambda value: isinstance(value, str)),
    "tuple[int, ...]": tuple_of(lambda value: type(value) is int),
    "tuple[float, ...]": tuple_of(is_number),
    "tuple[Trial, ...]": tuple_of(lambda value: isinstance(value, Trial)),
    "Mapping[str, float]": lambda value: isinstance(value, dict) and all(map(is_number, value.values())),
}
"""Whether a value from JSON is of the type of a field."""


def as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def expected_best(scores: Sequence[float]) -> list[float]:
    """Expected maximum of n draws from the scores, with replacement, for n = 1, 2, ... up to their number.

    Dodge et al. (2019), "Show Your Work", eq. 7: the sum over the sorted scores of v (P(V <= v)^n - P(V < v)^n), where
    P is the empirical distribution. It estimates the best score of n trials if the trials were drawn independently,
    as random search draws them.
    """
    ordered, total = sorted(scores), len(scores)
    return [
        sum(
            score * ((rank / total) ** n - ((rank - 1) / total) ** n) for rank, score in enumerate(ordered, 1)
        )
        for n in range(1, total + 1)
    ]


def best_so_far(scores: Sequence[float]) -> list[float]:
    """The maximum of the first n scores, for n = 1, 2, ..."""
    return list(accumulate(scores, max))


def varied_values(trial: Trial) -> list[str]:
    """The values of the settings that vary, in the order of the ranges."""
    return [item.partition("=")[2] for item in trial.overrides]
