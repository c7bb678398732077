"""Shared by all benchmarks: options, interleaved rounds, measurement in separate processes, and result files."""

import argparse
import importlib.metadata
import json
import math
import multiprocessing
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import tables
import torch
from torch import Tensor

from ner_experiments.runs.provenance import commit, peak_memory, reset_peak_memory
from ner_experiments.utils.files import atomic_write

Times = dict[str, Any]
"""Seconds: {"median": ..., "quartiles": [..., ...]}."""

FOLDER = Path(__file__).parent
PACKAGES = ("torch", "triton", "numba", "llvmlite", "numpy", "lightning", "torchmetrics")
SOURCES = (":/ner_experiments", ":/conf", ":/run.py", ":/benchmarks/*.py")
CPU = torch.device("cpu")
CLOCK = "BENCHMARK_CLOCK"
TURN = 0.02
"""Minimum duration of a measurement in seconds: shorter runs are repeated."""
PEERS = ("pytorch-crf", "torch-struct", "flair", "seqeval", "gensim")


def options(about: str | None, *, rounds: int) -> argparse.ArgumentParser:
    """Parser of the options of every benchmark. A hidden `--tiny` selects sizes small enough for tests."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument(
        "--clock",
        choices=("wall", "processor"),
        default="wall",
        help="processor: of one thread, where others use the machine too",
    )
    parser.add_argument("--output", type=Path, help="a file; otherwise benchmarks/results.json")
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    return parser


def begin(parser: argparse.ArgumentParser) -> argparse.Namespace:
    arguments = parser.parse_args()
    if arguments.tiny and not arguments.output:
        parser.error("--tiny requires --output: its measurements are not meaningful")
    if arguments.clock == "processor" and arguments.threads > 1:
        parser.error("--clock processor adds the seconds of all threads up: it takes --threads 1")
    torch.set_num_threads(arguments.threads)
    os.environ[CLOCK] = arguments.clock  # the processes that are started measure by it, too
    return arguments


def now() -> float:
    """Seconds of the wall clock, or of processor time used by this process and its children, by `--clock`.

    If this process uses a GPU, waits for it to finish first.
    """
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    if os.environ.get(CLOCK) != "processor":
        return time.perf_counter()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(
    runs: Mapping[str, Callable[[], object]], rounds: int, *, slow: float = float("inf")
) -> dict[str, Times]:
    """Times of each run. All run in turn, round after round, so that noise of the machine affects them all.

    A run shorter than `TURN` is repeated for that long, and the mean without the first repetition counts. Otherwise the
    state of the caches and spinning threads that other runs have left would matter more than the run itself.

    A run of more than `slow` seconds is run once. Callers warm the runs up, and check that their results are equal.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            if not (seconds[name] and seconds[name][0] > slow):
                seconds[name].append(turn(run))
    return {name: summary(times) for name, times in seconds.items()}


def turn(run: Callable[[], object]) -> float:
    once = repeated(run, 1)
    return once if once >= TURN else repeated(run, math.ceil(TURN / once))


def repeated(run: Callable[[], object], times: int) -> float:
    """Mean seconds of a run that is repeated `times` times."""
    start = now()
    for _ in range(times):
        run()
    return (now() - start) / times


def derived(
    forward: Callable[[], Tensor], leaves: Sequence[Tensor], up: Tensor | None = None
) -> Callable[[], Tensor]:
    """A function that runs `forward` and the gradient with respect to `leaves`; `up` is the upstream gradient."""

    def run() -> Tensor:
        for leaf in leaves:
            leaf.grad = None
        result = forward()
        result.backward(up)
        return result

    return run


def alone(prepare: Callable[..., Callable[[], Any]], *arguments: Any, threads: int) -> dict[str, Any]:
    """Call the function that `prepare(*arguments)` returns, in a process of its own.

    Returns its seconds, its result, and the bytes by which memory grew. Imports and all else that `prepare` does are
    not counted. The process is a fork of one that has imported PyTorch and the suite, and has computed nothing.
    """
    with forkserver().Pool(1) as pool:
        return pool.apply(measured, (prepare, arguments, threads))


def forkserver() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ner_experiments.train"])
    return context


def in_processes(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]], limit: float) -> list[Any]:
    """Run the calls concurrently, each in its own process, and return their results.

    RuntimeError as soon as one fails, TimeoutError after `limit` seconds; the others are then killed.
    """
    if limit <= 0:
        raise TimeoutError("no time left")
    end = time.perf_counter() + limit
    running: list[tuple[BaseProcess, Connection]] = []
    results: dict[Connection, Any] = {}
    try:
        running += (start_process(function, call) for call in calls)
        while waiting := [each for _, each in running if each not in results]:
            ready = wait(waiting, max(0, end - time.perf_counter()))
            if not ready:
                raise TimeoutError(f"takes more than {limit:.0f} s")
            results |= {each: received(each) for each in ready}
    finally:
        for process, _ in running:
            process.kill()
            process.join()
    return [results[each] for _, each in running]


def start_process(function: Callable[..., Any], call: tuple[Any, ...]) -> tuple[BaseProcess, Connection]:
    receiver, sender = forkserver().Pipe(duplex=False)
    process = forkserver().Process(target=send_result, args=(sender, function, call), daemon=True)
    process.start()
    sender.close()  # so that `receiver` sees the end of the pipe when the process exits
    return process, receiver


def send_result(sender: Connection, function: Callable[..., Any], call: tuple[Any, ...]) -> None:
    try:
        sender.send((function(*call), ""))
    except Exception as error:
        sender.send((None, f"{type(error).__name__}: {error}"))


def received(connection: Connection) -> Any:
    try:
        result, error = connection.recv()
    except EOFError:
        raise RuntimeError("the process ended without a result") from None
    if error:
        raise RuntimeError(error)
    return result


def measured(prepare: Callable[..., Callable[[], Any]], arguments: Any, threads: int) -> dict[str, Any]:
    torch.set_num_threads(threads)
    run = prepare(*arguments)
    reset_peak_memory()
    before = resident()
    start = now()
    result = run()
    seconds = now() - start
    return {"seconds": seconds, "bytes": peak_memory(CPU)["main"] - before, "result": result}


def resident() -> int:
    """Bytes of this process in main memory now; without /proc, the peak so far."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    sizes = [1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS")]
    return sizes[0] if sizes else peak_memory(CPU)["main"]


def summary(values: list[float]) -> dict[str, Any]:
    return {"median": statistics.median(values), "quartiles": quartiles(values)}


def quartiles(values: list[float]) -> list[float]:
    first, _, third = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return [first, third]


def ratios(cases: Iterable[Mapping[str, Times]], name: str, ours: str = "ours") -> dict[str, Any] | None:
    """Distribution of the time of `name` over ours, over the cases in which it ran; None if it ran in none."""
    factors = [case[name]["median"] / case[ours]["median"] for case in cases if name in case]
    return {"worst": min(factors), **summary(factors), "best": max(factors)} if factors else None


def present(peers: Mapping[str, Callable[[], object]]) -> list[str]:
    """The peers whose packages are installed."""
    names = []
    for name, make in peers.items():
        try:
            make()
            names.append(name)
        except ImportError as error:
            print(f"{name} is left out: {error}", flush=True)
    return names


def say(case: str, measured: Mapping[str, Times]) -> None:
    """Print one line of progress, in milliseconds."""
    times = (f"{name} {one['median'] * 1e3:.3g}" for name, one in measured.items())
    print(f"{case} [ms]: {', '.join(times)}", flush=True)


def write(name: str, result: Mapping[str, Any], output: Path | None = None) -> None:
    """Keep the result with its circumstances in benchmarks/results.json or in `output`, and print its tables."""
    print(
        tables.of(save(name, result, output)), f"{name}: {output or tables.RESULTS}", sep="\n\n", flush=True
    )


def save(name: str, result: Mapping[str, Any], output: Path | None = None) -> tables.Result:
    """`write` without printing anything; returns the result with its circumstances."""
    path, whole = (
        output or tables.RESULTS,
        {"benchmark": name, **circumstances(), "code": tables.code(name), **result},
    )
    results = tables.read(path) | {name: whole}
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = {
        each: [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()]
        for each, found in results.items()
    }  # a line each, so that differences can be read
    lines = [f"{json.dumps(each)}: {{\n" + ",\n".join(found) + "\n}" for each, found in parts.items()]
    with atomic_write(path) as partial:
        partial.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return whole


def circumstances() -> dict[str, Any]:
    """Machine, versions and settings that a time depends on."""
    versions = {}
    for name in (*PACKAGES, *PEERS):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(*SOURCES),
        "cpu": cpu(),
        "threads": torch.get_num_threads(),
        "clock": os.environ.get(CLOCK, "wall"),
        "python": platform.python_version(),
        "versions": versions,
    }


def cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else platform.processor()
