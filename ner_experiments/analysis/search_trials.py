"""A search for settings by dev score: its trials, as stored in search.json, and tables of them.

There are no test scores here: a search neither computes nor reads one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from ner_experiments.utils.checks import (
    Count,
    Number,
    Rule,
    Seeds,
    String,
    Text,
    Texts,
    is_number,
    list_of,
    parsed,
)
from ner_experiments.utils.files import write_json
from ner_experiments.utils.text import percent, read_json_object
from ner_experiments.view.table import Grid

FOLDER = "searches"
"""Folder of the searches under `output_dir`, each in a folder of its own."""
FILE = "search.json"
COMPLETE, FAILED, RUNNING = "complete", "failed", "running"
Score = Annotated[float | None, Rule(lambda it: it is None or is_number(it), "a number or null")]
Scores = Annotated[tuple[float, ...], Rule(list_of(is_number), "a list of numbers")]
Shares = Annotated[
    Mapping[str, float],
    Rule(lambda it: isinstance(it, dict) and all(map(is_number, it.values())), "numbers by setting"),
]


@dataclass(frozen=True)
class Trial:
    """One point of the search space.

    overrides: the settings that vary. score: the mean of `scores`, one per seed, in [0, 1]; None unless complete.
    folders: the runs, in the order of the seeds. error: why it failed.
    """

    number: Count
    state: Text
    overrides: Texts
    score: Score = None
    scores: Scores = ()
    folders: Texts = ()
    seconds: Number = 0.0
    error: String = ""

    @property
    def varied_values(self) -> list[str]:
        """The values of the settings that vary, in the order of the ranges."""
        return [item.partition("=")[2] for item in self.overrides]

    @property
    def score_cell(self) -> str:
        """The score in percent, followed by those of the seeds if they are several."""
        of_seeds = f" ({' '.join(map(percent, self.scores))})" if len(self.scores) > 1 else ""
        return f"{percent(self.score)}{of_seeds}"


@dataclass(frozen=True)
class Search:
    """A search and its trials so far.

    metric: name of the score, such as F1. fixed, ranges: the overrides of all trials and those that vary, as typed.
    importance: share of the variance of the score that each varying setting explains alone; empty if unknown.
    """

    name: Text
    metric: Text
    fixed: Texts
    ranges: Texts
    seeds: Seeds
    n_trials: Count
    sampler: Text
    trials: tuple[Trial, ...] = ()
    importance: Shares = field(default_factory=dict)

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
        content = read_json_object(path)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return parsed(content, Search, f"{path}")


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


# Tables


def trials_grid(search: Search) -> Grid:
    """The complete trials, best first."""
    lines = [
        [f"{rank}", it.score_cell, *it.varied_values, f"{it.number}", ", ".join(it.folders)]
        for rank, it in enumerate(search.ranked, 1)
    ]
    headings = ("rank", f"dev {search.metric}", *search.keys, "trial", "runs")
    return Grid(headings, lines, "Trials by dev score", text=len(headings) - 1)


def importance_grid(search: Search) -> Grid:
    """The importance of each setting in percent of the variance, the largest first."""
    shares = sorted(search.importance.items(), key=lambda item: -item[1])
    lines = [[key, f"{100 * share:.0f} %"] for key, share in shares]
    return Grid(("setting", "importance"), lines, "Importance of the settings")


def expected_grid(search: Search) -> Grid:
    """The expected best score of each number of trials."""
    lines = [[f"{n}", percent(score)] for n, score in enumerate(expected_best(search.scores), 1)]
    return Grid(("trials", f"expected best dev {search.metric}"), lines)
