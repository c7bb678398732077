"""A search whose jobs are made up: what is proposed, reported and stored. Runs of real jobs: test_search_runs.py."""

import math
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import pytest
from omegaconf import OmegaConf
from optuna.samplers import TPESampler
from rich.console import Console
from sqlalchemy import Engine, event

from ner_experiments.analysis import search_trials
from ner_experiments.config.job import Job
from ner_experiments.launch import search, search_summary
from ner_experiments.launch.search_space import read_space
from ner_experiments.launch.search_study import OptunaSweeper, proposal_seed
from ner_experiments.launch.worker import Outcome

ROOT = ["data=toy_en", "model=stacked"]
WIDE = [*ROOT, "optimizer.lr=tag(log,interval(0.0001,0.1))", "layers=range(1,6)"]
SMALL = [*ROOT, "layers=range(1,4)", "model.hidden_size=choice(50,100)"]


@pytest.fixture(autouse=True, scope="module")
def _unsynchronized() -> Iterator[None]:
    """SQLite that does not wait for the disk at each of the thousands of transactions."""

    def connected(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", connected)
    yield
    event.remove(Engine, "connect", connected)


class KilledError(BaseException):
    """As SIGKILL: nothing after the job is executed."""


class MadeUp:
    """A search whose jobs return a score that their settings alone decide. kill: the number of jobs it survives."""

    def __init__(
        self,
        sampler: str = "TPESampler",
        *,
        kill: int = -1,
        broken: str = "",
        n_trials: int = 8,
        **settings: Any,
    ) -> None:
        chosen = OmegaConf.create({"_target_": f"optuna.samplers.{sampler}", "seed": 1})
        self.settings = OptunaSweeper(sampler=chosen, n_trials=n_trials, **settings)
        self.jobs: list[list[str]] = []
        self.kill, self.broken = kill, broken

    def sweep(self, arguments: list[str]) -> int:
        return search.run(read_space(arguments), self.settings, self.launch)

    def launch(self, jobs: Sequence[Job]) -> list[Outcome]:
        return [self.job([*job.overrides]) for job in jobs]

    def job(self, overrides: list[str]) -> Outcome:
        if len(self.jobs) == self.kill:
            raise KilledError
        self.jobs.append(overrides)
        if self.broken and self.broken in overrides:
            return Outcome(overrides, failed="out of memory")
        score = score_of(overrides)
        result = {"task": "mentions", "dev": {"f1": score}, "test": {"f1": 1 - score}, "seconds": 1.0}
        return Outcome(overrides, {**result, "folder": "/".join(["runs", *overrides[2:]])})


def score_of(overrides: Sequence[str]) -> float:
    """Highest at a rate of 0.01 with three layers; a seed adds what no setting changes."""
    settings = dict(item.split("=") for item in overrides)
    rate = float(settings.get("optimizer.lr", 0.01))
    depth, width = int(settings.get("layers", 3)), int(settings.get("model.hidden_size", 100))
    return (
        0.9
        - 0.1 * abs(math.log10(rate) + 2)
        - 0.01 * (depth - 3) ** 2
        - width / 1e4
        + int(settings["seed"]) / 1e3
    )


def run(sweeper: MadeUp, output: Path, arguments: list[str]) -> search_trials.Search:
    """The search after the sweeper's command."""
    sweeper.sweep([*arguments, f"output_dir={output}"])
    (path,) = output.glob("searches/*/search.json")
    return search_trials.read(path)


def storage_of(output: Path) -> str:
    (path,) = output.glob("searches/*/study.db")
    return f"sqlite:///{path}"


def points(found: search_trials.Search) -> list[tuple[str, ...]]:
    return [trial.overrides for trial in found.trials]


def test_the_objective_is_the_dev_score_and_test_is_stored_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The made-up test scores fall where dev rises. A finished run of an earlier sweep has one."""
    sweeper = MadeUp()
    found = run(sweeper, tmp_path, WIDE)
    assert [trial.score for trial in found.trials] == [score_of(job) for job in sweeper.jobs]
    assert found.ranked[0].score == max(map(score_of, sweeper.jobs))
    assert all("audit.test=false" in job for job in sweeper.jobs)
    printed = capsys.readouterr().out
    stored = (tmp_path / "searches" / found.name / "search.json").read_text()
    for job in sweeper.jobs:
        assert f"{100 * score_of(job):.2f}" in printed
        assert str(1 - score_of(job)) not in stored
        assert f"{100 * (1 - score_of(job)):.2f}" not in printed
    study = optuna.load_study(study_name=found.name, storage=storage_of(tmp_path))
    assert [trial.value for trial in study.trials] == [score_of(job) for job in sweeper.jobs]
    assert not any("test" in name for trial in study.trials for name in trial.user_attrs)


def test_its_points_are_those_of_optuna_itself(tmp_path: Path) -> None:
    """An oracle: Optuna's own loop with the same sampler, seeded anew for each trial."""
    sweeper = MadeUp(n_trials=12)
    found = run(sweeper, tmp_path, WIDE)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize")
    for number in range(12):
        study.sampler = TPESampler(seed=proposal_seed(1, number))
        trial = study.ask()
        rate = trial.suggest_float("optimizer.lr", 0.0001, 0.1, log=True)
        point = [f"optimizer.lr={float(f'{rate:.4g}')!r}", f"layers={trial.suggest_int('layers', 1, 5)}"]
        assert found.trials[number].overrides == tuple(point)
        study.tell(trial, score_of([*point, "seed=1"]))


def test_a_trial_is_the_mean_over_the_seeds(tmp_path: Path) -> None:
    found = run(MadeUp(n_trials=3, n_jobs=2), tmp_path, [*WIDE, "seed=1,2,6"])
    for trial in found.trials:
        scores = [score_of([*trial.overrides, f"seed={seed}"]) for seed in (1, 2, 6)]
        assert trial.scores == tuple(scores)
        assert trial.score == pytest.approx(sum(scores) / 3)
        assert [folder.split("/")[-2] for folder in trial.folders] == ["seed=1", "seed=2", "seed=6"]


@pytest.fixture(scope="module", params=[1, 3])
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[int, search_trials.Search]:
    """Jobs at a time, and the search that nobody killed."""
    return request.param, run(MadeUp(n_jobs=request.param), tmp_path_factory.mktemp("whole"), WIDE)


@pytest.mark.parametrize("kill", [4, 7])
def test_a_search_that_was_killed_goes_on_as_if_it_had_not_been(
    kill: int, whole: tuple[int, search_trials.Search], tmp_path: Path
) -> None:
    """An oracle: the same search without the break. The killed job is the only one that is started twice."""
    n_jobs, expected = whole
    killed = MadeUp(n_jobs=n_jobs, kill=kill)
    with pytest.raises(KilledError):
        killed.sweep([*WIDE, f"output_dir={tmp_path}/cut"])
    again = MadeUp(n_jobs=n_jobs)
    found = run(again, tmp_path / "cut", WIDE)
    assert [(trial.number, trial.overrides, trial.score) for trial in found.trials] == [
        (trial.number, trial.overrides, trial.score) for trial in expected.trials
    ]
    assert not any((tmp_path / "cut").glob("searches/*/running/*"))
    told = kill - kill % n_jobs  # whole batches; of the others the launcher finds the finished runs
    assert len(again.jobs) == 8 - told


def test_its_number_of_trials_includes_those_of_earlier_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, same, more, fewer = (MadeUp(n_trials=number) for number in (4, 4, 7, 2))
    begun = run(first, tmp_path, WIDE)
    assert run(same, tmp_path, WIDE) == begun
    longer = run(more, tmp_path, WIDE)
    assert longer.trials[:4] == begun.trials
    assert run(fewer, tmp_path, WIDE).trials == longer.trials
    assert [len(it.jobs) for it in (first, same, more, fewer)] == [4, 0, 3, 0]
    assert f"{begun.name}: 7 trials are done; stored in" in capsys.readouterr().out


@pytest.mark.parametrize("sampler", ["TPESampler", "RandomSampler"])
@pytest.mark.parametrize("n_jobs", [1, 4])
def test_every_point_of_a_small_space_is_run_once_and_the_search_ends(
    sampler: Any, n_jobs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweeper = MadeUp(sampler, n_trials=20, n_jobs=n_jobs)
    found = run(sweeper, tmp_path, SMALL)
    assert len(points(found)) == len({*points(found)}) == 6
    assert len(sweeper.jobs) == 6
    assert "All points of the search space were tried." in capsys.readouterr().out
    again = MadeUp(sampler, n_trials=20, n_jobs=n_jobs)
    assert run(again, tmp_path, SMALL) == found
    assert again.jobs == []


def test_a_failed_trial_is_recorded_and_printed_and_the_search_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It does not count as one of the trials for the next command, which tries its point once more."""
    broken = MadeUp(n_trials=6, broken="layers=2")
    found = run(broken, tmp_path, SMALL)
    assert [trial.error for trial in found.failed] == ["out of memory"] * 2
    assert len(found.ranked) == 4
    printed = capsys.readouterr().out
    for end in (": out of memory", "\n    out of memory"):  # when it ends, and in the summary
        line = rf"^trial \d+ failed: layers=2 model.hidden_size=\d+{end}$"
        assert len(re.findall(line, printed, re.MULTILINE)) == 2
    study = optuna.load_study(study_name=found.name, storage=storage_of(tmp_path))
    assert {study.trials[trial.number].state.name for trial in found.failed} == {"FAIL"}
    still = MadeUp(n_trials=6, broken="layers=2")
    assert still.sweep([*SMALL, f"output_dir={tmp_path}"]) == 1
    assert [job[3] for job in still.jobs] == ["layers=2", "layers=2"]
    repaired = MadeUp(n_trials=6)
    assert len(run(repaired, tmp_path, SMALL).ranked) == 4
    assert repaired.jobs == []  # what failed twice is left alone


def test_a_repaired_trial_counts(tmp_path: Path) -> None:
    run(MadeUp(n_trials=6, broken="layers=2"), tmp_path, SMALL)
    repaired = MadeUp(n_trials=6)
    found = run(repaired, tmp_path, SMALL)
    assert (len(repaired.jobs), len(found.ranked), found.failed) == (2, 6, [])
    assert [trial.state for trial in found.trials].count("failed") == 2


def test_a_trial_with_a_failed_seed_has_no_score(tmp_path: Path) -> None:
    found = run(MadeUp(n_trials=2, broken="seed=2"), tmp_path, [*WIDE, "seed=1,2"])
    assert [trial.state for trial in found.trials] == ["failed", "failed"]


def test_a_study_is_not_continued_with_other_settings(tmp_path: Path) -> None:
    run(MadeUp(n_trials=2, study_name="mine"), tmp_path, WIDE)
    assert (tmp_path / "searches/mine/study.db").exists()
    message = r"^mine was started with other settings: layers=range\(1,6\) .*, now layers=range\(1,4\)"
    with pytest.raises(ValueError, match=message):
        run(MadeUp(study_name="mine"), tmp_path, SMALL)
    assert (
        len(run(MadeUp(n_trials=3, study_name="mine"), tmp_path, [*WIDE[::-1], "logger=wandb"]).ranked) == 3
    )


def test_trials_on_other_data_are_those_of_a_search_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The data folder is no setting of a search, but its files decide the scores."""
    files = [f"data.files.{split}={split}.conll" for split in ("train", "dev")]
    search = ["data=conll", "data.name=mine", *files, "model=stacked", "layers=range(1,4)"]
    for name, tag in (("a", "S-PER"), ("b", "S-LOC"), ("moved", "S-PER")):
        (tmp_path / name).mkdir()
        for split in ("train", "dev"):
            (tmp_path / name / f"{split}.conll").write_text(f"Ada {tag}\n")

    def of(name: str, **settings: Any) -> dict[str, int]:
        place = [f"data_dir={tmp_path / name}", "data.folder=${data_dir}", f"output_dir={tmp_path / 'runs'}"]
        MadeUp(n_trials=2, **settings).sweep([*search, *place])
        paths = (tmp_path / "runs" / "searches").glob("*/search.json")
        return {path.parent.name: len(search_trials.read(path).trials) for path in paths}

    (first,) = of("a")
    assert of("moved") == {first: 2}
    assert len(of("b")) == 2
    (own,) = {*of("b")} - {first}
    assert re.fullmatch(rf"{first}-[0-9a-f]{{8}}", own)
    message = f"{first} has trials of other data, whose scores cannot be compared with new ones; this search is {own}"
    assert capsys.readouterr().out.count(message) == 2
    of("a", study_name="named")
    message = "^named has trials of other data, .*; choose another hydra.sweeper.study_name$"
    with pytest.raises(ValueError, match=message):
        of("b", study_name="named")


def test_trials_by_other_code_are_those_of_a_search_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    search = [*SMALL, f"output_dir={tmp_path}"]
    MadeUp(n_trials=1).sweep(search)
    monkeypatch.setattr("ner_experiments.launch.search.code_of", lambda cfg: {"mine": "edited"})
    MadeUp(n_trials=2).sweep([*search, "runtime.reuse=any"])
    assert "other code" not in capsys.readouterr().out
    MadeUp(n_trials=1).sweep(search)
    assert "has trials of other code, whose scores cannot be compared" in capsys.readouterr().out
    assert sorted(len(search_trials.read(path).trials) for path in tmp_path.glob("searches/*/*.json")) == [
        1,
        2,
    ]


def test_a_study_can_be_stored_in_another_database(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/other.db"
    found = run(MadeUp(n_trials=3, storage=storage), tmp_path / "outputs", WIDE)
    assert len(optuna.load_study(study_name=found.name, storage=storage).trials) == 3
    assert not (tmp_path / "outputs/searches" / found.name / "study.db").exists()


@pytest.mark.parametrize("storage", ["nonsense", "sqlite:////nowhere/at/all.db", None])
def test_a_database_that_cannot_be_opened_is_named(storage: str | None, tmp_path: Path) -> None:
    """None: a damaged one."""
    path = tmp_path / "searches/mine/study.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database" * 1000)
    message = f"^the database of the search, {storage or path}, cannot be opened: \\S"
    with pytest.raises(ValueError, match=message):
        run(MadeUp(study_name="mine", storage=storage), tmp_path, WIDE)


@pytest.mark.slow
def test_two_commands_that_are_killed_at_any_moment_run_no_point_twice(tmp_path: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_search as made_up; from pathlib import Path; "
    code += "print('ready', flush=True); made_up.run(made_up.MadeUp(n_trials=12), Path(sys.argv[2]), made_up.WIDE)"
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path / "cut")]
    rng, killed = random.Random(0), 0
    for _ in range(4):
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.3, 1.5))
        for process in processes:
            killed += process.poll() is None
            process.kill()
            process.communicate()
    assert killed > 1
    found = run(MadeUp(n_trials=12), tmp_path / "cut", WIDE)
    assert len(found.ranked) == len({*points(found)}) == 12
    assert all(trial.score == score_of([*trial.overrides, "seed=1"]) for trial in found.trials)


def test_the_setting_that_matters_is_the_important_one(tmp_path: Path) -> None:
    """An oracle by hand: without layers the made-up score depends on the rate, and on the width hardly."""
    ranges = ["optimizer.lr=tag(log,interval(0.0001,0.1))", "model.hidden_size=choice(50,100)"]
    found = run(MadeUp("RandomSampler", n_trials=30), tmp_path, [*ROOT, *ranges])
    assert found.importance["optimizer.lr"] > 0.9
    assert found.importance["model.hidden_size"] < 0.1
    assert sum(found.importance.values()) <= 1


def test_few_trials_say_nothing_of_importance(tmp_path: Path) -> None:
    assert run(MadeUp(n_trials=9), tmp_path, WIDE).importance == {}
    assert set(run(MadeUp(n_trials=10), tmp_path, WIDE).importance) == {"optimizer.lr", "layers"}


def test_the_tables_are_those_of_the_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(MadeUp(n_trials=12), tmp_path, [*WIDE, "seed=1,2"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["rank", "dev", "F1", "optimizer.lr", "layers", "trial"] in lines
    for rank, trial in enumerate(found.ranked[:10], 1):
        assert [str(rank), *trial.score_cell.split(), *trial.varied_values, str(trial.number)] in lines
    assert ["The", "best:", f"{found.ranked[0].folders[0]},", found.ranked[0].folders[1]] in lines
    best = search_trials.expected_best(found.scores)
    numbers = (1, 2, 3, 5, 10, 12)
    assert ["trials", "expected", "best", "dev", "F1"] in lines
    assert all([f"{number}", f"{100 * best[number - 1]:.2f}"] in lines for number in numbers)
    command = [
        "python",
        "run.py",
        "-m",
        *ROOT,
        f"output_dir={tmp_path}",
        *found.ranked[0].overrides,
        "seed=1,2",
    ]
    assert command in lines


def test_the_tables_fit_a_narrow_terminal_with_no_cell_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_summary, "make_console", partial(Console, width=40))
    found = run(MadeUp(n_trials=3), tmp_path, [*WIDE, "seed=1,2"])
    printed = capsys.readouterr().out
    drawn = printed[printed.index("rank") : printed.index("The best:")]
    assert max(map(len, drawn.splitlines())) <= 40
    words = [*drawn.split()]
    for trial in found.ranked:
        assert {*trial.score_cell.split(), *trial.varied_values, str(trial.number)} <= {*words}
    assert words.count("rank") > 1  # in each part


def test_the_command_line_imports_optuna_only_for_a_search() -> None:
    code = "import ner_experiments.commands.train, sys; sys.exit('optuna' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
