"""Compilation of kernels: when it happens, where it is cached, and threads after a fork."""

import itertools
import logging
import subprocess
import sys
from types import SimpleNamespace

import pytest

from ner_experiments.modules.kernels import cpu


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_numba_is_imported_on_first_use() -> None:
    assert run_python(
        "import sys, torch; from ner_experiments.modules.crf import CRF; crf = CRF(num_tags=2)\n"
        "print('numba' in sys.modules)\n"
        "crf.decode(torch.zeros(1, 1, 2), torch.ones(1, 1, dtype=torch.bool)); print('numba' in sys.modules)"
    ).split() == ["False", "True"]


def test_a_forked_process_has_threads_of_its_own() -> None:
    assert run_python(
        "import os, torch; from ner_experiments.modules import crf; from ner_experiments.modules.kernels import cpu\n"
        "torch.set_num_threads(2); cpu.CRF_GRAIN = cpu.CHUNKS_PER_THREAD = 1\n"
        "crf = crf.CRF(num_tags=2)\n"
        "def decode(): return crf.decode(torch.zeros(4, 3, 2), torch.ones(4, 3, dtype=torch.bool))\n"
        "decode(); child = os.fork()\n"
        "if child == 0: decode(); os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    ).split() == ["7"]


def test_kernels_compile_without_a_writable_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.caching import CacheImpl

    from ner_experiments.modules.kernels.numba_ops import compiled

    def one() -> int:
        return 1

    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    assert compiled(one)() == 1


def test_long_compilation_is_logged_with_the_cache_folder(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Kernel:
        __module__, __name__ = "kernels", "viterbi"

        def __init__(self, cache_path: str | None) -> None:
            self.overloads: tuple[str, ...] = ()
            self.stats = SimpleNamespace(cache_path=cache_path)

        def __call__(self) -> None:
            self.overloads = ("compiled",)

    caplog.set_level(logging.INFO)
    clock = itertools.count(step=6)
    monkeypatch.setattr(cpu.time, "perf_counter", lambda: next(clock))
    for kernel in (Kernel("/somewhere"), Kernel(None)):
        cpu.call(kernel)
        cpu.call(kernel)
    assert [record.getMessage() for record in caplog.records] == [
        "compiling kernels.viterbi took 6 seconds; cached in /somewhere",
        "compiling kernels.viterbi took 6 seconds; not cached: neither this package's folder nor NUMBA_CACHE_DIR"
        " is writable",
    ]
