"""Several processes: one model trained by them together, and several commands that share a sweep."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forked
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT
from waiting import is_running, until

from ner_experiments.config import processes
from ner_experiments.config.compose import compose
from ner_experiments.config.job import CommandLine, Job
from ner_experiments.config.processes import processes_note
from ner_experiments.data.batches import TokenBudget, at_least
from ner_experiments.launch.sweeper import Launch
from ner_experiments.launch.worker import Outcome
from ner_experiments.main import cli
from ner_experiments.utils.locks import hold_lock, wait_for_one

TINY = [
    "data.max_sentences=60",
    "model.hidden_size=8",
    "chars.module.num_filters=4",
    "trainer.max_epochs=2",
    "optimizer.lr=0.01",
    "runtime.accelerator=cpu",
]


def start(*arguments: str) -> forked.Command:
    flags = [item for item in arguments if item.startswith("-")]
    own = {item.partition("=")[0]: item for item in (*TINY, *arguments) if item not in flags}
    return forked.Command(*flags, *own.values())


def finish(command: forked.Command, status: int = 0) -> str:
    ended = command.finish()
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def run(*arguments: str) -> str:
    return finish(start(*arguments))


def only_metrics(output: Path) -> dict[str, Any]:
    (path,) = output.glob("*/seed-*/metrics.json")
    return json.loads(path.read_text())


@pytest.mark.slow
def test_every_sentence_is_scored_once_whatever_the_number_of_processes(tmp_path: Path) -> None:
    """A model that learns nothing (rate 0) is the same on 1, 2 and 3 processes, and so must be all counts."""
    commands = {
        n: start("trainer=ddp", f"trainer.devices={n}", "optimizer.lr=1e-30", f"output_dir={tmp_path}/{n}")
        for n in (1, 2, 3)
    }
    for n, process in commands.items():
        finish(process)
        assert only_metrics(tmp_path / str(n))["processes"] == n
    single = only_metrics(tmp_path / "1")
    assert single["test"]["predicted"] > 0
    (predictions,) = (tmp_path / "1").glob("*/seed-1/predictions")
    for n in (2, 3):
        shared = only_metrics(tmp_path / str(n))
        assert shared["dev"] == single["dev"]
        assert shared["test"] == single["test"]
        (again,) = (tmp_path / str(n)).glob("*/seed-1/predictions")
        for name in ("test.conll", "test.probabilities"):
            assert (again / name).read_bytes() == (predictions / name).read_bytes()


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=50),
    budget=st.integers(1, 300),
    number=st.integers(1, 6),
)
def test_shares_of_a_plan_hold_every_sentence_once(lengths: list[int], budget: int, number: int) -> None:
    plan = TokenBudget(budget).in_order(np.array(lengths))
    if number > len(lengths):
        with pytest.raises(ValueError, match=f"dev has {len(lengths)} sentences, too few for {number} proc"):
            at_least(number, plan, "dev")
        return
    enough = at_least(number, plan, "dev")
    assert sorted(np.concatenate(enough)) == list(range(len(lengths)))
    assert all(len(enough[rank::number]) > 0 for rank in range(number))


@pytest.mark.slow
@pytest.mark.parametrize("told", [0, 1])
def test_processes_that_share_a_model_end_together_on_sigterm(told: int, tmp_path: Path) -> None:
    """SIGTERM may reach any of them; the same command resumes from their checkpoint."""
    arguments = ["trainer=ddp", "data.max_sentences=100", "batches.tokens=40", "trainer.max_epochs=8"]
    arguments += ["runtime.checkpoint_seconds=1000", f"output_dir={tmp_path}"]
    process = start(*arguments)
    until(lambda: any(tmp_path.glob("*/seed-1/log.csv")))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill([process.pid, *map(int, children)][told], signal.SIGTERM)
    finish(process, status=143)
    until(lambda: not any(map(is_running, children)))
    assert any(tmp_path.glob("*/seed-1/last.ckpt"))
    assert "resuming from last.ckpt" in run(*arguments)
    assert only_metrics(tmp_path)["epochs"] == 8


@pytest.mark.slow
def test_the_local_launcher_runs_jobs_of_several_processes(tmp_path: Path) -> None:
    printed = run("-m", "trainer=ddp", "hydra/launcher=local", "seed=1,2", f"output_dir={tmp_path}")
    assert "2 of 2 done" in printed
    found = [json.loads(path.read_text()) for path in tmp_path.glob("*/seed-*/metrics.json")]
    assert [metrics["processes"] for metrics in found] == [2, 2]


@pytest.mark.slow
def test_jobs_compose_what_the_command_says_to_hydra_itself(tmp_path: Path) -> None:
    """In a worker; here: what a line of a job's log looks like."""
    look = "hydra.job_logging.formatters.simple.format='JOB: %(message)s'"
    printed = run("-m", "hydra.launcher.jobs=1", look, "seed=1,2", f"output_dir={tmp_path}")
    assert "2 of 2 done" in printed
    assert len(re.findall("^JOB: .* parameters", printed, re.MULTILINE)) == 1  # a note is printed once
    assert "hydra.job_logging" not in printed


@pytest.mark.slow
def test_a_job_that_dies_takes_no_other_with_it(tmp_path: Path) -> None:
    """One of them has a class that is no encoder, which shows when it is built."""
    process = start(
        "-m",
        "hydra/launcher=local",
        "hydra.launcher.jobs=3",
        "model.hidden_size=8",
        "model._target_=ner_experiments.models.bilstm.BiLSTM,torch.nn.Identity",
        "sweep.name=classes",
        "seed=1",
        "trainer.max_epochs=1",
        f"output_dir={tmp_path}",
    )
    printed = finish(process, status=1)
    assert "1 of 2 jobs failed" in printed
    assert only_metrics(tmp_path)["processes"] == 1


@pytest.mark.slow
def test_a_job_over_its_time_is_stopped_and_goes_on(tmp_path: Path) -> None:
    sweep = ["-m", "hydra/launcher=local", "data.max_sentences=600", "trainer.max_epochs=8", "seed=1"]
    sweep += ["trainer.patience=8", "batches.tokens=40", f"output_dir={tmp_path}"]
    printed = finish(start(*sweep, "hydra.launcher.minutes=0.15"), status=1)
    assert "stopped after 0.15 minutes; repeat the command to resume" in printed
    begun = any(tmp_path.glob("*/seed-1/last.ckpt"))  # on a slow machine its time may be up before
    assert ("resuming from last.ckpt" in run(*sweep)) == begun
    assert only_metrics(tmp_path)["epochs"] == 8


def test_two_commands_share_a_sweep_and_no_run_is_made_twice(tmp_path: Path) -> None:
    sweep = ["-m", *TINY, "seed=1,2,3,4", f"output_dir={tmp_path}"]
    results = [command.finish() for command in (forked.Command(*sweep), forked.Command(*sweep))]
    assert [result.returncode for result in results] == [0, 0]
    printed = [result.stdout + result.stderr for result in results]
    for seed in (1, 2, 3, 4):
        assert sum(text.count(f"seed={seed} | epoch 2/2") for text in printed) == 1
    assert all(text.count("dev F1") for text in printed)


def test_a_job_that_another_command_has_left_is_tried_again_under_its_name(tmp_path: Path) -> None:
    launched: list[list[Job]] = []

    def of_a_launcher(jobs: list[Job], _: Any) -> list[Outcome]:
        launched.append(jobs)
        busy = {"busy": str(tmp_path)} if len(launched) == 1 else {}
        return [Outcome(job.overrides, busy if "seed=2" in job.overrides else {}) for job in jobs]

    launch = Launch(CommandLine.of([]))
    launch.launcher = SimpleNamespace(launch=of_a_launcher)
    jobs = [Job(("seed=1",), "mine", "a"), Job(("seed=2",), "mine", "b")]
    assert launch(jobs) == [Outcome(("seed=1",), {}), Outcome(("seed=2",), {})]
    assert launched == [jobs, jobs[1:]]


@pytest.mark.slow
def test_jobs_end_with_the_command_that_started_them(tmp_path: Path) -> None:
    many = {"data.max_sentences": 600, "batches.tokens": 40, "trainer.max_epochs": 500}
    own = [item for item in TINY if item.partition("=")[0] not in many]
    sweep = ["-m", "hydra/launcher=local", "hydra.launcher.jobs=1", "seed=1,2", f"output_dir={tmp_path}"]
    command = forked.Command(*sweep, *own, *(f"{name}={value}" for name, value in many.items()))
    until(lambda: any(tmp_path.glob("*/seed-1/log.csv")))
    command.send_signal(signal.SIGKILL)
    assert command.finish().returncode == -signal.SIGKILL
    (folder,) = tmp_path.glob("*/seed-1")
    assert wait_for_one([folder], seconds=0.1) == [folder]
    assert (folder / "last.ckpt").exists()
    assert not (folder.parent / "seed-2").exists()


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    code = "import sys, time; from pathlib import Path; from ner_experiments.utils.locks import hold_lock\n"
    code += "with hold_lock(Path(sys.argv[1]), wait=True) as ours: print(ours, flush=True); time.sleep(100)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        with hold_lock(tmp_path, wait=False) as ours:
            assert not ours
        other.kill()
    with hold_lock(tmp_path, wait=False) as ours:
        assert ours


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("hydra.launcher.jobs=-1", "hydra.launcher.jobs must be at least 0, got -1"),
        ("hydra.launcher.gpus=[]", "hydra.launcher.gpus must name a GPU, got []"),
        (
            "hydra.launcher.gpus=4",
            "hydra.launcher.gpus must be a list, such as hydra.launcher.gpus=[0,1], got 4",
        ),
        (
            "hydra.launcher.gpus=[99]",
            f"hydra.launcher.gpus: there is no GPU 99; this machine has {torch.cuda.device_count()}",
        ),
    ],
)
def test_a_wrong_launcher_is_refused(
    override: str, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", "-m", "hydra/launcher=local", override, "seed=1,2", f"output_dir={tmp_path}"]
    assert cli(arguments) == 1
    assert message in capfd.readouterr().err
    assert not any(tmp_path.iterdir())


def test_more_processes_than_cores_are_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    four = compose(["trainer.devices=4", "runtime.accelerator=cpu"])
    assert processes_note(four) == (
        "4 processes train this model together: a step takes 4 batches, one of each; "
        "this machine has 2 cores for 4 processes, so fewer would be as fast"
    )
    monkeypatch.setattr(processes, "lack_of_gpu", lambda: "there is no GPU here")
    assert processes_note(compose(["trainer.devices=4"])) == processes_note(four)
    assert processes_note(compose(["trainer.devices=2", "runtime.accelerator=cpu"])).endswith("one of each")
    assert processes_note(compose([])) == ""


def test_ctrl_c_under_the_local_launcher_says_how_to_go_on(tmp_path: Path) -> None:
    """The jobs, which would not end for hours, are sent SIGTERM, whether they train already or are still importing."""
    endless = [*TINY, "trainer.max_epochs=1000000", "trainer.patience=1000000"]
    command = forked.Command("-m", *endless, "hydra.launcher.jobs=2", "seed=1,2", f"output_dir={tmp_path}")
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
    until(lambda: len(children.read_text().split()) == 2)
    jobs = children.read_text().split()
    command.send_signal(signal.SIGINT)
    result = command.finish(seconds=100)
    printed = result.stdout + result.stderr
    assert result.returncode == 130
    assert printed.count("repeat the command to resume") == 1
    for noise in ("Traceback", "FakeTensor"):
        assert noise not in printed
    assert not any(map(is_running, jobs))


@pytest.mark.parametrize("hidden", [True, False])
def test_statistics_of_torch_are_not_printed_when_a_job_ends(hidden: bool) -> None:
    """An import of torch that is interrupted leaves its loggers without a level."""
    code = (
        "import logging\n"
        "from ner_experiments.launch.worker import hide_statistics_of_torch\n"
        f"{hidden} and hide_statistics_of_torch()\n"
        "logging.basicConfig(level=logging.INFO)\n"
        "import torch._subclasses.fake_tensor\n"
        "logging.getLogger('torch').setLevel(logging.NOTSET)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert ("FakeTensor cache stats" in result.stderr) is not hidden
