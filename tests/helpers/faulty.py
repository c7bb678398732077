"""Processes with an injected fault: at a line of code, at a byte of a file, or by a clock that jumps."""

import fcntl
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from types import FrameType
from typing import Any

import killed

Fault = Callable[[], Any]
"""A fault that a process injects into itself before it starts to work."""


class AtLine:
    """Send a signal after `lines` lines of some modules of the suite have been executed."""

    def __init__(self, lines: int, modules: tuple[str, ...], how: int = signal.SIGKILL) -> None:
        self.left, self.how = lines, how
        self.files = {str(Path(killed.ner_experiments.__file__).parent / f"{name}.py") for name in modules}
        assert all(map(os.path.exists, self.files))

    def __call__(self) -> None:
        sys.settrace(self.trace)

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in self.files:
            return None
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.how)
        return self.trace


class AtByte:
    """Limit a file's size after `versions` versions, so that the kernel kills the process at a byte of the next one.

    If not `deadly`, the write fails there instead, as on a full disk.
    """

    def __init__(self, name: str, byte: int, versions: int = 0, *, deadly: bool = True) -> None:
        self.name, self.byte, self.versions, self.deadly = name, byte, versions, deadly
        self.met: set[str] = set()

    def __call__(self) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if self.deadly else signal.SIG_IGN)
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and fnmatch(str(arguments[0]), f"*/{self.name}.*.part"):
            self.met.add(str(arguments[0]))
            if len(self.met) > self.versions:
                self.limit(self.byte)
        elif event in ("os.rename", "os.remove"):
            self.limit(resource.RLIM_INFINITY)

    @staticmethod
    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class Clock:
    """Make time.time jump by up to a day, forward or back, at each call."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self) -> None:
        right, chance = time.time, random.Random(self.seed)
        time.time = lambda: right() + chance.uniform(-86_400, 86_400)


class SkewedClock:
    """Make time.time differ by a number of seconds, as on another host, and inject another fault."""

    def __init__(self, seconds: float, other: Fault) -> None:
        self.seconds, self.other = seconds, other

    def __call__(self) -> None:
        right = time.time
        time.time = lambda: right() + self.seconds
        self.other()


class WithoutFlock:
    """Make flock fail as on a file system without locks, and inject another fault."""

    def __init__(self, number: int, other: Fault) -> None:
        self.number, self.other = number, other

    def __call__(self) -> None:
        def failing(file: Any, operation: int) -> None:
            raise OSError(self.number, os.strerror(self.number))

        fcntl.flock = failing
        self.other()


class MemoryLimit:
    """Limit the address space to so many bytes more than the process has, as `ulimit -v` does."""

    def __init__(self, more: int) -> None:
        self.more = more

    def __call__(self) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + self.more
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class Impatient:
    """Limit the seconds that W&B may delay a run."""

    def __call__(self) -> None:
        from ner_experiments.loggers import wandb

        wandb.BEGIN = wandb.END = 4.0


def nothing() -> None:
    pass


def called(function: Callable[..., Any], arguments: tuple[Any, ...], fault: Fault, log: str) -> None:
    """Run a function with the fault, in the child process."""
    with open(log, "a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    fault()
    sys.exit(function(*arguments))


def start(function: Callable[..., Any], *arguments: Any, fault: Fault = nothing, log: Path) -> Any:
    process = killed.CONTEXT.Process(target=called, args=(function, arguments, fault, str(log)))
    process.start()
    return process


def status(process: Any, seconds: float = 120) -> int:
    """Exit status of the process, -N after signal N."""
    process.join(seconds)
    assert process.exitcode is not None, f"still running after {seconds} seconds"
    return process.exitcode


def command(*arguments: str) -> int:
    from ner_experiments.main import cli

    return cli(["train", *arguments])


def run(*arguments: str, fault: Fault = nothing, log: Path) -> int:
    return status(start(command, *arguments, fault=fault, log=log))


def flipped(content: bytes, chance: random.Random) -> bytes:
    """The content with one bit flipped, or truncated."""
    place = chance.randrange(len(content))
    if chance.random() < 0.3:
        return content[:place]
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]
