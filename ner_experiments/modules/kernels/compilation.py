"""Compilation of the numba kernels, once per machine: each file of kernels by one process at a time, cached on disk.

numba caches by processor in `NUMBA_CACHE_DIR`, else in the package's `__pycache__`, else in the user's cache folder.
"""

# mypy: disable-error-code="no-untyped-call"
# numba has no annotations

import atexit
import functools
import hashlib
import logging
import os
import pickle  # noqa: TID251  the kernels that numba has compiled and cached here
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

from ner_experiments.utils import clock
from ner_experiments.utils.garbage import paused_garbage_collection
from ner_experiments.utils.locks import hold_lock
from ner_experiments.utils.machine import has_avx512, usable_cores

log = logging.getLogger(__name__)

FAST = {
    "error_model": "numpy",  # 1 / 0 is inf; a check would prevent vectorization
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},  # all but nnan and ninf: NaN must propagate
    "no_cpython_wrapper": True,  # compiling what only Python or C would call takes a fifth of the time
    "no_cfunc_wrapper": True,
}
"""Options of the functions that kernels call, and of kernels."""
INLINED = {**FAST, "inline": "always"}
"""Options of functions that are inlined first, so that they are optimized once, not at every level."""

CRF_KERNELS = "import torch; from ner_experiments.modules.kernels import cpu; cpu.try_crf(torch.float32)"
"""Python code that compiles the CRF's kernels."""

COMPILES = "another process compiles the CPU kernels for this processor"
QUIET = 10.0
"""Seconds that a process waits without saying so: the workers of a sweep also load the kernels one after another."""

ONE_THREAD = threading.RLock()
locked: list[Path] = []
"""The folder whose lock this process holds now."""


def compiled(function: Any, options: dict[str, Any] = FAST) -> Any:
    """A kernel that Python calls. It is compiled at its first call, with everything that it calls, and cached.

    numba checks only the function's own file for changes, and names cache files after the function; hence the digest of
    all kernel files in the name. It covers the size of vectors too: where NUMBA_CPU_NAME is set, numba's cache does not
    know the processor. Without a writable folder there is no cache.
    """
    files = [*sorted(Path(__file__).parent.glob("*numba*.py")), Path(__file__).with_name("rules.py")]
    digest = hashlib.sha256(
        b"".join([*(file.read_bytes() for file in files), bytes([has_avx512()])])
    ).hexdigest()
    function.__qualname__ += f"_{digest[:16]}"
    kernel = njit(**{**options, "nogil": True, "no_cpython_wrapper": False})(function)
    with suppress(RuntimeError):  # no folder is writable
        kernel._cache = KernelCache(function)
    folder = kernel._cache.cache_path
    lock = Path(folder, function.__module__.rpartition(".")[2]) if folder else None
    kernel.compile = functools.partial(compile_in_turn, kernel.compile, lock)
    return kernel


def compile_in_turn(compile_or_load: Callable[[Any], Any], lock: Path | None, signature: Any) -> Any:
    """Load a kernel from the cache, or compile it while other processes that need its file's kernels wait.

    lock: the folder whose lock is held meanwhile; None if there is no cache. Compiling a kernel compiles the kernels
    that it calls, under the same lock. It makes millions of objects; garbage collection would search them, and those of
    PyTorch, again and again.
    """
    if lock is None:
        announce(None)
    with ONE_THREAD, clock.stopped(), paused_garbage_collection(), ExitStack() as stack:
        if lock is not None and not locked:
            with suppress(OSError):  # such as a disk that has become read-only
                stack.enter_context(hold_lock(lock, wait=True, work=COMPILES, quiet=QUIET))
            locked.append(lock)
            stack.callback(locked.clear)
        return compile_or_load(signature)


@functools.cache
def announce(folder: str | None) -> None:
    """Log, once per process, that kernels are compiled and where they are cached."""
    reason = "neither this package's folder nor NUMBA_CACHE_DIR nor the user's cache folder is writable"
    log.info(
        "compiling the CPU kernels for this processor, which takes 10 to 30 seconds; %s",
        f"later runs load them from {folder}" if folder else f"they are not cached, as {reason}",
    )


@functools.cache
def compile_crf_beside() -> None:
    """Start, once per process, another one that compiles the CRF's kernels while this one compiles those of the LSTM.

    Most taggers need both, and the LSTM's first. The other process is killed when this one exits; if this one is
    killed, it ends after compiling. If it fails, the kernels are compiled when they are needed.
    """
    if usable_cores() > 1:
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        nowhere = subprocess.DEVNULL
        command = [sys.executable, "-P", "-c", CRF_KERNELS]  # -P: import nothing from the working folder
        with suppress(OSError):  # such as a lack of memory
            process = subprocess.Popen(command, env=variables, stdin=nowhere, stdout=nowhere, stderr=nowhere)
            atexit.register(end, process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process, if it still runs, and wait for it for at most a second."""
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(1)


class KernelCache(FunctionCache):
    """numba's cache of a function, except that a damaged file or a full disk costs a compilation and not the run."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.is_of_lstm = function.__module__.endswith(".lstm_numba")
        file = self._cache_file
        self._cache_file = CheckedFile(self._cache_path, self._impl.filename_base, file._source_stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            kernel = super().load_overload(sig, target_context)
        except Exception as error:  # a damaged pickle may raise anything
            log.warning("%s: %s is damaged and is compiled again (%s)", *self.place(), error)
            with suppress(OSError):
                self.flush()
            kernel = None
        if kernel is None:
            announce(self.cache_path)
            if self.is_of_lstm:
                compile_crf_beside()
        return kernel

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # such as a full disk, or an index that is damaged and read-only
            log.warning("%s: %s cannot be cached (%s)", *self.place(), error)

    def place(self) -> tuple[str, str]:
        """The folder, and the name of the index file."""
        return self.cache_path, self._cache_file._index_name


class CheckedFile(IndexDataCacheFile):
    """Compiled code behind its digest: a changed byte would crash the process that runs it."""

    def _save_data(self, name: str, data: Any) -> None:
        code = self._dump(data)
        super()._save_data(name, (hashlib.sha256(code).digest(), code))

    def _load_data(self, name: str) -> Any:
        digest, code = super()._load_data(name)
        if hashlib.sha256(code).digest() != digest:
            raise ValueError(f"{name} does not have its digest")
        return pickle.loads(code)  # noqa: S301
