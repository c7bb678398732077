"""The benchmark of a GPU, on a machine without one: processes, corpus, samples, tables, and the command."""

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from places import BENCHMARKS


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("gpu")


def test_the_clock_waits_for_the_gpu_if_one_is_used(gpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append(True))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    gpu.timing.now()
    assert not waited
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    gpu.timing.now()
    assert waited


@pytest.mark.slow
def test_calls_run_at_once_and_one_that_fails_ends_them_all(gpu: ModuleType) -> None:
    in_processes = gpu.timing.in_processes
    assert in_processes(divmod, [(7, 2), (9, 4)], limit=60) == [(3, 1), (2, 1)]
    pids = in_processes(os.getpid, [(), ()], limit=60)
    assert len({os.getpid(), *pids}) == 3
    with pytest.raises(RuntimeError, match=r"^ZeroDivisionError: .* by zero$"):
        in_processes(divmod, [(1, 0)], limit=60)
    with pytest.raises(RuntimeError, match=r"^the process ended without a result$"):
        in_processes(os._exit, [(1,)], limit=60)
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match=r"^TypeError: "):
        in_processes(time.sleep, [(60,), ("a",)], limit=60)
    with pytest.raises(TimeoutError, match=r"^takes more than 1 s$"):
        in_processes(time.sleep, [(60,)], limit=1)
    with pytest.raises(TimeoutError, match=r"^no time left$"):
        in_processes(divmod, [(7, 2)], limit=0)
    assert time.monotonic() - begun < 30


def test_the_text_has_the_size_of_conll_2003(gpu: ModuleType) -> None:
    corpus = gpu.generated(14_041)
    train = corpus.splits["train"]
    lengths = [len(sentence) for sentence in train]
    assert len(lengths) == 14_041
    assert sum(lengths) == pytest.approx(203_621, rel=0.02)
    assert max(lengths) == 113
    assert len({word for sentence in train for word in sentence.words}) == pytest.approx(23_624, rel=0.02)
    for sentence in train[:100]:
        parts = [sentence.words, sentence.tags, *sentence.columns.values()]
        assert {len(part) for part in parts} == {len(sentence)}


def test_the_medians_of_nvidia_smi_samples_are_returned(
    gpu: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "nvidia-smi"
    command.write_text(
        '#!/bin/sh\necho "$@" > asked\n'
        'printf "40, 1980, [N/A]\\n50, 1920, [N/A]\\n90, 1950, [N/A]\\n6"\nexec sleep 60\n'
    )
    command.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="12-34"))
    with gpu.sampled("cuda") as load:
        time.sleep(0.5)
    assert load == {"utilization.gpu": 50, "clocks.sm": 1950}
    assert "--id=GPU-12-34" in Path("asked").read_text()
    with gpu.sampled("cpu") as load:
        pass
    assert load == {}


def test_the_crf_without_kernels_decodes_and_learns_as_with_them(gpu: ModuleType) -> None:
    ours = gpu.CRF(num_tags=5)
    problem = gpu.crf.make_problem(3, 7, 5)
    contestants = [gpu.crf.ours(ours), gpu.without_kernels(ours)]
    assert gpu.crf.different(ours, problem, contestants) == []


CIRCUMSTANCES = {
    "benchmark": "gpu",
    "gpu": "a GPU, CUDA 1.2",
    "cpu": "8 x a CPU",
    "date": "2026-11-26T00:00:00+00:00",
    "commit": "1234567890ab",
    "threads": 1,
    "rounds": 5,
    "python": "3.11",
    "versions": {"torch": "2.13", "triton": "3.4"},
    "left_out": ["seeds: 4", "seeds: 8"],
    "code": {"modules.kernels.cuda": "of another version"},
}


def times(**medians: float) -> dict[str, Any]:
    return {
        name.replace("_", "-"): {"median": each, "quartiles": [each, each]} for name, each in medians.items()
    }


def epoch(tokens: int, seconds: float, **load: float) -> dict[str, Any]:
    return {"tokens": tokens, "of": 200, "seconds": seconds, "bytes": 3_000_000_000, "load": load}


def test_tables_show_what_was_measured(gpu: ModuleType) -> None:
    load = {"utilization.gpu": 40.0, "clocks.sm": 1980.0}
    parts = {
        "epochs": {"whole": [epoch(200, 8, **load)], "half": [epoch(100, 20)]},
        "crf": {
            "2 x 3": [{"loss": times(ours=1e-3, PyTorch=4e-3, pytorch_crf=3e-3), "decode": times(ours=1e-3)}]
        },
        "seeds": {"1": [epoch(200, 10)], "2": [epoch(200, 16), epoch(200, 16)]},
        "as trained": {"a": [{"weights": "x", "seconds": 2.0}, {"weights": "y", "seconds": 4.0}]},
        "deterministic": {"a": 2 * [{"weights": "z", "seconds": 4.5}]},
    }
    *shown, circumstances = gpu.timing.tables.of(CIRCUMSTANCES | parts).split("\n\n")
    rows = [line for table in shown for line in table.splitlines()[2:]]
    assert rows == [
        "| whole | 8 | 25 | 3,000 | 40 | 1,980 |  |",
        "| half | 40 (from 50% of its tokens) | 5 | 3,000 |  |  |  |",
        "| 2 x 3, loss and gradient | 1 (1-1) | 4.00 | 3.00 |  |",
        "| 2 x 3, decoding | 1 (1-1) |  |  |  |",
        "| 1 | 20 | 1.00 |  |  |  |",
        "| 2 | 25 | 1.25 |  |  |  |",
        "| a | **differ** | equal | +50% |",
    ]
    assert (
        "commit 1234567890ab; a GPU, CUDA 1.2; 8 x a CPU; Python 3.11, torch 2.13, triton 3.4."
        " Left out: seeds: 4; seeds: 8. **Stale:** modules.kernels.cuda, "
    ) in circumstances


def test_tables_of_a_run_that_ended_early_show_its_parts(gpu: ModuleType) -> None:
    way = {"a": 2 * [{"weights": "x", "seconds": 2.0}]}
    text = gpu.timing.tables.of(CIRCUMSTANCES | {"as trained": way, "seeds": {"2": [epoch(200, 10)]}})
    rows = [line for line in text.splitlines() if line.startswith(("| a ", "| 2 "))]
    assert rows == ["| 2 | 20 |  |  |  |  |", "| a | equal |  |  |"]


def test_the_page_says_so_as_long_as_nothing_was_measured(gpu: ModuleType) -> None:
    assert "Not measured" in gpu.timing.tables.marked("gpu", {})
    measured = CIRCUMSTANCES | {"seeds": {"1": [epoch(200, 10)]}}
    assert "| 1 | 20 | 1.00 |" in gpu.timing.tables.marked("gpu", {"gpu": measured})


def test_a_gpu_that_pytorch_cannot_use_is_an_error(gpu: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("AssertionError: Torch not compiled with CUDA enabled")

    monkeypatch.setattr(gpu.timing, "in_processes", fail)
    with pytest.raises(
        SystemExit, match=r"needs a GPU that PyTorch can use: .* not compiled with CUDA enabled"
    ):
        gpu.gpu("cuda")
    assert gpu.gpu("cpu") == "no GPU"


def test_without_a_gpu_the_command_says_so_in_one_line() -> None:
    environment = {**os.environ, "PYTHON": sys.executable, "CUDA_VISIBLE_DEVICES": "-1"}
    command = ["bash", str(BENCHMARKS / "gpu.sh")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr == "benchmarks/gpu.sh needs a GPU: CUDA_VISIBLE_DEVICES hides all GPUs\n"
    assert ended.stdout == ""
