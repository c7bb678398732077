"""Interrupted runs and sweeps: they resume, end with the same bits, and nothing is done twice."""

import csv
import random
import re
import shutil
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM, Signals, raise_signal
from typing import Any

import killed
import pytest
import torch
from logged import scalars
from omegaconf import DictConfig
from resumed import RUN, SWEEP, TINY, lines_of, outcome, stamps

from ner_experiments.config.compose import compose
from ner_experiments.runs.run import open_run, rows_of
from ner_experiments.tables.scores import Result
from ner_experiments.tables.spec import Row
from ner_experiments.train import train
from ner_experiments.training import checkpoints
from ner_experiments.training.callbacks import EpochLog
from ner_experiments.training.checkpoints import resumable_checkpoint
from ner_experiments.training.scoring import Scorer


@pytest.mark.slow
@pytest.mark.start_early
def test_a_sweep_killed_at_ten_random_points_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole, broken, log = tmp_path / "whole", tmp_path / "broken", tmp_path / "log"
    assert killed.run([*SWEEP, f"output_dir={whole}"], log) == 0
    lines = lines_of(log)
    assert killed.run([*SWEEP, f"output_dir={whole}"], log) == 0
    idle = lines_of(log)  # what it takes to find that all is done
    chance = random.Random(1)
    finished: dict[Path, int] = {}
    for _ in range(10):
        point = chance.randint(1, idle + (lines - idle) // 6)
        assert killed.run([*SWEEP, f"output_dir={broken}"], log, point) == -SIGKILL
        finished |= {path: stamp for path, stamp in stamps(broken).items() if path not in finished}
    assert 0 < len(finished) < 4
    assert killed.run([*SWEEP, f"output_dir={broken}"], log) == 0
    assert outcome(broken) == outcome(whole)
    assert finished.items() <= stamps(broken).items()
    assert len(re.findall("resuming from last.ckpt", log.read_text())) > 2


WITHOUT_CHECKPOINTS = [*RUN, "runtime.checkpoint_seconds=1000"]


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int]:
    """Outcome of an uninterrupted run, and the number of lines that it executes."""
    folder = tmp_path_factory.mktemp("whole")
    assert killed.run([*WITHOUT_CHECKPOINTS, f"output_dir={folder}"], folder / "log") == 0
    return outcome(folder), lines_of(folder / "log")


@pytest.mark.parametrize(
    ("how", "status"),
    [
        pytest.param(SIGTERM, 143, id="SIGTERM"),
        pytest.param(SIGINT, 130, id="Ctrl-C", marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_a_run_with_its_status_and_it_resumes(
    how: Signals, status: int, whole_run: tuple[dict[str, Any], int], tmp_path: Path
) -> None:
    """Checkpoints are written on the signal alone here, so the run can only resume from those."""
    run, broken, log = WITHOUT_CHECKPOINTS, tmp_path / "broken", tmp_path / "log"
    whole, lines = whole_run
    for share in (0.2, 0.17, 0.17):
        assert killed.run([*run, f"output_dir={broken}"], log, int(share * lines), how) == status
    assert killed.run([*run, f"output_dir={broken}"], log) == 0
    text = log.read_text()
    assert text.count("resuming from last.ckpt") == 3
    assert text.count("repeat the command to resume") == (3 if how is SIGINT else 0)
    assert "Traceback" not in text
    assert outcome(broken) == whole


@pytest.mark.parametrize(("limit", "patience"), [(2, 2), (20, 1)])
def test_a_signal_that_comes_when_training_is_over_loses_no_epoch(
    limit: int,
    patience: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In a run too short for a checkpoint in between, that stops early or by its number of epochs."""
    stop = [f"trainer.max_epochs={limit}", f"trainer.patience={patience}", "optimizer.lr=0.3"]
    cfg = compose([*WITHOUT_CHECKPOINTS[1:], *stop, f"output_dir={tmp_path}"])
    caplog.set_level("INFO")
    trained: list[int] = []
    score = Scorer.score

    def stopped(self: Scorer, *arguments: Any) -> dict[str, Any]:
        trained.append(self.trainer.global_step)
        raise_signal(SIGTERM)
        return score(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Scorer, "score", stopped)
        for _ in range(2):
            with pytest.raises(SystemExit) as ended:
                train(cfg)
            assert ended.value.code == 143
    result = train(cfg)
    assert caplog.text.count("resuming from last.ckpt") == 2
    assert trained[0] == trained[1]
    assert (result["epochs"] < limit) == (patience < limit)


@pytest.mark.slow
def test_a_run_that_had_stopped_early_trains_no_further(tmp_path: Path) -> None:
    """The run stops early, and then its weights cannot be written."""
    whole, broken, log = tmp_path / "whole", tmp_path / "broken", tmp_path / "log"
    run = [*RUN, "trainer.max_epochs=20", "trainer.patience=1", "optimizer.lr=0.3"]
    assert killed.run([*run, f"output_dir={whole}"], log) == 0
    ((name, finished),) = outcome(whole).items()
    assert 1 < finished["metrics"]["epochs"] < 20
    in_the_way = broken / name / "model.safetensors"
    in_the_way.mkdir(parents=True)
    assert killed.run([*run, f"output_dir={broken}"], log) == 1
    assert (broken / name / "error.txt").exists()
    in_the_way.rmdir()
    assert killed.run([*run, f"output_dir={broken}"], log) == 0
    assert "resuming from last.ckpt" in log.read_text()
    assert outcome(broken) == outcome(whole)
    assert not (broken / name / "error.txt").exists()


def interrupted_run(tmp_path: Path, *more: str) -> Path:
    """Checkpoint of an interrupted run."""
    assert killed.run([*RUN, f"output_dir={tmp_path}", *more], tmp_path / "log", 1_000, SIGTERM) == 143
    (checkpoint,) = tmp_path.glob("*/seed-1/last.ckpt")
    return checkpoint


@pytest.mark.parametrize(("first", "then"), [("", "abc"), ("abc", "def")])
def test_a_resumed_run_was_started_for_what_its_first_part_was(tmp_path: Path, first: str, then: str) -> None:
    interrupted_run(tmp_path, f"sweep.registration={first}", f"sweep.claims=[{first}]")
    later = [f"sweep.registration={then}", f"sweep.claims=[{then}]"]
    assert killed.run([*RUN, f"output_dir={tmp_path}", *later], tmp_path / "log") == 0
    assert "resuming from last.ckpt" in (tmp_path / "log").read_text()
    ((_, finished),) = outcome(tmp_path).items()
    metrics = finished["metrics"]
    assert metrics.get("registration", "") == first
    assert metrics.get("claims", []) == ([first] if first else [])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interrupted_run(tmp_path_factory.mktemp("interrupted"))


def test_a_damaged_checkpoint_is_named_and_not_used(
    checkpoint: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = Path(shutil.copy(checkpoint, tmp_path))
    content, half = checkpoint.read_bytes(), checkpoint.stat().st_size // 2
    flipped = bytes([255 - content[half]])
    for damaged in (b"", content[:half], content[:half] + flipped + content[half + 1 :]):
        checkpoint.write_bytes(damaged)
        caplog.clear()
        assert resumable_checkpoint(checkpoint.parent) is None
        assert f"{checkpoint} is damaged" in caplog.text


def test_a_run_that_was_killed_before_its_first_checkpoint_says_that_it_starts_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert resumable_checkpoint(tmp_path) is None
    assert not caplog.text
    (tmp_path / "log.csv").write_text("epoch\n1\n")  # also of a run that is finished, but damaged
    assert resumable_checkpoint(tmp_path) is None
    assert not caplog.text
    (tmp_path / "progress.json").write_text("{}")
    assert resumable_checkpoint(tmp_path) is None
    assert f"{tmp_path}: stopped before its first checkpoint; the run starts over" in caplog.text


def test_a_checkpoint_of_other_libraries_is_reported_and_not_used(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert resumable_checkpoint(checkpoint.parent) == checkpoint
    monkeypatch.setattr(checkpoints, "made_by", lambda: "torch 1")
    assert resumable_checkpoint(checkpoint.parent) is None
    assert "was written by different library versions" in caplog.text


def test_a_checkpoint_of_another_number_of_threads_is_refused(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    with pytest.raises(ValueError, match=r"runtime\.threads") as error:
        resumable_checkpoint(checkpoint.parent)
    assert str(error.value) == (
        f"{checkpoint} was written with runtime.threads={threads}, on which the weights depend through rounding: "
        "resume with that, or delete the file to start over with 7"
    )


@pytest.mark.parametrize(
    ("before", "after", "epochs"),
    [(False, True, [3, 4, 5]), (True, False, [1, 2]), (True, True, [1, 2, 3, 4, 5])],
)
def test_an_audit_that_is_turned_on_or_off_between_two_parts_has_its_own_epochs(
    before: bool, after: bool, epochs: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = [
        "model=residual",
        "layers=1",
        *TINY,
        "trainer.max_epochs=5",
        "trainer.patience=5",
        "optimizer.lr=0.1",
    ]

    def audited(on: bool) -> DictConfig:
        audit = [f"audit.test_every_epoch={on}", f"audit.gradients={int(on)}"]
        return compose([*run, *audit, f"output_dir={tmp_path}"])

    class InterruptedError(Exception):
        pass

    def broken(self: EpochLog, trainer: Any, module: Any) -> None:
        if trainer.current_epoch == 2:
            raise InterruptedError
        end_epoch(self, trainer, module)

    end_epoch = EpochLog.on_train_epoch_end
    with monkeypatch.context() as patch:
        patch.setattr(EpochLog, "on_train_epoch_end", broken)
        with pytest.raises(InterruptedError):
            train(audited(before))
    result = train(audited(after))
    folder = Path(result["folder"])
    scored = [int(row["epoch"]) for row in rows_of(folder / "test_every_epoch.csv")]
    with (folder / "gradients.csv").open(encoding="utf-8", newline="") as file:
        measured = {int(row["epoch"]) for row in csv.DictReader(file)}
    assert (scored, measured) == (epochs, {*epochs})
    finished = open_run(folder)
    row = Result(Row(label="a"), {1: finished.score}, {1: finished})
    assert len(finished.test_every_epoch()) == (5 if before and after else 0)
    assert (row.oracle_epoch_gain() is None) == (not (before and after))
    assert (row.oracle_epoch_gain() or 0) >= 0


def test_a_run_that_starts_over_keeps_no_scores_of_its_first_part(tmp_path: Path) -> None:
    run = ["model=residual", "layers=1", *TINY, "trainer.max_epochs=1", f"output_dir={tmp_path}"]
    folder = Path(train(compose(run))["folder"])
    (folder / "metrics.json").unlink()
    for name in ("test_every_epoch.csv", "gradients.csv"):
        (folder / name).write_text("of an earlier part")
    assert not {"test_every_epoch.csv", "gradients.csv"} & {*train(compose(run))["files"]}


@pytest.mark.slow
def test_the_penalty_of_a_resumed_epoch_is_that_of_all_its_batches(tmp_path: Path) -> None:
    run = [
        "train",
        "data.sentences={train: 80, dev: 80, test: 80}",
        "model=parallel",
        "model.num_units=2",
        "model.unit_size=4",
    ]
    run += ["penalty=orthogonality", "batches.tokens=30", "trainer.max_epochs=2", "runtime.accelerator=cpu"]
    run += ["runtime.checkpoint_seconds=1000", "logger=tensorboard"]
    whole, broken, log = tmp_path / "whole", tmp_path / "broken", tmp_path / "log"
    assert killed.run([*run, f"output_dir={whole}"], log) == 0
    lines = lines_of(log)
    assert killed.run([*run, f"output_dir={broken}"], log, lines // 4, SIGTERM) == 143
    assert killed.run([*run, f"output_dir={broken}"], log) == 0
    assert "resuming from last.ckpt" in log.read_text()
    curves = [
        [event.value for event in scalars(folder).Scalars("train/penalty")]
        for output in (whole, broken)
        for folder in output.glob("*/seed-1")
    ]
    assert curves[0] == curves[1]
    assert len(curves[0]) == 2
