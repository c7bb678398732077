"""`hydra/sweeper=optuna`: a search for settings by dev score, with Optuna's samplers and the suite's launchers.

Hydra's own plugin is not used: its newest release, hydra-optuna-sweeper 1.3.0, requires optuna<3 (its port to Optuna 4,
pull request 3211 of Hydra, is merged but not released). The syntax is the plugin's, with three differences: `range`
excludes its end, the seed is never searched, and the n_trials of an interrupted search include those already done.

Hydra imports this file at every start, so what is slow to import is imported where it is used.
"""

import functools
import hashlib
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hydra.core.utils import JobReturn
from omegaconf import MISSING

from ner_experiments.analysis import search_trials
from ner_experiments.config.compose import compose
from ner_experiments.config.job import CommandLine, Job
from ner_experiments.config.launch_settings import INSTALL, composed
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.experiment_data import Fingerprints
from ner_experiments.launch import search_space
from ner_experiments.launch.sweeper import TableSweeper, exit_refused
from ner_experiments.launch.worker import Outcome
from ner_experiments.runs.code import code_of, digest
from ner_experiments.runs.progress import format_duration
from ner_experiments.tables.experiments import joined, key, output_dir
from ner_experiments.utils.files import json_digest

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial

    from ner_experiments.launch.search_study import SearchStudy

SWEEPER = "hydra/sweeper=optuna"
SPACE = "search"
"""`search=NAME` on the command line stands for the ranges of conf/search/NAME.yaml."""
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
NOT_OF_A_SEARCH = {
    "table": "a search has no table",
    "sweep.name": "a search is named by hydra.sweeper.study_name",
    **dict.fromkeys(
        ("sweep.register", "sweep.primary"),
        "a search chooses by dev and tests nothing; register a sweep over what it has found, with new seeds",
    ),
}


@dataclass
class TPESamplerConfig:
    """`hydra/sweeper/sampler=tpe`: after `n_startup_trials` random trials, points similar to the best so far.

    constant_liar: running trials count as bad ones, so that the points of a batch are spread out.
    """

    _target_: str = "optuna.samplers.TPESampler"
    _partial_: bool = True
    seed: int = 1
    n_startup_trials: int = 10
    constant_liar: bool = True


@dataclass
class RandomSamplerConfig:
    """`hydra/sweeper/sampler=random`: independent points."""

    _target_: str = "optuna.samplers.RandomSampler"
    _partial_: bool = True
    seed: int = 1


@dataclass
class OptunaSweeperConfig:
    """n_trials: how many complete trials the search has at its end, including those of earlier commands.

    n_jobs: how many trials are proposed at a time; they run side by side.
    study_name: by default the settings that vary, and a digest of all settings.
    storage: a database of Optuna, such as postgresql://...; by default a file below `output_dir`.
    """

    _target_: str = "hydra_plugins.ner_experiments_plugins.OptunaSweeper"
    defaults: list[Any] = field(default_factory=lambda: [{"sampler": "tpe"}])
    sampler: Any = MISSING
    n_trials: int = 20
    n_jobs: int = 1
    study_name: str | None = None
    storage: str | None = None


class OptunaSweeper(TableSweeper):
    """Proposes points of the search space, runs each with every seed, and reports the mean dev score to Optuna."""

    def __init__(
        self,
        sampler: "functools.partial[BaseSampler]",
        n_trials: int,
        n_jobs: int,
        study_name: str | None,
        storage: str | None,
    ) -> None:
        self.sampler, self.n_trials, self.n_jobs = sampler, n_trials, n_jobs
        self.study_name, self.storage = study_name, storage

    def sweep(self, arguments: list[str]) -> Sequence[JobReturn]:
        from ner_experiments.launch import search_study, search_summary  # slow to import: Optuna

        space = self.plan
        assert isinstance(space, search_space.Space)
        name = self.study_name or space.name(self.sampler_name)
        try:
            with search_study.open_study(
                output_dir(space.fixed) / search_trials.FOLDER / name,
                self.storage,
                space,
                fingerprints_of(space),
                self.make_sampler,
                is_named=self.study_name is not None,
            ) as study:
                print(
                    f"{study.folder.name}: {study.progress(self.n_trials)}; stored in {study.folder}",
                    flush=True,
                )
                failed = self.search(study)
                content = study.write(self.n_trials, self.sampler_name, at_end=True)
        except (ValueError, OSError) as error:
            exit_refused(error)
        search_summary.show(content, exhausted=study.exhausted)
        if failed:
            sys.exit(1)
        return []

    def search(self, study: "SearchStudy") -> int:
        """Run trials until the search has `n_trials`; return how many failed."""
        failed, ended, began = 0, 0, time.monotonic()
        while batch := study.next_trials(self.n_jobs, self.n_trials):
            points = [study.overrides(trial) for trial in batch]
            jobs = [
                Job(tuple(job), study.study.study_name, " ".join(point))
                for point in points
                for job in study.space.jobs(point)
            ]
            results = iter(self.launch(jobs))
            for trial in batch:
                failed += not record_trial(study, trial, [next(results) for _ in study.space.seeds])
            study.write(self.n_trials, self.sampler_name)
            ended += len(batch)
            if (remaining := self.n_trials - len(study.in_state("COMPLETE")) - failed) > 0:
                left = format_duration((time.monotonic() - began) / ended * remaining)
                print(f"{study.progress(self.n_trials)}, about {left} left", flush=True)
        return failed

    def make_sampler(self, number: int) -> "BaseSampler":
        """The sampler for one proposal, with a seed of its own."""
        return self.sampler(seed=proposal_seed(self.sampler.keywords["seed"], number))

    @property
    def sampler_name(self) -> str:
        return f"{self.sampler.func.__name__}, seed {self.sampler.keywords['seed']}"


def fingerprints_of(space: search_space.Space) -> dict[str, str]:
    """Digests of what the runs of a search are made from at any point: the data with the files of inputs, and the code.

    With runtime.reuse=any the code does not count.
    """
    configs = [compose(job) for _, job in space.checked_jobs()]
    found = {"data": json_digest(sorted({*map(Fingerprints(), configs)}))}
    if configs[0].runtime.reuse != "any":
        found["code"] = json_digest(sorted({digest(code_of(cfg)) for cfg in configs}))
    return found


def proposal_seed(seed: int, number: int) -> int:
    """A 32-bit seed, computed from the seed of the search and the number of the proposal."""
    return int(hashlib.sha256(f"{seed} {number}".encode()).hexdigest()[:8], 16)


def record_trial(study: "SearchStudy", trial: "Trial", jobs: Sequence[Outcome]) -> bool:
    """Report the outcome of a trial's jobs to Optuna, and print it; False if one of them failed.

    A result of an earlier run may have a test score. Only its dev score is read.
    """
    point = " ".join(study.overrides(trial))
    if error := next((job.failed for job in jobs if job.failed), ""):
        study.fail(trial, error)
        print(f"trial {trial.number} failed: {point}: {error}", flush=True)
        return False
    runs = [job.result for job in jobs]
    metric, name = PRIMARY_METRIC[runs[0]["task"]]
    scores = [float(run["dev"][metric]) for run in runs]
    study.succeed(trial, name, scores, [run["folder"] for run in runs], sum(run["seconds"] for run in runs))
    score, best = 100 * sum(scores) / len(scores), 100 * study.study.best_value
    print(f"trial {trial.number}: dev {name} {score:.2f}, best {best:.2f}: {point}", flush=True)
    return True


# The command line


def expanded(overrides: Sequence[str], *, sweep: bool) -> list[str]:
    """The overrides with `search=NAME` replaced by its ranges. ValueError for a search without -m or Optuna."""
    named = [item for item in overrides if key(item) == SPACE]
    if not named and SWEEPER not in overrides:
        return [*overrides]
    if not sweep:
        raise ValueError(f"{(named or [SWEEPER])[0]} is a search: add -m")
    if find_spec("optuna") is None:
        raise ValueError(INSTALL[SWEEPER][1])
    ranges = [item for each in named for item in search_space.shipped(each.partition("=")[2])]
    return [*joined([SWEEPER], ranges, [item for item in overrides if item not in named])]


def planned(line: CommandLine) -> search_space.Space:
    """The space of a search. ValueError for settings and ranges that it cannot have, whose ends are all composed."""
    for name, item in line.sweep.items():
        raise ValueError(f"{item}: {NOT_OF_A_SEARCH.get(name, 'a search takes seeds as seed=1,2,3')}")
    check_name(line.hydra)
    space = search_space.read_space(line.experiment)
    space.check(line)
    return space


def check_name(overrides: tuple[str, ...]) -> None:
    """Raise ValueError if an override for Hydra names no setting, or the study by what can be no folder."""
    name = composed(overrides).sweeper.study_name
    if name is not None and not NAME.fullmatch(name):
        raise ValueError(
            f"hydra.sweeper.study_name names a folder: letters, digits, '.', '_' and '-', got {name!r}"
        )
