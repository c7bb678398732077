"""Searches by the command line, with runs that are trained: killed, side by side, by two commands, and without test."""

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
from places import ROOT
from waiting import until

from ner_experiments.analysis import search_trials
from ner_experiments.analysis.search_trials import Search

TINY = ["data.max_sentences=60", "chars=none", "trainer.max_epochs=2", "runtime.accelerator=cpu"]
SPACE = ["optimizer.lr=tag(log,interval(0.005,0.1))", "model.hidden_size=choice(8,16)"]


def start(output: Path, *arguments: str, n_trials: int = 4) -> forked.Command:
    own = {item.partition("=")[0]: item for item in (*TINY, *SPACE, *arguments)}
    sweeper = ["-m", "hydra/sweeper=optuna", f"hydra.sweeper.n_trials={n_trials}"]
    return forked.Command(*sweeper, *own.values(), f"output_dir={output}")


def finish(command: forked.Command) -> str:
    result = command.finish()
    printed = result.stdout + result.stderr
    assert result.returncode == 0, printed
    return printed


def search_of(output: Path) -> Search:
    (path,) = output.glob("searches/*/search.json")
    return search_trials.read(path)


def metrics(output: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(output.glob("*/seed-*/metrics.json"))]


def test_a_search_sees_no_test_score_and_its_last_command_scores_test_once(tmp_path: Path) -> None:
    result = start(tmp_path, n_trials=2).finish()
    assert result.returncode == 0, result.stderr
    printed = result.stderr + result.stdout
    assert all("test" not in each for each in metrics(tmp_path))
    assert not any(tmp_path.rglob("test.conll"))
    assert re.findall(r"^.*(?<!audit\.)\btest\b.*$", printed, re.MULTILINE) == [
        "The search scored no trial on test. The best settings, on test:"
    ]
    found = search_of(tmp_path)
    best = {trial.folders[0]: trial.score for trial in found.trials}
    assert best == {
        str(path.parent): json.loads(path.read_text())["dev"]["f1"] for path in tmp_path.rglob("metrics.json")
    }
    python, script, *arguments = shlex.split(printed.splitlines()[-1])
    assert (python, script) == ("python", "run.py")
    assert forked.run(*arguments).returncode == 0
    tested = [each for each in metrics(tmp_path) if "test" in each]
    assert len(tested) == 1
    assert tested[0]["dev"]["f1"] == found.ranked[0].score


@pytest.mark.slow
def test_a_search_that_is_killed_in_a_trial_resumes_its_run_and_ends_as_without_the_kill(
    tmp_path: Path,
) -> None:
    """An oracle: the same search in another folder, which is not killed."""
    longer = ["trainer.max_epochs=6", "trainer.patience=6", "runtime.checkpoint_seconds=0"]
    finish(start(tmp_path / "whole", *longer))
    process = start(tmp_path / "cut", *longer)
    until(
        lambda: (
            len([*(tmp_path / "cut").glob("*/seed-1/last.ckpt")]) == 1 and len(metrics(tmp_path / "cut")) == 2
        )
    )
    process.send_signal(signal.SIGKILL)
    assert process.finish().returncode == -signal.SIGKILL
    assert len(metrics(tmp_path / "cut")) < 4
    printed = finish(start(tmp_path / "cut", *longer))
    assert "2 of 4 trials are done" in printed
    assert "resuming from last.ckpt" in printed
    whole, cut = (
        [(trial.overrides, trial.score) for trial in search_of(tmp_path / name).trials]
        for name in ("whole", "cut")
    )
    assert cut == whole
    assert "| epoch" not in finish(start(tmp_path / "cut", *longer))


@pytest.mark.slow
def test_trials_run_side_by_side_each_in_a_process_of_its_own(tmp_path: Path) -> None:
    local = ["hydra/launcher=local", "hydra.launcher.jobs=2", "hydra.sweeper.n_jobs=2"]
    printed = finish(start(tmp_path, *local))
    assert (
        re.findall(r"\d of \d done(?:, \d running)?", printed)
        == ["1 of 2 done, 1 running", "2 of 2 done"] * 2
    )
    assert len(search_of(tmp_path).ranked) == len(metrics(tmp_path)) == 4
    assert all("test" not in each for each in metrics(tmp_path))


@pytest.mark.slow
def test_a_run_of_an_earlier_sweep_is_not_trained_again(tmp_path: Path) -> None:
    """Its test score, which it has, is not shown."""
    small = ["model.hidden_size=8,16", "optimizer.lr=choice(0.02,0.05)"]
    sweep = [
        sys.executable,
        str(ROOT / "run.py"),
        "-m",
        *TINY,
        "data=toy_en",
        *small,
        f"output_dir={tmp_path}",
    ]
    subprocess.run(sweep, check=True, capture_output=True, timeout=300)
    printed = finish(start(tmp_path, *small, n_trials=9))
    assert "| epoch" not in printed
    assert len(search_of(tmp_path).ranked) == 4
    assert "All points of the search space were tried." in printed
    assert "test F1" not in printed
