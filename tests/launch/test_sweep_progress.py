"""Lines and screen of a running sweep, with a clock of its own and runs that are only said to be trained."""

import io
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from tiny_runs import TINY, TOY

from ner_experiments import train
from ner_experiments.config.job import Job
from ner_experiments.launch import local, sweep_progress, worker
from ner_experiments.launch.sweep_progress import SweepProgress, Tail
from ner_experiments.launch.worker import Outcome
from ner_experiments.main import cli
from ner_experiments.runs.folder import REUSED
from ner_experiments.runs.progress import row_and_seed
from ner_experiments.runs.status import Status
from ner_experiments.training.progress import one_line


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(sweep_progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def jobs(tmp_path: Path) -> list[Job]:
    return [
        Job(
            (f"layers={layers}", "model=residual", f"seed={seed}", f"output_dir={tmp_path}"),
            "s",
            f"layers={layers}",
        )
        for layers in (2, 3)
        for seed in (1, 2)
    ]


def end(progress: SweepProgress, number: int, seconds: float = 0.0) -> None:
    folder = f"none/seed-{progress.planned[number].seed}"
    progress.ended(number, Outcome([], {"folder": folder, "seconds": seconds}))


def test_the_time_left_is_that_of_the_longest_worker(tmp_path: Path, clock: SimpleNamespace) -> None:
    with SweepProgress(jobs(tmp_path), at_a_time=2) as progress:
        assert progress.left() is None
        progress.started(2)
        progress.started(3)
        assert progress.counts() == "0 of 4 done, 2 running"
        clock.now += 100
        progress.statuses[3] = Status("layers=3", 2, "running", left=(100.0, 300.0), trained=60.0)
        small = progress.sizes[0] / progress.sizes[2]
        assert small == pytest.approx(2 / 3, abs=0.1)
        # training takes 60 + 200 seconds in all; the first 40 compiled kernels. One of layers=2 follows each
        assert progress.left() == pytest.approx(160 + 260 * small)
        clock.now += 100
        end(progress, 2)
        progress.started(0)
        # the row now takes the 200 seconds that were measured, but the other run is to train 100 more at least
        assert progress.left() == pytest.approx(max(100 + 200 * small, 200 * small))
        progress.ended(3, Outcome([], failed="no space"))
        clock.now += 60
        end(progress, 0)
        progress.started(1)
        clock.now += 20
        assert progress.counts() == "2 of 4 done, 1 running, 1 failed, about 0:40 left"


def test_a_run_that_was_trained_before_counts_with_its_own_time(
    tmp_path: Path, clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    with SweepProgress(jobs(tmp_path), at_a_time=1) as progress:
        progress.finished = {0, 2}
        for number, seconds in ((0, 80.0), (2, 120.0)):
            assert progress.expected(number, {}) == 0
            progress.started(number)
            print(f"none is finished; {REUSED}")
            end(progress, number, seconds)
        assert progress.left() == 80 + 120
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("layers=2 seed=1 finished before\n1 of 4 done")


def test_the_first_jobs_count_without_what_their_processes_do_once(
    tmp_path: Path, clock: SimpleNamespace
) -> None:
    """Such as the compilation of kernels: here half a minute beside ten seconds of training."""
    with SweepProgress(jobs(tmp_path), at_a_time=1) as progress:
        for number, wall in enumerate((40, 20)):
            progress.started(number)
            clock.now += wall
            end(progress, number, 10.0)
        assert progress.seconds == {0: 10.0, 1: 20.0}


def test_lines_say_what_varies_and_notes_come_once(
    tmp_path: Path, clock: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    with suppress(KeyboardInterrupt), SweepProgress(jobs(tmp_path), at_a_time=1) as progress:
        for number in (0, 1):
            progress.started(number)
            print("a note on the corpus")
            print("in another process", file=sys.stderr)
            clock.now += 75
            end(progress, number)
        progress.started(2)
        progress.ended(2, Outcome([], failed="worker killed by SIGKILL"))
        raise KeyboardInterrupt
    out, err = capsys.readouterr()
    assert out == "a note on the corpus\n"
    assert [line for line in err.splitlines() if "about" not in line] == [
        "in another process",
        "layers=2 seed=1 done, 1:15",
        "in another process",
        "layers=2 seed=2 done, 1:15",
        "layers=3 seed=1 failed: worker killed by SIGKILL",
        "Ended with 2 of 4 runs done.",
    ]
    with SweepProgress(jobs(tmp_path), at_a_time=1, noted=progress.noted):  # the next trials of a search
        print("a note on the corpus")
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("elsewhere")
def test_a_run_that_ends_while_its_sweep_is_stopped_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where the signal comes while a logger ends; a worker that dies there has finished its run as well."""
    small = [*TINY, TOY, "data=toy_en", "model.hidden_size=8", "trainer.max_epochs=1"]

    def stopped(cfg: Any, wait: bool) -> Any:
        result = train.train(cfg, wait=wait)
        if cfg.seed == 2:
            raise SystemExit(130)
        return result

    monkeypatch.setattr(worker, "import_train", lambda: stopped)
    with pytest.raises(SystemExit, match="130"):
        cli(["train", "-m", *small, "hydra/launcher=basic", "seed=1,2"])
    out, err = capsys.readouterr()
    assert "Ended with 2 of 2 runs done." in err
    assert "Recorded as seeds" in out
    with SweepProgress([Job((*small, "seed=2"))], at_a_time=1) as progress:
        progress.finished = set()
        dead: Any = SimpleNamespace(
            outcome=Path("none"), task=local.Task(0, progress.jobs[0], {}, several=False)
        )
        found = local.LocalLauncher(jobs=1).result(dead, progress)
        assert (found.failed, found.result["seed"]) == ("", 2)


def test_a_terminal_has_one_screen_with_notes_above(
    tmp_path: Path, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    with SweepProgress(jobs(tmp_path), at_a_time=2) as progress:
        progress.started(2)
        progress.print("layers=3 seed=1 | epoch 1/30 | dev F1 70.00 (best)")
        progress.note("a note on the corpus")
        screen = Console(width=80, file=io.StringIO(), record=True)
        screen.print(progress.screen())
        shown = screen.export_text()
    assert [line.split() for line in shown.splitlines() if "seed=" in line] == [
        ["layers=2", "seed=1", "waiting"],
        ["layers=2", "seed=2", "waiting"],
        ["layers=3", "seed=1", "running", "starting"],
        ["layers=3", "seed=2", "waiting"],
    ]
    assert shown.startswith("0 of 4 done, 1 running")
    assert "a note on the corpus" in terminal.getvalue()
    assert "epoch 1/30" not in terminal.getvalue()
    assert "waiting" in terminal.getvalue()
    assert "[dim]" not in terminal.getvalue()


def test_what_a_process_writes_is_read_in_whole_lines(tmp_path: Path) -> None:
    lines: list[str] = []
    with (tmp_path / "out").open("wb") as file:
        tail = Tail(tmp_path / "out", lines.append)
        for text, expected in (
            (b"one\ntw", ["one"]),
            (b"", ["one"]),
            ("o\n\xe9\n".encode(), ["one", "two", "\xe9"]),
        ):
            file.write(text)
            file.flush()
            tail.read()
            assert lines == expected


@pytest.mark.parametrize(
    "row", ["layers=3", "all", "model=residual layers=3 optimizer.lr=0.0031622776 " + 30 * "x"]
)
def test_a_line_of_progress_has_the_whole_name_and_fits_eighty_columns_if_that_does(row: str) -> None:
    parts = [
        "epoch 102/1000",
        "dev F1 91.23 (best 92.34 in 80)",
        "1:02:15 to 2:02:15 left",
        "loss 18.1234",
        "9.0 s",
    ]
    line = one_line(row_and_seed(row, 2), parts)
    name = {"all": "seed=2"}.get(row, f"{row} seed=2")
    needed = f"{name} | epoch 102/1000 | dev F1 91.23 (best 92.34 in 80)"
    assert line.startswith(needed)
    assert len(line) <= max(80, len(needed))
    assert one_line("seed=1", ["epoch 1/9", "dev", "left"]) == "seed=1 | epoch 1/9 | dev | left"
