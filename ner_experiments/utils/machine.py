"""The processor, and the cores and memory that this process may use within the limits of a container."""

import os
from contextlib import suppress
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
"""Parameters of glibc's mallopt."""


def usable_cores() -> int:
    """Number of cores: those that the process may run on, or fewer if its cgroup has a quota; at least 1."""
    cores = len(os.sched_getaffinity(0))
    quota, _, period = read(CGROUP / "cpu.max").partition(" ")
    return max(1, min(cores, int(quota) // int(period))) if quota.isdigit() else cores


def available_memory() -> int:
    """Bytes that can be allocated without swapping, within the limit of the cgroup."""
    lines = dict(line.split(":") for line in read(MEMINFO).splitlines())
    free = 1024 * int(lines["MemAvailable"].split()[0])
    limit, used = read(CGROUP / "memory.max"), read(CGROUP / "memory.current")
    return min(free, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else free


def keep_freed_memory() -> None:
    """Let glibc keep the memory of tensors that a training step frees, for the next step.

    By default it returns them to the kernel, which clears each page when the next step asks for it again: a tenth of
    the time of a step. From now on blocks of up to 32 MiB come from the heap, and the heap's free end is returned only
    if it exceeds 256 MiB. Does nothing where the C library is another one.
    """
    import ctypes  # takes milliseconds; not every command needs it

    with suppress(AttributeError):  # other C libraries have no mallopt
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_THRESHOLD, 32 << 20)  # as far as glibc itself raises it
        mallopt(TRIM_THRESHOLD, 256 << 20)


def has_avx512() -> bool:
    """Whether the processor has the 32 registers of 64 bytes of AVX-512; AVX2 has 16 of 32 bytes."""
    import torch  # slow to import; not every command needs it

    return torch.backends.cpu.get_cpu_capability().startswith("AVX512")


def read(path: Path) -> str:
    """Content of a file of the kernel; empty if this kernel has none."""
    return path.read_text(encoding="ascii").strip() if path.is_file() else ""
