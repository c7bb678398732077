"""Watching: real runs that are trained, killed, refused and finished, told apart by their files alone."""

import fcntl
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import forked
import killed
import pytest
from tiny_runs import METRICS

from ner_experiments.commands.watch import ALL_DONE, SOME_FAILED, UNFINISHED, WRONG, show_changes
from ner_experiments.config.compose import compose
from ner_experiments.config.job import Job
from ner_experiments.launch.slurm_array import Queue, SlurmArray
from ner_experiments.launch.sweeper import save_reasons
from ner_experiments.launch.worker import Outcome
from ner_experiments.main import run_command
from ner_experiments.runs import status as watch
from ner_experiments.runs.artifacts import add_checksum
from ner_experiments.runs.progress import eta, format_duration, format_eta, slurm_task
from ner_experiments.train import train
from ner_experiments.utils.locks import hold_lock, is_held
from ner_experiments.utils.terminal import make_console

SMALL = ["data=toy_zh", "data.max_sentences=30", "model.hidden_size=6", "runtime.progress=false"]
LONG = [*SMALL, "trainer.max_epochs=5000", "trainer.patience=4999", "runtime.checkpoint_seconds=0"]


def look(output: Path, *overrides: str, capsys: Any) -> tuple[int, dict[str, int], list[dict[str, Any]]]:
    capsys.readouterr()
    status = run_command("watch", [*overrides, "--output", str(output), "--json"])
    content = json.loads(capsys.readouterr().out)
    return status, {name: count for name, count in content["counts"].items() if count}, content["runs"]


def until(path: Path, pattern: str, epochs: int) -> Path:
    """Wait for a run that has reported so many epochs."""
    for _ in range(3000):
        for found in path.glob(pattern):
            if json.loads(found.read_text())["epoch"] >= epochs:
                return found
        time.sleep(0.1)
    raise AssertionError(f"{path}: no {pattern}")


def test_a_run_is_seen_to_run_and_to_be_cut_off(tmp_path: Path, capsys: Any) -> None:
    arguments = ["train", *LONG, f"output_dir={tmp_path}"]
    process = killed.CONTEXT.Process(
        target=killed.command, args=(arguments, 10**9, 0, str(tmp_path / "log"), {})
    )
    process.start()
    try:
        sign = until(tmp_path, "*/seed-1/progress.json", 2)
        status, counts, (first, second) = look(tmp_path, *LONG, "seed=1,2", capsys=capsys)
        assert (status, counts) == (UNFINISHED, {"running": 1, "waiting": 1})
        assert (first["state"], first["seed"], first["folder"]) == ("running", 1, str(sign.parent))
        assert first["epoch"] >= 2
        assert first["max_epochs"] == 5000
        assert 0 <= first["dev"] <= first["best"] <= 1
        assert 0 < first["left"][0] <= first["left"][1]
        assert 0 <= first["silent"] < 60
        assert first["host"] == os.uname().nodename
        assert (second["state"], second["seed"], second["folder"]) == ("waiting", 2, "")
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.join()
    status, counts, (run,) = look(tmp_path, *LONG, "seed=1", capsys=capsys)
    assert (status, counts) == (SOME_FAILED, {"interrupted": 1})
    assert run["epoch"] >= 2
    assert run["reason"] == "repeat the command to resume"


def test_a_table_has_runs_that_are_done_and_runs_that_wait(tmp_path: Path, capsys: Any) -> None:
    own = [
        "data=toy_zh",
        "data.max_sentences=20",
        "trainer=smoke",
        "runtime.progress=false",
        "model.hidden_size=6",
    ]
    made = train(compose(["paper=yang2020", "model=stacked", "layers=2", *own, f"output_dir={tmp_path}"]))
    status, counts, runs = look(tmp_path, "table=yang2020_table12", "seeds=[1,2]", *own, capsys=capsys)
    assert (status, counts) == (UNFINISHED, {"done": 1, "waiting": 15})
    assert [(run["label"], run["seed"]) for run in runs[:3]] == [
        ("stacked, 2 layers", 1),
        ("stacked, 2 layers", 2),
        ("stacked, 3 layers", 1),
    ]
    assert (runs[0]["dev"], runs[0]["test"]) == (made["dev"]["f1"], made["test"]["f1"])
    assert not (Path(made["folder"]) / "progress.json").exists()
    status, counts, (run,) = look(tmp_path, capsys=capsys)
    assert (status, counts, run["folder"]) == (ALL_DONE, {"done": 1}, made["folder"])
    assert run_command("watch", ["--once", "--output", str(tmp_path)]) == ALL_DONE
    assert "1 done" in capsys.readouterr().out


def test_a_table_is_asked_for_as_when_it_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = ["table=yang2020_table12", "--output", str(tmp_path), "--once"]
    assert run_command("watch", [*refused, "seed=3"]) == WRONG
    assert "seed=3: a table takes its seeds as seeds=1,2,3" in capsys.readouterr().err
    assert run_command("watch", [*refused, "layers=2,3"]) == WRONG
    assert "layers=2,3: a table's rows are the sweep" in capsys.readouterr().err


def test_a_run_that_failed_says_why(tmp_path: Path, capsys: Any) -> None:
    wrong = ["data=conll2003", f"data_dir={tmp_path}/none", "runtime.progress=false"]
    with pytest.raises(ValueError, match="not found"):
        train(compose([*wrong, f"output_dir={tmp_path}"]))
    for overrides in ([], [*wrong, "seed=1"]):
        status, counts, (run,) = look(tmp_path, *overrides, capsys=capsys)
        assert (status, counts) == (SOME_FAILED, {"failed": 1})
        assert run["reason"].startswith("ValueError: conll2003: not found in")


def test_a_job_that_failed_says_why(tmp_path: Path, capsys: Any) -> None:
    no_encoder = ["data=toy_en", "model._target_=torch.nn.Identity", "seed=1,2"]
    sweep = forked.run("-m", *no_encoder, "hydra/launcher=basic", f"output_dir={tmp_path}")
    assert "2 of 2 jobs failed" in sweep.stdout
    for overrides in ([], ["seeds"], no_encoder):
        status, counts, runs = look(tmp_path, *overrides, capsys=capsys)
        assert (status, counts) == (SOME_FAILED, {"failed": 2})
        assert all("torch.nn.Identity has no output_size" in run["reason"] for run in runs)


def test_a_job_that_was_killed_before_it_read_its_data_has_failed_until_it_has(
    tmp_path: Path, capsys: Any
) -> None:
    overrides = [*SMALL, "trainer.max_epochs=1", f"output_dir={tmp_path}"]
    jobs = [Job((*overrides, f"seed={seed}")) for seed in (1, 2)]
    save_reasons([Outcome(job.overrides, failed="worker killed by SIGKILL") for job in jobs], jobs)
    train(compose([*overrides, "seed=1"]))
    save_reasons(
        [Outcome(jobs[0].overrides, failed="a later error")], jobs[:1]
    )  # the run's files already say how it is
    for arguments in ([], [*overrides, "seed=1,2"]):
        status, counts, runs = look(tmp_path, *arguments, capsys=capsys)
        assert (status, counts) == (SOME_FAILED, {"done": 1, "failed": 1})
        assert sorted((run["seed"], run["reason"]) for run in runs) == [
            (1, ""),
            (2, "worker killed by SIGKILL"),
        ]
    assert [path.parent.name for path in tmp_path.rglob("error*.txt")] == ["seed-2"]


def test_a_run_whose_data_were_found_elsewhere_has_not_failed(tmp_path: Path, capsys: Any) -> None:
    files = [f"data.files.{split}={split}" for split in ("train", "dev", "test")]
    run = [*SMALL[1:], "data=conll", "data.name=mine", *files, "trainer.max_epochs=1"]
    for split in ("train", "dev", "test"):
        (tmp_path / split).write_text("Ann B-PER\nsat O\n")
    output = tmp_path / "outputs"
    for seed in (1, 2):
        with pytest.raises(ValueError, match="not found"):
            train(compose([*run, f"data.folder={tmp_path}/none", f"seed={seed}", f"output_dir={output}"]))
    train(compose([*run, f"data.folder={tmp_path}", f"output_dir={output}"]))
    status, counts, runs = look(output, capsys=capsys)
    assert (status, counts) == (SOME_FAILED, {"done": 1, "failed": 1})
    assert sorted((run["seed"], run["state"]) for run in runs) == [(1, "done"), (2, "failed")]


def test_rows_that_differ_only_in_their_files_have_their_own_runs(tmp_path: Path, capsys: Any) -> None:
    for name, word in (("a", "Ann"), ("b", "Bob")):
        (tmp_path / name).write_text(f"{word} B-PER\nsat O\n")
    output = tmp_path / "outputs"
    own = [*SMALL[1:], "data=conll", "data.name=mine", "trainer.max_epochs=1", f"output_dir={output}"]
    splits = [f"data.files.{split}={tmp_path}/a" for split in ("dev", "test")]
    rows = [f"data.files.train={tmp_path}/{name}" for name in ("a", "b", "none")]
    sweep = [
        *own,
        *splits,
        f"data.files.train={','.join(f'{tmp_path}/{name}' for name in ('a', 'b', 'none'))}",
    ]
    train(compose([*own, *splits, rows[0]]))
    assert [run["state"] for run in look(output, *sweep, capsys=capsys)[2]] == ["done", "waiting", "waiting"]
    with pytest.raises(ValueError, match="not found"):
        train(compose([*own, *splits, rows[2]]))
    assert [run["state"] for run in look(output, *sweep, capsys=capsys)[2]] == ["done", "waiting", "failed"]
    train(compose([*own, *splits, rows[1]]))
    runs = look(output, *sweep, capsys=capsys)[2]
    assert [run["state"] for run in runs] == ["done", "done", "failed"]
    assert len({run["folder"] for run in runs}) == 3


def test_a_run_that_ends_while_it_is_looked_at_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "seed-1"
    folder.mkdir()
    (folder / "progress.json").write_text('{"epoch": 3}')

    def ends(folder: Path) -> bool:
        """Finish the run and release its lock, between two polls of the folder."""
        (folder / "metrics.json").write_text(json.dumps(add_checksum(METRICS)))
        (folder / "progress.json").unlink()
        return False

    monkeypatch.setattr(watch, "is_held", ends)
    found = watch.status_of_folder(folder, "a run")
    assert found is not None
    assert (found.state, found.epoch, found.test) == ("done", 3, 0.4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"part": "x"},
        {"dev": [1]},
        {"seconds_left": "soon"},
        {"seconds_left": [1]},
        {"best": 1e999},
        {"host": 3},
    ],
    ids=str,
)
def test_a_damaged_value_of_a_heartbeat_is_left_out(
    wrong: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "x" / "seed-1"
    with hold_lock(folder, wait=False):
        heartbeat = {"epoch": 3, "max_epochs": 9, "best_epoch": 2, "host": os.uname().nodename}
        (folder / "progress.json").write_text(json.dumps(heartbeat | wrong))
        assert run_command("watch", ["--once", "--output", str(tmp_path)]) == UNFINISHED
    assert "1 running" in (printed := capsys.readouterr().out)
    assert "3/9" in printed


def test_a_file_that_goes_while_it_is_looked_at_stops_no_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "seed-1"
    folder.mkdir()
    (folder / "error.txt").write_text("ValueError: of old")
    sign = {"epoch": 1, "host": os.uname().nodename}
    monkeypatch.setattr(watch, "last_heartbeat", lambda _: (sign, 0.0))  # and then it has gone
    found = watch.status_of_folder(folder, "a run")
    assert found is not None
    assert (found.state, found.reason) == ("failed", "ValueError: of old")


def test_lines_say_that_nothing_runs(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr("ner_experiments.commands.watch.time.sleep", lambda _: None)
    waiting, done = (watch.Status("a run", 1, state) for state in ("waiting", "done"))
    show_changes(lambda: [done], [waiting], 2.0, make_console())
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "1 waiting; none is running, and this waits for them (--once does not)"
    assert second == "1 done"


def test_folders_of_others_are_passed_over(tmp_path: Path, capsys: Any) -> None:
    for name in ("seed-1-old", "seed-", "seed-²"):
        (tmp_path / "x" / name).mkdir(parents=True)
        (tmp_path / "x" / name / "config.yaml").touch()
    assert look(tmp_path, capsys=capsys) == (UNFINISHED, {}, [])


SQUEUE = """#!/bin/sh
echo $1 >> ${0%squeue}asked
[ $1 = --jobs=11 ] || printf '%s\\n' '12_1|RUNNING|node' '12_2|PENDING|'
"""


def test_what_waits_in_slurms_queue_is_named(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slurm").mkdir()
    own = [*SMALL, 'data.name="of its own"']
    SlurmArray(tmp_path / "slurm", {"11_1": own, "11_2": own})
    SlurmArray(tmp_path / "slurm", {f"12_{seed}": [*own, f"seed={seed}"] for seed in (1, 2)})
    squeue = tmp_path / "bin" / "squeue"
    squeue.parent.mkdir()
    squeue.write_text(SQUEUE)
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{squeue.parent}:{os.environ['PATH']}")
    _, counts, runs = look(tmp_path, *own, "seed=1,2,3", capsys=capsys)
    assert counts == {"waiting": 3}
    assert [run["slurm"] for run in runs] == ["", "12_2", ""]
    queue = Queue(tmp_path / "slurm")
    assert set(queue.ask().values()) == set(queue.ask().values()) == {"12_2"}
    asked = (squeue.parent / "asked").read_text().split()
    assert asked == ["--jobs=11", "--jobs=12"] * 2 + ["--jobs=12"]  # what is forgotten is not asked for again


def test_who_looks_keeps_no_run_from_its_folder(tmp_path: Path) -> None:
    with hold_lock(tmp_path, wait=False) as ours:
        assert ours
        assert is_held(tmp_path)
        with hold_lock(tmp_path, wait=False) as theirs:
            assert not theirs
    assert not is_held(tmp_path)
    assert not is_held(tmp_path / "nowhere")
    with (tmp_path / ".lock").open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(0.2, lambda: fcntl.flock(looking, fcntl.LOCK_UN)).start()
        with hold_lock(tmp_path, wait=False) as ours:
            assert ours


def rows(scores: list[float]) -> list[dict[str, float]]:
    return [{"dev_f1": score, "seconds": 2.0} for score in scores]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.1], (6.0, 18.0)),  # three epochs of patience, of ten that may be
        ([0.1, 0.2, 0.2], (4.0, 14.0)),  # a score that is no better takes one of them
        ([0.0, 0.0], (8.0, 16.0)),  # patience begins with an epoch that finds something
        ([0.5, 0.4, 0.3, 0.2], (0.0, 0.0)),  # it is used up
        ([0.5, 0.0, 0.0, 0.0], (0.0, 0.0)),  # also by epochs that find nothing
        ([0.1] * 2 + [0.2] * 6 + [0.3], (2.0, 2.0)),  # the last epoch comes first
    ],
)
def test_the_time_left_is_bounded_by_patience_and_by_the_last_epoch(
    scores: list[float], expected: tuple[float, float]
) -> None:
    assert eta(rows(scores), "f1", 10, 3) == expected


def test_times_in_words() -> None:
    assert [format_duration(seconds) for seconds in (0, 59.6, 135, 3735)] == [
        "0:00",
        "1:00",
        "2:15",
        "1:02:15",
    ]
    assert format_eta((40.0, 135.0)) == "0:40 to 2:15 left"
    assert format_eta((40.0, 40.0)) == "0:40 left"
    assert format_eta((0.2, 0.4)) == "0:00 left"
    assert format_eta((0.0, 0.0)) == "training is over"
    assert eta([], "f1", 10, 3) is None


def test_a_job_of_slurm_is_known_by_its_task() -> None:
    array = {"SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3", "SLURM_JOB_ID": "15"}
    assert slurm_task(array) == "12_3"
    assert slurm_task({"SLURM_JOB_ID": "15"}) == "15"
    assert slurm_task({}) == ""


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_an_interval_that_cannot_be_waited_is_refused(seconds: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        run_command("watch", ["--seconds", seconds])
    assert f"expected seconds above 0 and at most 86400, got {seconds!r}" in capsys.readouterr().err


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table=yang2020_table99"], "there is no table 'yang2020_table99'; did you mean"),
        (["layer=2"], "layer=2: there is no setting 'layer'; did you mean 'layers'?"),
        (["seeds=[1,2]"], "seeds=[1,2] requires table=NAME; otherwise write seed=1,2,3"),
        (["--output", "nowhere"], "nowhere: no such folder"),
    ],
)
def test_wrong_arguments_are_reported(arguments: list[str], message: str, capsys: Any) -> None:
    assert run_command("watch", [*arguments, "--once"]) == WRONG
    assert capsys.readouterr().err.startswith(message)
