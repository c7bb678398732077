"""How many jobs of a sweep share a GPU: one at first, then as many as fit by the memory that it has taken.

A training step is many short kernels that leave most of a GPU idle. With NVIDIA's MPS the kernels of several processes
run at the same time; without it, processes take turns. Nothing here imports PyTorch: a process
that initializes CUDA takes GPU memory itself.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SHARE = 0.9
"""Part of a GPU's free memory that jobs are expected to fill: the rest is for batches larger than those seen."""
MOST = 48
"""Maximum number of jobs on a GPU: MPS serves no more processes (NVIDIA's guide, Volta and later)."""
REFRESH = 2.0
"""Seconds after which free memory is read again to decide whether another job may start."""
GPU_ERROR = re.compile("OutOfMemoryError|CUDA|CUDNN|cuDNN")
"""Failures that other jobs on a GPU can cause: they fill its memory, and under MPS a fault in one can end all."""
QUERY = ("nvidia-smi", "--query-gpu=index,uuid,memory.free,mig.mode.current", "--format=csv,noheader,nounits")
GPU = re.compile(r"^(\d+), (GPU-\S+), (\d+), (?!Enabled)", re.MULTILINE)
"""Index, UUID and free MiB in the answer. A GPU partitioned by MIG does not match: a job gets only a part of it."""
CONTROL = "nvidia-cuda-mps-control"
KEEPER = f"""timeout 30 {CONTROL} -d < /dev/null >&2 || exit 1
echo started
cat > /dev/null
echo quit | timeout 30 {CONTROL} >&2
rm -rf "$CUDA_MPS_PIPE_DIRECTORY"
"""
"""Runs MPS's daemon until stdin closes, as it does however the process at its other end dies."""
CLIENT = (sys.executable, "-c", "import ctypes; exit(ctypes.CDLL('libcuda.so.1').cuInit(0) != 0)")
"""Fails as a client of MPS if the daemon has started but no process can use it, as in some containers."""
TURNS = "without NVIDIA's MPS jobs on a GPU take turns"


@dataclass(eq=False)
class Slot:
    """A place for jobs, and the numbers of those that run there.

    name: the job's CUDA_VISIBLE_DEVICES; None without a GPU. total: bytes that other programs left free when the sweep
    began. free: bytes that were free when last read. Both are None if unknown. again: jobs that failed beside others,
    and wait to run alone; alone: the one of them that runs.
    """

    name: str | None = None
    total: int | None = None
    free: int | None = None
    running: set[int] = field(default_factory=set)
    again: list[int] = field(default_factory=list)
    alone: int | None = None


class Packing:
    """Decides which job starts next, and where. It must be told which jobs end.

    waiting: the numbers of the jobs in the order in which they start. most: maximum number that run at a time.
    per_slot: the number on a slot; 0: one until the `peak` of a job in bytes is known, then as many as fit.
    """

    def __init__(
        self, devices: Sequence[str], waiting: Sequence[int], most: int, per_slot: int, peak: int = 0
    ) -> None:
        self.waiting, self.per_slot, self.peak = [*waiting], per_slot, peak
        found = gpus() if devices and per_slot != 1 else []
        self.slots = [slot_of(name, found) for name in devices] or [Slot()]
        possible = sum(per_slot or (1 if slot.total is None else MOST) for slot in self.slots)
        self.most = min(most, len(waiting), possible)
        self.shared: set[int] = set()
        """Running jobs that have had others beside them."""
        self.read_at = time.monotonic()

    @property
    def has_work(self) -> bool:
        return bool(self.waiting) or any(slot.running or slot.again for slot in self.slots)

    @property
    def at_a_time(self) -> int:
        """How many jobs run at a time, as far as is known."""
        return min(self.most, sum(map(self.limit, self.slots)))

    @property
    def is_measuring(self) -> bool:
        """Whether more jobs could run at a time if the peak of one were known."""
        return not self.peak and self.at_a_time < self.most

    @property
    def shares_gpus(self) -> bool:
        """Whether several jobs may run on a GPU at a time."""
        return self.slots[0].name is not None and self.most > len(self.slots)

    def limit(self, slot: Slot) -> int:
        if self.per_slot or not self.peak or slot.total is None:
            return self.per_slot or 1
        return max(1, min(MOST, int(SHARE * slot.total / self.peak)))

    def start(self) -> tuple[int, Slot] | None:
        """Take the next job that may start now, and its slot; None if none may."""
        for slot in self.slots:
            if slot.again and not slot.running:
                slot.alone = slot.again.pop(0)
                slot.running.add(slot.alone)
                return slot.alone, slot
        places = [slot for slot in self.slots if self.has_place(slot) and self.has_memory(slot)]
        if not places:
            return None
        slot = min(places, key=lambda it: len(it.running))
        return self.take(slot), slot

    def has_place(self, slot: Slot) -> bool:
        """Whether a job waits that may run on the slot, if only in a process that is there already."""
        is_open = not slot.again and slot.alone is None and len(slot.running) < self.limit(slot)
        return is_open and bool(self.waiting) and sum(len(it.running) for it in self.slots) < self.at_a_time

    def has_memory(self, slot: Slot) -> bool:
        """Whether a new process fits beside the jobs and the other programs that are on the GPU now."""
        if self.per_slot or not slot.running:
            return True
        if time.monotonic() - self.read_at > REFRESH:
            self.read()
        return slot.free is None or slot.free >= self.peak

    def take(self, slot: Slot) -> int:
        """Take the next job for a slot that has a place."""
        number = self.waiting.pop(0)
        slot.running.add(number)
        if len(slot.running) > 1:
            self.shared |= slot.running
        return number

    def measure(self, number: int, allocated: int = 0) -> None:
        """Take the peak of a job that is alone on its GPU, while its process has all memory that it ever took.

        allocated: a lower bound, in case another program has freed memory meanwhile.
        """
        self.read()
        slot = self.slot_with(number)
        if slot.total is not None and slot.free is not None:
            self.peak = max(0, allocated, slot.total - slot.free)

    def ended(self, number: int, failed: str) -> bool:
        """Free the place of a job. Returns whether it will start again, alone, as others may have made it fail."""
        slot = self.slot_with(number)
        together = len(slot.running)
        slot.running.remove(number)
        slot.alone = None
        if number not in self.shared:
            return False
        self.shared.remove(number)
        if slot.name is None or not GPU_ERROR.search(failed):
            return False
        if self.peak and slot.total is not None and not slot.again:  # several fail at once: halve once
            self.peak = max(self.peak, int(SHARE * slot.total / max(1, together // 2)))
        slot.again.append(number)
        return True

    def slot_with(self, number: int) -> Slot:
        return next(slot for slot in self.slots if number in slot.running)

    def read(self) -> None:
        """Read how much memory is free now."""
        free = {uuid: free for _, uuid, free in gpus()}
        for slot in self.slots:
            slot.free = free.get(slot.name or "")
        self.read_at = time.monotonic()


def gpus() -> list[tuple[str, str, int]]:
    """Index, UUID and free bytes of each GPU, by nvidia-smi; empty where it does not answer."""
    found = GPU.findall(printed(QUERY) or "")
    return [(index, uuid, int(free) << 20) for index, uuid, free in found]


def printed(command: Sequence[str], **options: Any) -> str | None:
    """Output of a command; None if it fails, or does not end within half a minute."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=30, **options)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if ended.returncode else ended.stdout


def slot_of(name: str, found: Sequence[tuple[str, str, int]]) -> Slot:
    """The slot of a name in CUDA_VISIBLE_DEVICES: an index, or a UUID or its beginning.

    Its name is the UUID if that is known: indices count differently in CUDA, nvidia-smi and MPS.
    """
    for index, uuid, free in found:
        if name == index or (name.startswith("GPU-") and uuid.startswith(name)):
            return Slot(uuid, free, free)
    return Slot(name)


@contextmanager
def mps(packing: Packing) -> Iterator[dict[str, str]]:
    """Context with NVIDIA's MPS, if jobs share GPUs and it can be started; yields what its clients' environment needs.

    A line on stderr says whether it runs.
    """
    if not packing.shares_gpus:
        yield {}
        return
    with ExitStack() as context:
        clients, line = start_mps(packing.slots, context)
        print(line, file=sys.stderr, flush=True)
        yield clients


def start_mps(slots: Sequence[Slot], context: ExitStack) -> tuple[dict[str, str], str]:
    """Start MPS's daemon, which ends with the context; return the environment of its clients, and what has been done.

    If a daemon runs already, the jobs find it by the environment that they have anyway.
    """
    if unknown := next((slot.name for slot in slots if slot.total is None), None):
        return {}, f"{TURNS}: nvidia-smi does not list GPU {unknown}"
    if shutil.which(CONTROL) is None:
        return {}, f"{TURNS}: {CONTROL} is not installed"
    if printed([CONTROL], input="get_server_list\n") is not None:
        return {}, "jobs on a GPU share it by NVIDIA's MPS, which runs already"
    folder = context.enter_context(TemporaryDirectory(prefix="mps", ignore_cleanup_errors=True))
    clients = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    environment = {
        **os.environ,
        **clients,
        "CUDA_VISIBLE_DEVICES": ",".join(str(slot.name) for slot in slots),
    }
    errors = Path(folder, "errors")
    with errors.open("wb") as file:
        keeper = subprocess.Popen(
            ["sh", "-c", KEEPER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            env=environment,
            start_new_session=True,  # Ctrl-C must not end the daemon before the jobs
        )
    context.callback(keeper.communicate)  # closes its stdin, and waits for its end
    assert keeper.stdout is not None
    if keeper.stdout.readline() != b"started\n":
        lines = errors.read_text(errors="replace").strip().splitlines()
        return {}, f"{TURNS}: {lines[-1] if lines else CONTROL + ' fails'}"
    if printed(CLIENT, env=environment) is None:
        return {}, f"{TURNS}: its daemon has started, but no process can use it"
    return clients, "jobs on a GPU share it by NVIDIA's MPS, whose daemon ends with this command"
