"""Jobs that share a GPU: how many, by its memory; NVIDIA's MPS; and jobs that run out of memory, on a made-up GPU."""

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_gpu
import killed
import pytest
from waiting import until

from ner_experiments.config.compose import compose
from ner_experiments.launch import packing, sweep_progress
from ner_experiments.launch.packing import Packing, slot_of
from ner_experiments.runs.status import Status

WITHOUT = "without NVIDIA's MPS jobs on a GPU take turns"
GIB = 2**30


def test_jobs_share_a_gpu_once_one_has_shown_what_memory_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """1,000 of 10,000 MiB: nine fit into 90 %. The first ends when nine are there, so it is not waited for."""
    states = fake_gpu.install(tmp_path, monkeypatch, beside=9)
    launcher = fake_gpu.launcher("0")
    outcomes = fake_gpu.launch(launcher, *range(11, 23))
    assert [it.failed for it in outcomes] == 12 * [""]
    printed = capsys.readouterr().err.splitlines()
    assert printed[:3] == [
        "12 jobs, 1 at a time (1 GPU), more as soon as one has shown how much GPU memory it takes; "
        "one after another: hydra/launcher=basic",
        "jobs on a GPU share it by NVIDIA's MPS, whose daemon ends with this command",
        "9 at a time from now on: a job is expected to take 1.0 GB of GPU memory",
    ]
    found = fake_gpu.events(states)
    assert (found[0], found[-1]) == ("MPS GPU-aaaa", "quit")
    assert sorted(it for it in found if it.startswith("job")) == [
        f"job {n} GPU-aaaa MPS" for n in range(11, 23)
    ]
    assert not [*Path(tmp_path, "states").glob("process_*")]
    (states / "met").unlink()  # in the next batch of a search, the first nine start at once
    fake_gpu.launch(launcher, *range(31, 43))
    assert "12 jobs, 9 at a time (1 GPU); one after" in capsys.readouterr().err


def test_a_fixed_number_of_jobs_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = fake_gpu.install(tmp_path, monkeypatch, free=10, beside=6)
    outcomes = fake_gpu.launch(fake_gpu.launcher("0", "GPU-bb", jobs_per_gpu=3), *range(11, 18))
    assert [it.failed for it in outcomes] == 7 * [""]
    assert capsys.readouterr().err.startswith(
        "7 jobs, 6 at a time (2 GPUs); one after another: hydra/launcher=basic"
    )
    found = fake_gpu.events(states)
    assert found[0] == "MPS GPU-aaaa,GPU-bbbb"
    started = [it.split()[2] for it in found if it.startswith("job")][:6]
    assert sorted(started) == 3 * ["GPU-aaaa"] + 3 * ["GPU-bbbb"]


def test_a_job_that_runs_out_of_memory_beside_others_runs_again_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The third fails once, the fourth also alone. Each is counted once."""
    fake_gpu.install(tmp_path, monkeypatch, beside=4)
    outcomes = fake_gpu.launch(fake_gpu.launcher("0", jobs_per_gpu=4), 1, 2, 3, 4, 6, 7)
    assert [bool(it.failed) for it in outcomes] == [False, False, False, True, False, False]
    assert outcomes[3].failed.startswith("OutOfMemoryError: CUDA out of memory. Tried")
    printed = capsys.readouterr().err
    again = "failed beside other jobs on its GPU, and will run again alone: OutOfMemoryError: CUDA out of memory\n"
    assert (printed.count(f"seed=3 {again}"), printed.count(f"seed=4 {again}"), printed.count(again)) == (
        1,
        1,
        2,
    )
    assert (printed.count("seed=3 done"), printed.count("seed=4 failed: Out")) == (1, 1)
    assert "5 of 6 done, 1 failed\n" in printed


@pytest.mark.parametrize(
    ("prevents", "line", "mps"),
    [
        ("refuse", f"{WITHOUT}: Cannot start the daemon", []),
        ("uninstall", f"{WITHOUT}: {packing.CONTROL} is not installed", []),
        (
            "useless",
            f"{WITHOUT}: its daemon has started, but no process can use it",
            ["MPS GPU-aaaa", "quit"],
        ),
        ("silent", f"{WITHOUT}: nvidia-smi does not list GPU 0", []),
        ("control", "jobs on a GPU share it by NVIDIA's MPS, which runs already", []),
    ],
)
def test_without_a_daemon_of_its_own_the_sweep_goes_on(
    prevents: str,
    line: str,
    mps: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    states = fake_gpu.install(tmp_path, monkeypatch)
    (states / prevents).touch()
    if prevents == "uninstall":
        (tmp_path / "bin" / packing.CONTROL).unlink()
    if prevents == "useless":
        monkeypatch.setattr(packing, "CLIENT", ("false",))
    outcomes = fake_gpu.launch(fake_gpu.launcher("0", jobs_per_gpu=2), 1, 2)
    assert [it.failed for it in outcomes] == ["", ""]
    printed = capsys.readouterr().err.splitlines()
    assert printed[1] == line
    found = fake_gpu.events(states)
    assert [it for it in found if it in ("MPS GPU-aaaa", "quit")] == mps
    assert {it.split()[-1] for it in found if it.startswith("job")} == {"-"}


def test_without_nvidia_smi_each_gpu_has_one_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    states = fake_gpu.install(tmp_path, monkeypatch)
    (states / "silent").touch()
    fake_gpu.launch(fake_gpu.launcher("0", "1"), 1, 2, 6)
    assert capsys.readouterr().err.startswith(
        "3 jobs, 2 at a time (2 GPUs); one after another: hydra/launcher=basic"
    )
    assert not {"MPS 0,1", "quit"} & {*fake_gpu.events(states)}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_daemon_ends_with_the_command(how: signal.Signals, tmp_path: Path) -> None:
    process = killed.CONTEXT.Process(target=fake_gpu.sweep, args=(str(tmp_path),))
    process.start()
    states = tmp_path / "states"
    until(lambda: (states / "met").exists() and len([*states.glob("process_*")]) == 2)
    assert process.pid is not None
    os.kill(process.pid, how)
    process.join(60)
    until(lambda: "quit" in fake_gpu.events(states))
    until(lambda: fake_gpu.events(states).count("end") == 2)
    until(lambda: not [*tmp_path.glob("mps*")])
    assert how == signal.SIGKILL or fake_gpu.events(states)[-3:] == ["end", "end", "quit"]
    assert process.exitcode == (-how if how == signal.SIGKILL else 128 + how)


# Decisions


def gpus_of(monkeypatch: pytest.MonkeyPatch, **free: int) -> dict[str, int]:
    """Let nvidia-smi list GPUs by their letters, with as many GiB free; the dictionary may be changed."""
    found = [lambda: [(str(n), f"GPU-{name}", gib * GIB) for n, (name, gib) in enumerate(free.items())]]
    monkeypatch.setattr(packing, "gpus", found[0])
    monkeypatch.setattr(packing, "REFRESH", 0.0)
    return free


def placed(it: Packing) -> list[tuple[int, str | None]]:
    """Start all jobs that may start now."""
    return [(number, slot.name) for number, slot in iter(it.start, None)]


def test_what_other_programs_take_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    free = gpus_of(monkeypatch, a=40, b=20)
    it = Packing(["0", "1"], range(12), most=16, per_slot=0)
    assert placed(it) == [(0, "GPU-a"), (1, "GPU-b")]
    free.update(a=32, b=15)
    it.measure(0)
    assert (it.peak, it.at_a_time) == (8 * GIB, 4 + 2)
    free.update(a=7, b=8)  # another program has taken the memory of a
    assert placed(it) == [(2, "GPU-b")]
    assert not it.ended(1, "")
    assert it.has_place(it.slots[1])  # its process may go on, as its memory is there
    free.update(a=24)
    assert placed(it) == [(3, "GPU-a"), (4, "GPU-b"), (5, "GPU-a"), (6, "GPU-a")]


def test_memory_freed_by_others_makes_no_job_small(monkeypatch: pytest.MonkeyPatch) -> None:
    free = gpus_of(monkeypatch, a=10)
    it = Packing(["0"], range(12), most=16, per_slot=0)
    placed(it)
    free.update(a=12)
    it.measure(0)
    assert it.is_measuring
    it.measure(0, allocated=4 * GIB)
    assert (it.is_measuring, it.at_a_time) == (False, 2)


def test_the_gpu_of_a_job_that_failed_is_emptied_and_takes_half_as_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpus_of(monkeypatch, a=80, b=80)
    it = Packing(["0", "1"], range(40), most=40, per_slot=0, peak=9 * GIB)
    assert it.at_a_time == 16
    assert len(placed(it)) == 16
    on_a = sorted(it.slots[0].running)
    fault = "AcceleratorError: CUDA error: an illegal memory access was encountered"
    assert not it.ended(on_a[0], "ValueError: such as a bad file")
    assert it.ended(on_a[1], fault)
    assert it.ended(on_a[2], fault)
    assert it.at_a_time == 2 * 3
    assert placed(it) == []
    for number in on_a[3:]:
        assert not it.has_place(it.slots[0])
        it.ended(number, "")
    assert placed(it) == [(on_a[1], "GPU-a")]
    assert not it.ended(on_a[1], fault)  # alone, it fails as it would without packing
    assert placed(it) == [(on_a[2], "GPU-a")]
    it.ended(on_a[2], "")
    for number in sorted(it.slots[1].running):
        it.ended(number, "")
    assert [name for _, name in placed(it)] == 3 * ["GPU-a", "GPU-b"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("1", ("GPU-8a", GIB)),
        ("GPU-8", ("GPU-8a", GIB)),
        ("GPU-9", ("GPU-9", None)),
        ("MIG-8a", ("MIG-8a", None)),
        ("0,1", ("0,1", None)),
    ],
)
def test_a_gpu_is_known_by_its_index_or_uuid(name: str, expected: tuple[str, int | None]) -> None:
    found = slot_of(name, [("0", "GPU-7a", GIB), ("1", "GPU-8a", GIB)])
    assert (found.name, found.total) == expected


def test_gpus_that_mig_divides_or_whose_memory_is_unknown_are_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = fake_gpu.install(tmp_path, monkeypatch)
    assert packing.gpus() == [("0", "GPU-aaaa", 10_000 << 20), ("1", "GPU-bbbb", 10_000 << 20)]
    (states / "free").write_text("[N/A]")
    assert packing.gpus() == []


@pytest.mark.parametrize(
    ("settings", "devices", "overrides", "expected"),
    [
        ({}, ["0"], [], (0, 9)),
        ({}, ["0", "1"], [], (0, 9)),
        ({}, [*"0123456789"], [], (1, 9)),
        ({"jobs": 4}, ["0"], [], (4, 4)),
        ({"jobs": 5}, ["0", "1"], [], (3, 5)),
        ({"jobs_per_gpu": 2}, ["0", "1"], [], (2, 4)),
        ({"jobs_per_gpu": 4, "jobs": 6}, ["0", "1"], [], (4, 6)),
        ({"gpus_per_job": 2}, ["0,1", "2,3"], [], (1, 2)),
        ({}, ["0"], ["trainer=ddp"], (1, 1)),
        ({}, ["0"], ["runtime.threads=8"], (0, 2)),
        ({}, ["0"], ["runtime.accelerator=cpu"], (16, 9)),
    ],
)
def test_settings_decide_how_many_run_at_a_time(
    settings: dict[str, Any],
    devices: list[str],
    overrides: list[str],
    expected: tuple[int, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_gpu.install(tmp_path, monkeypatch)
    found = fake_gpu.launcher(*devices, **settings).packing(9 * [compose(overrides)])
    assert (found.per_slot, found.most) == expected


def test_jobs_with_several_gpus_share_none() -> None:
    with pytest.raises(
        ValueError, match=r"jobs_per_gpu=2: jobs that have several GPUs each .*=2\) share none"
    ):
        fake_gpu.launcher(jobs_per_gpu=2, gpus_per_job=2)


def test_an_epoch_of_an_earlier_command_shows_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed run has epochs before it trains; what counts is one that ends while the job runs."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(sweep_progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    seen = [(3, 500.0), (3, 1.0), (3, 5.0), (4, 1.0), (4, 5.0), (5, 1.0)]
    found = iter([Status("", 1, "running", epoch=epoch, silent=age) for epoch, age in seen])
    job = sweep_progress.Job(("seed=1", f"output_dir={tmp_path}"))
    with sweep_progress.SweepProgress([job], at_a_time=1) as progress:
        monkeypatch.setattr(sweep_progress, "sweep_statuses", lambda *_: [next(found)])
        progress.started(0)
        asked = []
        for _ in seen:
            clock.now += 10
            asked.append(progress.has_ended_an_epoch(0))
    assert asked == [False, False, False, True, False, True]
