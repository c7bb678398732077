"""Work in a process of its own, whose peak memory is that work's alone."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import timing
import torch

from ner_experiments.runs.provenance import peak_memory, reset_peak_memory

CPU = torch.device("cpu")


def alone(prepare: Callable[..., Callable[[], Any]], *arguments: Any, threads: int) -> dict[str, Any]:
    """Calls what `prepare(*arguments)` returns: its seconds, its result, and by how many bytes memory grew.

    Imports and whatever else `prepare` does count for neither. The process is a fork of one that has imported
    PyTorch and the suite, and has computed nothing.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ner_experiments.train"])
    with context.Pool(1) as pool:
        return pool.apply(measured, (prepare, arguments, threads))


def measured(prepare: Callable[..., Callable[[], Any]], arguments: Any, threads: int) -> dict[str, Any]:
    torch.set_num_threads(threads)
    run = prepare(*arguments)
    reset_peak_memory()
    before = resident()
    start = timing.now()
    result = run()
    seconds = timing.now() - start
    return {"seconds": seconds, "bytes": peak_memory(CPU)["main"] - before, "result": result}


def resident() -> int:
    """Bytes in main memory now; where there is no /proc, the peak so far."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    now = [1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS")]
    return now[0] if now else peak_memory(CPU)["main"]
