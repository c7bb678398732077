"""`hydra/launcher=slurm` against a SLURM made of shell scripts, and against a real one where there is one."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fake_slurm
import pytest
from hydra.errors import CompactHydraException

from hydra_plugins.slurm_launcher import ArrayTask, SlurmLauncher
from ner_experiments import job, slurm_array
from ner_experiments.slurm_array import SlurmArray

submission = pytest.importorskip("submitit.core.submission")
DelayedSubmission = pytest.importorskip("submitit.core.utils").DelayedSubmission

ROOT = Path(__file__).parent.parent
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
    commands, states = fake_slurm.install(tmp_path)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STATES", str(states))
    return states


@pytest.fixture
def _own_signals() -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGCONT, signal.SIGUSR2)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def array(tmp_path: Path, states: Path) -> SlurmArray:
    folder = tmp_path / "slurm"
    folder.mkdir()
    return SlurmArray(folder, {"7_0": JOBS[0], "7_1": JOBS[1]})


def are(states: Path, *lines: str) -> None:
    (states / "7").write_text("".join(f"{line}\n" for line in lines))


def leaves(array: SlurmArray, process: str, **outcome: Any) -> None:
    (array.folder / f"{process}_outcome.json").write_text(json.dumps(outcome))


def test_a_line_tells_when_a_job_starts_is_put_back_and_ends(
    array: SlurmArray, states: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    are(states, "7_0|PENDING|", "7_1|PENDING|")
    array.look()
    are(states, "7_0|RUNNING|node3", "7_1|PENDING|")
    array.look()
    array.look()
    are(states, "7_0|PENDING|", "7_1|RUNNING|node4")
    array.look()
    are(states, "7_0|RUNNING|node5", "7_1|RUNNING|node4")
    array.look()
    leaves(array, "7_1_0", result={"seed": 2})
    array.look()
    leaves(array, "7_0_0", result={"busy": "folder"})
    assert array.wait() == [{"busy": "folder"}, {"seed": 2}]
    assert capsys.readouterr().out.splitlines() == [
        "slurm: 7_0 runs on node3: seed=1",
        "slurm: 7_0 is back in the queue: seed=1",
        "slurm: 7_1 runs on node4: seed=2",
        "slurm: 7_0 runs on node5: seed=1",
        "slurm: 7_1 has finished (1 of 2): seed=2",
        f"slurm: job 7, tasks: 2, listed in {array.folder}/7_tasks.txt",
        "slurm: it goes on if this command is ended; `scancel 7` ends it",
        "slurm: 7_0 has left its run to another process (2 of 2): seed=1",
    ]
    assert array.listed.read_text() == "7_0  model=bilstm seed=1\n7_1  model=bilstm seed=2\n"


def test_an_error_counts_when_slurm_will_not_run_the_job_again(array: SlurmArray, states: Path) -> None:
    """What a preempted job's dying processes leave says nothing: it succeeds when it is run again."""
    leaves(array, "7_0_0", failed="ValueError: msra: not found (traceback: x)")
    leaves(array, "7_1_0", failed="ModuleNotFoundError: No module named 'torch'")
    for state in ("RUNNING", "COMPLETING", "PENDING"):
        are(states, f"7_0|{state}|node", f"7_1|{state}|node")
        array.look()
        assert array.outcomes == {}
    leaves(array, "7_0_0", result={"seed": 1})
    are(states, "7_0|RUNNING|node", "7_1|FAILED|node")
    assert array.wait() == [
        {"seed": 1},
        f"ModuleNotFoundError: No module named 'torch' (log: {array.folder}/7_1_0_log.out)",
    ]


def test_the_line_of_a_refused_run_is_its_reason(array: SlurmArray, states: Path) -> None:
    are(states, "7_0|FAILED|node", "7_1|FAILED|node")
    for task, line in (("7_0_0", "ValueError: layers: 0"), ("7_1_0", "OSError: disk full")):
        leaves(array, task, failed=line)
    logs = [array.folder / f"7_{number}_0_log.out" for number in (0, 1)]
    assert array.wait() == [
        f"ValueError: layers: 0 (log: {logs[0]})",
        f"OSError: disk full (log: {logs[1]})",
    ]


def test_a_job_that_ended_without_a_result_is_named_by_its_state(
    array: SlurmArray, states: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(slurm_array, "LATE", 0.0)
    are(states, "7_0|CANCELLED|", "7_1|TIMEOUT|node")
    without = "without a result (log: " + str(array.folder)
    assert array.wait() == [
        f"SLURM has it as CANCELLED, {without}/7_0_0_log.out)",
        f"SLURM has it as TIMEOUT, {without}/7_1_0_log.out)",
    ]
    assert "slurm: 7_0 has failed (1 of 2): seed=1 | SLURM has it as CANCELLED" in capsys.readouterr().out


def test_what_slurm_has_forgotten_is_known_to_the_accounting(
    array: SlurmArray, states: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_array, "LATE", 0.0)
    leaves(array, "7_1_0", result={"seed": 2})
    (states / "accounting").write_text("CANCELLED by 1000\n")
    reason = f"SLURM has it as CANCELLED by 1000, without a result (log: {array.folder}/7_0_0_log.out)"
    assert array.wait() == [reason, {"seed": 2}]


def test_a_result_may_be_seen_later_than_the_end(array: SlurmArray, states: Path) -> None:
    are(states, "7_0|COMPLETED|node", "7_1|COMPLETED|node")
    array.look()
    assert array.outcomes == {}
    for task in ("7_0_0", "7_1_0"):
        leaves(array, task, result={})
    assert array.wait() == [{}, {}]


def test_while_slurm_does_not_answer_only_results_count(
    array: SlurmArray, states: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(slurm_array, "LATE", 0.0)
    (states / "silent").touch()
    leaves(array, "7_0_0", result={"seed": 1})
    leaves(array, "7_1_0", failed="OSError: disk full")
    array.look()
    array.look()
    assert list(array.outcomes) == ["7_0"]
    (states / "silent").unlink()
    array.look()
    assert list(array.outcomes) == ["7_0", "7_1"]
    told = [line for line in capsys.readouterr().out.splitlines() if "answer" in line]
    assert told == ["slurm: SLURM does not answer; waiting", "slurm: SLURM answers again"]


def test_of_several_processes_the_first_has_the_result_and_any_the_error(
    array: SlurmArray, states: Path
) -> None:
    are(states, "7_0|RUNNING|node", "7_1|FAILED|node")
    leaves(array, "7_0_0", result={"rank": 0})
    leaves(array, "7_0_1", result={"rank": 1})
    leaves(array, "7_1_1", failed="RuntimeError: CUDA out of memory")
    expected = f"RuntimeError: CUDA out of memory (log: {array.folder}/7_1_1_log.out)"
    assert array.wait() == [{"rank": 0}, expected]


def flags(states: Path) -> dict[str, str]:
    lines = (states / "script").read_text().splitlines()
    pairs = [line.removeprefix("#SBATCH --").partition("=") for line in lines if line.startswith("#SBATCH")]
    return {name: value for name, _, value in pairs}


def submit(folder: Path, jobs: Sequence[list[str]], **settings: Any) -> list[str]:
    launcher = SlurmLauncher(**settings)
    launcher.name = "yang2020_table11"
    return launcher.submit(folder, jobs)


def test_a_sweep_is_one_array_job_with_what_was_asked_for(tmp_path: Path, states: Path) -> None:
    (states / "full").touch()
    ids = submit(
        tmp_path / "slurm",
        [*JOBS, ["seed=3"]],
        partition="gpu",
        cpus_per_task=4,
        gpus_per_node=1,
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
    assert (found["cpus-per-task"], found["gpus-per-node"], found["mem"]) == ("4", "1", "1536M")
    assert (found["time"], found["signal"]) == ("90", "USR2@200")
    assert "account" not in found
    script = (states / "script").read_text()
    assert "module load cuda" in script
    assert f"--cpus-per-task=4 --kill-on-bad-exit=1 {sys.executable} -u -m submitit" in script


def test_jobs_do_not_take_the_sweep_s_own_job_for_theirs(
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
    with pytest.raises(CompactHydraException) as caught:
        submit(tmp_path / "slurm", JOBS, partition="closed")
    expected = (
        "hydra/launcher=slurm: SLURM does not take these jobs: sbatch: error: invalid partition: closed"
    )
    assert str(caught.value) == expected


def test_without_slurm_or_submitit_nothing_is_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        CompactHydraException, match="there is no SLURM here, the command sbatch is not found"
    ):
        submit(tmp_path / "slurm", JOBS)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(CompactHydraException, match=r"needs submitit: pip install -e '\.\[slurm\]'"):
        submit(tmp_path / "slurm", JOBS)
    assert not (tmp_path / "slurm").exists()


def test_a_misspelt_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="partitions"):
        SlurmLauncher(partitions="gpu")


def test_the_files_lie_where_the_runs_do_unless_a_folder_is_given(tmp_path: Path) -> None:
    assert SlurmLauncher().folder([f"output_dir={tmp_path}"]) == tmp_path / "slurm"
    assert SlurmLauncher(folder="logs").folder([f"output_dir={tmp_path}"]) == Path("logs")


@pytest.fixture
def task(tmp_path: Path, states: Path, monkeypatch: pytest.MonkeyPatch, _own_signals: None) -> Path:
    """Task 7_1 as sbatch leaves it to `submission.process_job`; may reach its time limit once."""
    names = {"ARRAY_JOB_ID": "7", "ARRAY_TASK_ID": "1", "JOB_ID": "8", "NTASKS": "1", "PROCID": "0"}
    for name, value in names.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    delayed = DelayedSubmission(ArrayTask(["seed=2"]))
    delayed.set_timeout(1, 1)
    delayed.dump(tmp_path / "7_1_submitted.pkl")
    return tmp_path


def outcome(task: Path) -> Any:
    return json.loads((task / "7_1_0_outcome.json").read_text())


def test_near_its_time_limit_a_job_is_put_back_and_may_finish_its_step(
    task: Path, states: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def is_stopped(overrides: Sequence[str]) -> dict[str, Any]:
        """As training does: on SIGTERM, which the first process leaves to it, it ends after its step."""
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        signal.signal(signal.SIGTERM, lambda *_: steps.append("told to stop"))
        signal.raise_signal(signal.SIGUSR2)
        steps.append("step")
        signal.raise_signal(signal.SIGTERM)
        steps.append("saved")
        raise SystemExit(143)

    monkeypatch.setattr(job, "run", is_stopped)
    with pytest.raises(SystemExit, match="143"):
        submission.process_job(task)
    assert steps == ["step", "told to stop", "saved"]
    assert (states / "scontrol").read_text() == "requeue 7_1\n"
    assert not (task / "7_1_0_outcome.json").exists()
    monkeypatch.setattr(job, "run", lambda overrides: {"overrides": overrides})
    submission.process_job(task)
    assert outcome(task) == {"result": {"overrides": ["seed=2"]}}


def test_a_job_that_reaches_its_time_limit_too_often_fails(
    task: Path, states: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reaches_it(overrides: Sequence[str]) -> dict[str, Any]:
        signal.raise_signal(signal.SIGUSR2)
        raise SystemExit(143)

    monkeypatch.setattr(job, "run", reaches_it)
    with pytest.raises(SystemExit):
        submission.process_job(task)
    with pytest.raises(job.RefusedError, match="timed-out too many times"):
        submission.process_job(task)
    assert (states / "scontrol").read_text() == "requeue 7_1\n"
    assert "timed-out too many times" in outcome(task)["failed"]


def test_whatever_goes_wrong_in_a_job_is_one_line_of_moderate_length(
    task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(overrides: Sequence[str]) -> dict[str, Any]:
        raise ValueError("two\nlines " + "and more " * 500)

    monkeypatch.setattr(job, "run", fails)
    with pytest.raises(job.RefusedError, match="ValueError: two lines and more and"):
        submission.process_job(task)
    line = outcome(task)["failed"]
    assert line.startswith("ValueError: two lines and more and")
    assert line.endswith(" ...")
    assert len(line) < 610


def sweep(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "run.py"), "-m", "hydra/launcher=slurm", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_a_sweep_on_slurm_returns_what_its_jobs_did(tmp_path: Path, states: Path) -> None:
    place = [f"output_dir={tmp_path}/out", f"data_dir={tmp_path}"]
    done = sweep("data=toy_zh,msra", *TINY, *place)
    assert done.returncode == 1, done.stderr
    assert "slurm: 7_0 has finished" in done.stdout
    assert "1 of 2 jobs failed" in done.stdout
    assert "ValueError: msra: not found in" in done.stdout
    assert f"(log: {tmp_path}/out/slurm/7_1_0_log.out)" in done.stdout
    assert len(list(tmp_path.glob("out/toy_zh-*/seed-1/metrics.json"))) == 1


def has_slurm() -> bool:
    return (
        shutil.which("sinfo") is not None and subprocess.run(["sinfo"], capture_output=True).returncode == 0
    )


@pytest.mark.slow
@pytest.mark.skipif(not has_slurm(), reason="there is no SLURM here; tools/slurm.sh starts one")
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
            "epoch   9/" in path.read_text() for path in tmp_path.glob(f"slurm/{number}_1_0_log.out")
        ):
            assert waiting.poll() is None
            time.sleep(0.5)
        subprocess.run(["scancel", f"{number}_1"], check=True)
        printed = waiting.stdout.read()
    assert waiting.returncode == 1
    assert f"slurm: {number}_0 has finished" in printed
    assert "SLURM has it as CANCELLED" in printed
    again = sweep(*arguments)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "goes on from last.ckpt" in "".join(path.read_text() for path in tmp_path.glob("slurm/*_log.out"))
    assert len(list(tmp_path.glob("*/seed-*/metrics.json"))) == 2
