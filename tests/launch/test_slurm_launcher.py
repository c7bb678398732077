"""`hydra/launcher=slurm` against a SLURM made of shell scripts, and against a real one where there is one."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fake_slurm
import forked
import pytest
from places import ROOT

from ner_experiments.config.job import CommandLine, Job
from ner_experiments.launch.slurm import SlurmLauncher
from ner_experiments.launch.sweeper import planned

TINY = [
    "data.max_sentences=30",
    "model.hidden_size=4",
    "words.module.dim=4",
    "chars.module.num_filters=4",
    "trainer.max_epochs=1",
]
JOBS = [["model=bilstm", "seed=1"], ["model=bilstm", "seed=2"]]


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fake_slurm.installed(tmp_path, monkeypatch)


def flags(states: Path) -> dict[str, str]:
    lines = (states / "script").read_text().splitlines()
    pairs = [line.removeprefix("#SBATCH --").partition("=") for line in lines if line.startswith("#SBATCH")]
    return {name: value for name, _, value in pairs}


def submit(folder: Path, jobs: Sequence[list[str]], **settings: Any) -> list[str]:
    launcher = SlurmLauncher(**settings)
    return launcher.submit(folder, [Job(tuple(job), sweep="yang2020_table11") for job in jobs], {})


def test_a_sweep_is_one_array_job_with_what_was_asked_for(tmp_path: Path, states: Path) -> None:
    (states / "full").touch()
    ids = submit(
        tmp_path / "slurm",
        [*JOBS, ["seed=3"]],
        partition="gpu",
        nodes=2,
        tasks_per_node=3,
        cpus_per_task=4,
        gpus_per_node=3,
        mem_gb=1.5,
        timeout_min=90,
        signal_delay_s=200,
        max_jobs_at_once=2,
        setup=["module load cuda"],
        additional_parameters={"constraint": "a100"},
    )
    assert ids == ["7_0", "7_1", "7_2"]
    found = flags(states)
    assert found["array"] == "0-2%2"
    assert found["job-name"] == "yang2020_table11"
    assert found["requeue"] == ""
    assert (found["partition"], found["constraint"]) == ("gpu", "a100")
    assert (found["nodes"], found["ntasks-per-node"], found["gpus-per-node"]) == ("2", "3", "3")
    assert (found["cpus-per-task"], found["mem"]) == ("4", "1536M")
    assert (found["time"], found["signal"]) == ("90", "USR2@200")
    assert "account" not in found
    script = (states / "script").read_text()
    assert "module load cuda" in script
    assert f"--cpus-per-task=4 --kill-on-bad-exit=1 {sys.executable} -u -m submitit" in script


def test_jobs_ignore_the_variables_of_the_sweep_s_own_job(
    tmp_path: Path, states: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (states / "full").touch()
    for name in ("SLURM_MEM_PER_CPU", "SLURM_CPU_BIND", "SLURM_CONF"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    submit(tmp_path / "slurm", JOBS)
    inherited = (states / "environment").read_text().split()
    assert inherited == [f"PYTHONPATH={ROOT}{os.pathsep}elsewhere", "SLURM_CONF=1"]
    assert os.environ["SLURM_MEM_PER_CPU"] == "1"
    assert os.environ["PYTHONPATH"] == "elsewhere"


def test_what_slurm_refuses_is_said_in_a_line(tmp_path: Path, states: Path) -> None:
    with pytest.raises(
        ValueError, match=r"^hydra/launcher=slurm: sbatch rejected the jobs: sbatch: error: invalid"
    ):
        submit(tmp_path / "slurm", JOBS, partition="closed")


def sweep(*arguments: str) -> subprocess.CompletedProcess[str]:
    return forked.run("-m", "hydra/launcher=slurm", *arguments)


@pytest.mark.usefixtures("states")
def test_looks_on_slurm_do_not_look_for_a_gpu_here() -> None:
    own = ["model=residual", "layers=2,3", "sweep.looks=[2,3]", "runtime.accelerator=gpu"]
    assert planned(CommandLine.of(["hydra/launcher=slurm", *own])).looks == [2, 3]


@pytest.mark.slow
def test_a_sweep_on_slurm_returns_what_its_jobs_did(tmp_path: Path, states: Path) -> None:
    place = [f"output_dir={tmp_path}/out", f"data_dir={tmp_path}"]
    done = sweep("data=toy_zh,msra", *TINY, *place)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("2 jobs of data, submitted to SLURM\n")
    assert "slurm: 7_0 has finished" in done.stdout
    assert "1 of 2 jobs failed" in done.stdout
    assert "msra: not found in" in done.stdout
    assert f"(log: {tmp_path}/out/slurm/7_1_0_log.out)" in done.stdout
    assert len(list(tmp_path.glob("out/toy_zh-*/seed-1/metrics.json"))) == 1


def has_slurm() -> bool:
    return (
        shutil.which("sinfo") is not None and subprocess.run(["sinfo"], capture_output=True).returncode == 0
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not has_slurm(), reason="there is no SLURM here; tests/campaigns/slurm/start.sh starts one"
)
def test_on_a_real_slurm_a_cancelled_job_fails_and_the_command_again_finishes_it(tmp_path: Path) -> None:
    arguments = [
        *TINY,
        "seed=1,2",
        "trainer.max_epochs=400",
        "trainer.patience=400",
        f"output_dir={tmp_path}",
    ]
    command = [sys.executable, str(ROOT / "run.py"), "-m", "hydra/launcher=slurm", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        number = waiting.stdout.readline().removeprefix("slurm: job ").partition(",")[0]
        while not any(
            "epoch 9/" in path.read_text() for path in tmp_path.glob(f"slurm/{number}_1_0_log.out")
        ):
            assert waiting.poll() is None
            time.sleep(0.5)
        subprocess.run(["scancel", f"{number}_1"], check=True)
        printed = waiting.stdout.read()
    assert waiting.returncode == 1
    assert f"slurm: {number}_0 has finished" in printed
    assert "SLURM reports CANCELLED" in printed
    again = sweep(*arguments)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "resuming from last.ckpt" in "".join(path.read_text() for path in tmp_path.glob("slurm/*_log.out"))
    assert len(list(tmp_path.glob("*/seed-*/metrics.json"))) == 2
