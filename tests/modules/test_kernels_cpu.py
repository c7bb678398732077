"""Compilation of kernels: when it happens, where it is cached, and threads after a fork."""

import gc
import logging
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest
import torch
from numba import njit
from numba.core.caching import CacheImpl, IndexDataCacheFile

from ner_experiments.modules.crf import CRF
from ner_experiments.modules.kernels import compilation, cpu, trial
from ner_experiments.modules.kernels.compilation import FAST, compiled
from ner_experiments.modules.recurrent import BiRNN
from ner_experiments.utils import locks


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


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which numba caches the kernels of a test."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    compilation.announce.cache_clear()
    compilation.compile_crf_beside.cache_clear()
    yield tmp_path
    compilation.compile_crf_beside.cache_clear()


def plus_one(module: str = __name__) -> Any:
    """A kernel of a module as a new process has it: with nothing compiled."""

    def add_one(x: int) -> int:
        return x + 1

    add_one.__module__ = module
    return compiled(add_one)


def test_a_compilation_is_announced_once_with_the_cache_s_folder(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert (plus_one()(1), plus_one()(1), plus_one()(1.0)) == (2, 2, 2.0)
    (folder,) = cache.iterdir()
    assert [record.getMessage() for record in caplog.records] == [
        "compiling the CPU kernels for this processor, which takes 10 to 30 seconds;"
        f" later runs load them from {folder}"
    ]


def test_kernels_compile_without_a_writable_cache(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    with caplog.at_level(logging.INFO):
        assert plus_one()(1) == 2
    assert (
        caplog.records[0]
        .getMessage()
        .endswith(
            "they are not cached, as neither this package's folder nor NUMBA_CACHE_DIR nor the user's cache folder is"
            " writable"
        )
    )


def test_a_cached_kernel_is_loaded_and_not_compiled(cache: Path) -> None:
    assert plus_one()(1) == 2
    again = plus_one()
    assert again(1) == 2
    assert (again.stats.cache_hits.total(), again.stats.cache_misses.total()) == (1, 0)


def test_no_garbage_is_collected_while_a_kernel_compiles(tmp_path: Path) -> None:
    assert gc.isenabled()
    assert not compilation.compile_in_turn(lambda _: gc.isenabled(), tmp_path, None)
    assert gc.isenabled()


def test_only_kernels_are_compiled_with_an_entry_for_python(cache: Path) -> None:
    """Functions that a kernel calls have none, and no function has one for C."""

    @njit(**FAST)
    def inner(x: int) -> int:
        return x + 1

    def outer(x: int) -> int:
        return inner(x)

    kernel = compiled(outer)
    assert kernel(1) == 2
    names = [
        [function.name for function in each.overloads[kernel.signatures[0]].library.get_defined_functions()]
        for each in (inner, kernel)
    ]
    assert ["cpython" in " ".join(of_one) for of_one in names] == [False, True]
    assert ["cfunc" in " ".join(of_one) for of_one in names] == [False, False]


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("pattern", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("damage", [cut, flip, lambda data: b"", lambda data: b"x" * len(data)])
def test_a_damaged_cache_costs_a_compilation(
    cache: Path, pattern: str, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    assert plus_one()(1) == 2
    (path,) = cache.rglob(pattern)
    path.write_bytes(damage(path.read_bytes()))
    assert plus_one()(1) == 2
    if (pattern, damage) != ("*.nbi", flip):  # may be the same index in another form
        assert "is damaged and is compiled again" in caplog.text
    again = plus_one()
    assert again(1) == 2
    assert again.stats.cache_misses.total() == 0


def test_a_full_disk_costs_the_cache_alone(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_space(*_: Any) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", no_space)
    assert plus_one()(1) == 2
    assert "cannot be cached ([Errno 28] No space left on device)" in caplog.text


SLOW_COMPILER = """
import logging, sys, time
from ner_experiments.modules.kernels.compilation import compiled
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")

def add_one(x):
    return x + 1

kernel = compiled(add_one)
compile = kernel._compiler.compile
kernel._compiler.compile = lambda *args: (time.sleep(2), compile(*args))[1]
kernel(1)
print("compiled", kernel.stats.cache_misses.total())
"""


@pytest.mark.slow
def test_a_process_waits_for_what_another_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    script = tmp_path / "kernel.py"
    script.write_text(SLOW_COMPILER)
    command = [sys.executable, "-W", "ignore", str(script)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate()[0] for process in both]
    assert sorted(output.splitlines()[-1] for output in outputs) == ["compiled 0", "compiled 1"]
    assert not any("another process" in output for output in outputs)


def test_a_process_that_waits_long_says_so(
    cache: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compilation, "QUIET", 0.5)
    monkeypatch.setattr(locks, "announced", set())
    kernel = plus_one()
    folder = Path(kernel.stats.cache_path) / "test_kernels_cpu"
    holder = "import sys, time; from pathlib import Path; from ner_experiments.utils.locks import hold_lock\n"
    holder += "with hold_lock(Path(sys.argv[1]), wait=True): print('held', flush=True); time.sleep(1.5)"
    command = [sys.executable, "-c", holder, str(folder)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        caplog.at_level(logging.INFO),
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert kernel(1) == 2
    assert (
        f"another process compiles the CPU kernels for this processor (process {process.pid}" in caplog.text
    )
    assert str(folder) not in caplog.text


@pytest.mark.parametrize(
    ("module", "cores", "beside"), [("lstm_numba", 2, 1), ("lstm_numba", 1, 0), ("crf_numba", 2, 0)]
)
def test_the_crf_is_compiled_by_another_process_while_the_lstm_is(
    cache: Path, monkeypatch: pytest.MonkeyPatch, module: str, cores: int, beside: int
) -> None:
    started: list[list[str]] = []
    process = Mock(spec=subprocess.Popen)
    monkeypatch.setattr(
        compilation.subprocess, "Popen", lambda command, **_: started.append(command) or process
    )
    monkeypatch.setattr(compilation, "usable_cores", lambda: cores)
    for _ in range(2):
        assert plus_one(f"kernels.{module}")(1) == 2
        shutil.rmtree(cache)
    assert started == beside * [[sys.executable, "-P", "-c", compilation.CRF_KERNELS]]


def test_the_other_process_is_ended_and_waited_for() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    compilation.end(process)
    assert process.returncode == -signal.SIGKILL


def test_the_other_process_compiles_the_kernels_of_the_crf() -> None:
    printed = run_python(
        f"{compilation.CRF_KERNELS}\ncrf = cpu.kernels().crf\n"
        "print(bool(crf.likelihood_chunks.signatures), bool(crf.viterbi_chunks.signatures))"
    )
    assert printed.split() == ["True", "True"]


@pytest.fixture
def _broken(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def kernel(*_: Any) -> NoReturn:
        raise RuntimeError("LLVM ERROR: no such processor\nand more")

    monkeypatch.setattr(cpu.kernels().crf, "likelihood_chunks", kernel)
    monkeypatch.setattr(cpu.kernels().lstm, "backward", kernel)
    trial.works.cache_clear()
    yield
    trial.works.cache_clear()


@pytest.mark.usefixtures("_broken")
def test_kernels_that_do_not_compile_are_replaced_by_pytorch_with_a_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    crf, rnn = CRF(num_tags=3), BiRNN(input_size=2, hidden_size=3)
    x, lengths = torch.randn(2, 9, 2), torch.tensor([9, 1])
    mask, gold = torch.arange(9) < lengths[:, None], torch.zeros(2, 9, dtype=torch.long)
    scores = torch.randn(2, 9, 3)

    def results() -> list[torch.Tensor]:
        states = rnn(x, lengths)[mask]
        return [
            states,
            *torch.autograd.grad(states.sum(), list(rnn.parameters())),
            crf.loss(scores, gold, mask),
        ]

    found = [results(), results()][0]
    assert [record.getMessage() for record in caplog.records] == [
        f"{what}: the compiled kernels fail here (RuntimeError: LLVM ERROR: no such processor);"
        " PyTorch computes the same, many times slower"
        for what in ("LSTMs", "CRF")
    ]
    monkeypatch.undo()
    trial.works.cache_clear()
    torch.testing.assert_close(found, results())


def test_a_lack_of_memory_does_not_replace_kernels() -> None:
    def fails() -> NoReturn:
        raise MemoryError

    with pytest.raises(MemoryError):
        trial.works("LSTMs", fails)
