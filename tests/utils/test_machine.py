"""Cores and memory within the limits of a container, from files as the kernel writes them, and freed memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from ner_experiments.utils import machine


@pytest.mark.parametrize(
    ("quota", "cores"), [("max 100000", 8), ("250000 100000", 2), ("50000 100000", 1), ("", 8)]
)
def test_cores_are_those_of_the_process_within_the_quota(
    quota: str, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    if quota:
        (tmp_path / "cpu.max").write_text(f"{quota}\n")
    assert machine.usable_cores() == cores


@pytest.mark.parametrize(("limit", "expected"), [("max", 4096), ("3000", 2000), ("900000000", 4096)])
def test_memory_is_what_is_free_within_the_limit(
    limit: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "meminfo")
    (tmp_path / "meminfo").write_text("MemTotal:       16 kB\nMemFree:        2 kB\nMemAvailable:   4 kB\n")
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert machine.available_memory() == expected


FREED = """
import ctypes, resource
from ner_experiments.utils.machine import keep_freed_memory

def fault_count():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [bytearray(16 << 20) for _ in range(6)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: count pages of 4 KiB
if {keep}:
    keep_freed_memory()
print([fault_count() for _ in range(4)][-1])
"""


@pytest.mark.parametrize("keep", [True, False])
def test_freed_memory_is_used_again_without_the_kernel(keep: bool) -> None:
    printed = subprocess.check_output([sys.executable, "-c", FREED.format(keep=keep)], text=True)
    assert (int(printed) < 100) is keep
