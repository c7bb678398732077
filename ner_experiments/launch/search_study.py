"""The Optuna study of a search, on disk; commands may share it, and may end at any time.

Optuna proposes points and stores them. This module decides which command runs a trial, and how a search resumes. A
running trial is locked by the command that runs it, and the lock is released however the command ends. The next command
takes over the trials of a dead one, and resumes their runs. No point is run twice, except that a failed one is tried
once more by the next command. Optuna is optional and slow to import, so functions import it where they use it.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.utils import instantiate
from omegaconf import MISSING

from ner_experiments.analysis import search_trials
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.launch.search_space import MAX_POINTS, Space
from ner_experiments.launch.worker import Outcome
from ner_experiments.tables.experiments import output_dir
from ner_experiments.utils.files import json_digest
from ner_experiments.utils.locks import hold_lock, is_held

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage, RDBStorage
    from optuna.trial import FrozenTrial, Trial

DATABASE, LOCKS = "study.db", "running"
SETTINGS, MADE_FROM, METRIC = "settings", "made_from", "metric"
"""Attributes of a study: the settings that its trials share, those that vary, digests of the data and the code that
its runs are made from, and the name of the score.
"""
OVERRIDES, ERROR, AGAIN, DROPPED = ("overrides", "error", "again", "dropped")
SCORES, FOLDERS, SECONDS = ("scores", "folders", "seconds")
"""Attributes of a trial. One without overrides was never run: it repeats another, or its command died."""
MIN_TRIALS = 10
"""Complete trials below which the importance of settings is not estimated."""


@dataclass
class TPESampler:
    """`hydra/sweeper/sampler=tpe`: after `n_startup_trials` random trials, points similar to the best so far.

    constant_liar: running trials count as bad ones, so that the points of a batch are spread out.
    """

    _target_: str = "optuna.samplers.TPESampler"
    seed: int = 1
    n_startup_trials: int = 10
    constant_liar: bool = True


@dataclass
class RandomSampler:
    """`hydra/sweeper/sampler=random`: independent points."""

    _target_: str = "optuna.samplers.RandomSampler"
    seed: int = 1


@dataclass
class OptunaSweeper:
    """Proposes points of the search space, runs each with every seed, and reports the mean dev score to Optuna.

    n_trials: how many complete trials the search has at its end, including those of earlier commands.
    n_jobs: how many trials are proposed at a time; they run side by side.
    study_name: by default the settings that vary, and a digest of all settings.
    storage: a database of Optuna, such as postgresql://...; by default a file below `output_dir`.
    """

    defaults: list[Any] = field(default_factory=lambda: [{"sampler": "tpe"}])
    sampler: Any = MISSING
    n_trials: int = 20
    n_jobs: int = 1
    study_name: str | None = None
    storage: str | None = None


class SearchStudy:
    """The trials of a search by the sweeper of these settings. locks: those of the trials that this command runs."""

    def __init__(
        self,
        folder: Path,
        study: Study,
        database: BaseStorage,
        space: Space,
        sweeper: OptunaSweeper,
        locks: ExitStack,
    ) -> None:
        self.folder, self.study, self.database, self.space = folder, study, database, space
        self.sweeper, self.locks = sweeper, locks
        self.started = time.time()
        self.exhausted = False

    def locked(self) -> AbstractContextManager[bool]:
        """Context in which no other command changes the study."""
        return hold_lock(self.folder, wait=True)

    def trials(self) -> list[FrozenTrial]:
        """The trials that were run or are running, without points that were only proposed."""
        return [trial for trial in self.study.get_trials(deepcopy=False) if OVERRIDES in trial.user_attrs]

    def in_state(self, state: str) -> list[FrozenTrial]:
        return [trial for trial in self.trials() if trial.state.name == state]

    def next_trials(self) -> list[Trial]:
        """The next batch, at most `n_jobs`; empty if the search has its `n_trials`, or all points were tried.

        Complete trials count towards `n_trials`, as do those that other commands are running and those that failed
        since this command started.
        """
        self.locks.close()  # the trials of the last batch have ended
        with self.locked():
            running = self.in_state("RUNNING")
            abandoned = [trial for trial in running if not is_held(self.lock(trial.number))]
            self.drop_unfinished_proposals()
            failed = [trial for trial in self.in_state("FAIL") if self.is_new(trial)]
            done = len(self.in_state("COMPLETE")) + len(failed) + len(running) - len(abandoned)
            number = min(self.sweeper.n_jobs, self.sweeper.n_trials - done)
            batch = [self.take_over(trial) for trial in abandoned[: max(number, 0)]]
            if number > len(batch):
                self.enqueue_failed()
            while len(batch) < number and (trial := self.propose()) is not None:
                batch.append(trial)
            for folder in (self.lock(trial.number) for trial in batch):
                self.locks.enter_context(hold_lock(folder, wait=True))
                self.locks.callback(shutil.rmtree, folder, ignore_errors=True)
            return batch

    def lock(self, number: int) -> Path:
        """The folder whose lock the command holds that runs the trial of this number."""
        return self.folder / LOCKS / str(number)

    def is_new(self, trial: FrozenTrial) -> bool:
        """Whether a trial ended after this command had started."""
        assert trial.datetime_complete is not None
        return trial.datetime_complete.timestamp() >= self.started

    def take_over(self, trial: FrozenTrial) -> Trial:
        from optuna.trial import Trial

        study_id = self.database.get_study_id_from_name(self.study.study_name)
        trial_id = self.database.get_trial_id_from_study_id_trial_number(study_id, trial.number)
        return Trial(self.study, trial_id)

    def drop_unfinished_proposals(self) -> None:
        """Mark proposals as failed whose command was killed before it recorded them, so that they are made again."""
        from optuna.trial import TrialState

        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if OVERRIDES not in trial.user_attrs:
                self.take_over(trial).set_user_attr(DROPPED, True)
                self.study.tell(trial.number, state=TrialState.FAIL)

    def enqueue_failed(self) -> None:
        """Queue points again that failed only once, before this command: the machine may have been the cause."""
        times = Counter(overrides_of(trial) for trial in self.trials())
        queued = {trial.user_attrs.get(AGAIN) for trial in self.study.get_trials(deepcopy=False)}
        for trial in self.in_state("FAIL"):
            once = times[overrides_of(trial)] == 1 and trial.number not in queued
            if once and not self.is_new(trial):
                self.study.enqueue_trial(trial.params, user_attrs={AGAIN: trial.number})

    def propose(self) -> Trial | None:
        """A trial at an untried point; None if all points were tried.

        Each proposal has a sampler of its own, so that an interrupted search proposes the same points as an
        uninterrupted one. In a small space, samplers repeat points. An untried one is then drawn at random.
        """
        from optuna.trial import TrialState

        tried = {overrides_of(trial) for trial in self.trials()}
        while True:
            number = sum(DROPPED not in trial.user_attrs for trial in self.study.get_trials(deepcopy=False))
            self.study.sampler = instantiate(
                self.sweeper.sampler, seed=proposal_seed(self.sweeper.sampler.seed, number)
            )
            trial = self.study.ask(self.space.distributions)
            overrides = self.space.overrides(trial.params)
            if tuple(overrides) not in tried or AGAIN in trial.user_attrs:
                trial.set_user_attr(OVERRIDES, overrides)
                return trial
            self.study.tell(trial, state=TrialState.FAIL)
            if self.space.size > MAX_POINTS:
                continue  # the next proposal has another seed
            if not (left := self.space.untried(tried)):
                self.exhausted = True
                return None
            self.study.enqueue_trial(random.Random(number).choice(left))

    def overrides(self, trial: Trial) -> list[str]:
        return [*trial.user_attrs[OVERRIDES]]

    def progress(self) -> str:
        done, n_trials = len(self.in_state("COMPLETE")), self.sweeper.n_trials
        return f"{done} of {n_trials} trials are done" if done <= n_trials else f"{done} trials are done"

    def record(self, trial: Trial, jobs: Sequence[Outcome]) -> bool:
        """Report the outcome of a trial's jobs to Optuna, and print it; False if one of them failed.

        A result of an earlier run may have a test score. Only its dev score is read.
        """
        from optuna.trial import TrialState

        point = " ".join(self.overrides(trial))
        if error := next((job.failed for job in jobs if job.failed), ""):
            with self.locked():
                trial.set_user_attr(ERROR, error)
                self.study.tell(trial, state=TrialState.FAIL)
            print(f"trial {trial.number} failed: {point}: {error}", flush=True)
            return False
        runs = [job.result for job in jobs]
        metric, name = PRIMARY_METRIC[runs[0]["task"]]
        scores = [float(run["dev"][metric]) for run in runs]
        mean = sum(scores) / len(scores)
        with self.locked():
            self.study.set_user_attr(METRIC, name)
            trial.set_user_attr(SCORES, scores)
            trial.set_user_attr(FOLDERS, [run["folder"] for run in runs])
            trial.set_user_attr(SECONDS, sum(run["seconds"] for run in runs))
            self.study.tell(trial, mean)
        best = 100 * self.study.best_value
        print(f"trial {trial.number}: dev {name} {100 * mean:.2f}, best {best:.2f}: {point}", flush=True)
        return True

    def write(self, *, at_end: bool = False) -> search_trials.Search:
        """Write search.json for the report, which needs no Optuna, and return its content.

        Importance takes seconds if there are many trials, so it is estimated only at the end of a command.
        """
        importance = self.importance() if at_end else {}
        with self.locked():
            content = search_trials.Search(
                name=self.study.study_name,
                metric=self.study.user_attrs.get(METRIC, "score"),
                fixed=self.space.fixed,
                ranges=tuple(self.space.ranges),
                seeds=self.space.seeds,
                n_trials=self.sweeper.n_trials,
                sampler=sampler_name(self.sweeper),
                trials=tuple(map(record, self.trials())),
                importance=importance,
            )
            search_trials.write(content, self.folder / search_trials.FILE)
        return content

    def importance(self) -> dict[str, float]:
        """Share of the variance of the score that each setting explains alone; empty for few or equal scores.

        fANOVA (Hutter et al. 2014), by Optuna: a random forest is fitted to the complete trials.
        """
        values = [trial.value for trial in self.in_state("COMPLETE")]
        if len(values) < MIN_TRIALS or len({*values}) < 2 or len(self.space.dimensions) < 2:
            return {}
        from optuna.importance import FanovaImportanceEvaluator, get_param_importances

        importances = get_param_importances(
            self.study, evaluator=FanovaImportanceEvaluator(seed=0), normalize=False
        )
        return {key: float(share) for key, share in importances.items()}


def overrides_of(trial: FrozenTrial) -> tuple[str, ...]:
    return tuple(trial.user_attrs[OVERRIDES])


def record(trial: FrozenTrial) -> search_trials.Trial:
    state = {"COMPLETE": search_trials.COMPLETE, "FAIL": search_trials.FAILED}.get(
        trial.state.name, search_trials.RUNNING
    )
    attrs: Mapping[str, Any] = trial.user_attrs
    complete = state == search_trials.COMPLETE
    return search_trials.Trial(
        number=trial.number,
        state=state,
        overrides=overrides_of(trial),
        score=trial.value if complete else None,
        scores=tuple(attrs.get(SCORES, ())),
        folders=tuple(attrs.get(FOLDERS, ())),
        seconds=attrs.get(SECONDS, 0.0),
        error=attrs.get(ERROR, ""),
    )


def sampler_name(sweeper: OptunaSweeper) -> str:
    return f"{sweeper.sampler._target_.rpartition('.')[2]}, seed {sweeper.sampler.seed}"


def proposal_seed(seed: int, number: int) -> int:
    """A 32-bit seed, computed from the seed of the search and the number of the proposal."""
    return int(hashlib.sha256(f"{seed} {number}".encode()).hexdigest()[:8], 16)


@contextmanager
def open_study(space: Space, sweeper: OptunaSweeper, made_from: Mapping[str, str]) -> Iterator[SearchStudy]:
    """Context with the study of a search, created if missing; if its trials are of other data or code, one beside.

    made_from: "data" and, unless any code counts, "code" -> a digest of what its runs are made from. Raises ValueError
    if a study that the user has named has trials of others, and if the study was created with other settings.
    """
    import optuna  # takes a third of a second

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    name = sweeper.study_name or space.name(sampler_name(sweeper))
    folder = output_dir(space.fixed) / search_trials.FOLDER / name
    study, database = load_study(folder, sweeper.storage, space, made_from)
    before = study.user_attrs.get(MADE_FROM, {})
    other = " and ".join(name for name, digest in made_from.items() if before.get(name) != digest)
    if other:
        message = f"{folder.name} has trials of other {other}, whose scores cannot be compared with new ones"
        if sweeper.study_name is not None:
            raise ValueError(f"{message}; choose another hydra.sweeper.study_name")
        folder = folder.with_name(f"{folder.name}-{json_digest(made_from)[:8]}")
        print(f"{message}; this search is {folder.name}", flush=True)
        study, database = load_study(folder, sweeper.storage, space, made_from)
    with ExitStack() as locks:
        yield SearchStudy(folder, study, database, space, sweeper, locks)


def load_study(
    folder: Path, storage: str | None, space: Space, made_from: Mapping[str, str]
) -> tuple[Study, BaseStorage]:
    """The study, created if it does not exist, and its database.

    Raises ValueError if the database cannot be opened, and if the study was created with other settings.
    """
    import optuna

    with hold_lock(folder, wait=True):
        try:
            database = optuna.storages.get_storage(storage or sqlite(folder / DATABASE))
            study = optuna.create_study(
                storage=database, study_name=folder.name, direction="maximize", load_if_exists=True
            )
        except Exception as error:  # of Optuna, SQLAlchemy or a database's driver
            place = storage or folder / DATABASE
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise ValueError(f"the database of the search, {place}, cannot be opened: {reason}") from error
        settings = space.settings()
        made = study.user_attrs.get(SETTINGS)
        if made is None:
            study.set_user_attr(SETTINGS, settings)
            study.set_user_attr(MADE_FROM, dict(made_from))
        elif made != settings:
            was, now = ({item for items in each.values() for item in items} for each in (made, settings))
            raise ValueError(
                f"{folder.name} was started with other settings: {' '.join(sorted(was - now)) or '(fewer)'}, "
                f"now {' '.join(sorted(now - was)) or '(fewer)'}; choose another hydra.sweeper.study_name"
            )
        return study, database


def sqlite(path: Path) -> RDBStorage:
    """SQLite storage, whose transactions survive a command that is killed while it writes."""
    from optuna.storages import RDBStorage
    from sqlalchemy import URL

    return RDBStorage(
        URL.create("sqlite", database=str(path)).render_as_string(),
        engine_kwargs={"connect_args": {"timeout": 60}},
    )
