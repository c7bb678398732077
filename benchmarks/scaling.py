"""Growth of time and memory with each setting, all others unchanged.

    python benchmarks/scaling.py [--threads N] [--rounds N] [--output FILE]

The starting point is stacked BiLSTMs with a CRF: two layers of 100 units per direction, 32 sentences of 20 tokens, 17
tags. Measured is a training step; for the size of the corpus, an epoch with the encoding of its sentences. Each value
has a process of its own in each round. Memory is what the peak adds to the libraries and a tiny model, which are loaded
before. For the number of processes, `trainer=ddp` trains on toy English with one thread each, measured by the wall
clock; the memory is all of the first process's. A slope is that of log time or memory over the log of the setting, over
all values and over the last two: 1 is linear, 0 is constant.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import timing
from tables import CRF_MODULES, LSTM_MODULES, Result, table
from taggers import Trial, made_up

MEASURES = (*LSTM_MODULES, *CRF_MODULES, "data.encoder", "train")

DEFAULT = {"sentences": 32, "length": 20, "types": 4, "units": 100, "layers": 2}
KNOBS: dict[str, tuple[int, ...]] = {
    "length": (10, 20, 40, 80, 160),
    "types": (1, 2, 4, 8, 16, 32),
    "units": (25, 50, 100, 200, 400),
    "layers": (1, 2, 4, 8),
    "sentences": (250, 500, 1000, 2000, 4000),
}
NAMES = {"types": "tags", "sentences": "sentences of the corpus"}
X = {"types": lambda types: 1 + 4 * types}
PROCESSES = (1, 2)
STEPS = 3


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=3))
    knobs = {name: values[:2] if arguments.tiny else values for name, values in KNOBS.items()}
    lines = {name: line(name, values, arguments) for name, values in knobs.items()}
    if not arguments.tiny and arguments.clock == "wall":  # a processor's seconds do not shrink
        lines["processes"] = processes(arguments.rounds)
    result = {"rounds": arguments.rounds, "default": DEFAULT, "lines": lines}
    timing.write("scaling", result, arguments.output)


def line(name: str, values: tuple[int, ...], arguments: argparse.Namespace) -> dict[str, Any]:
    prepare = prepared_epoch if name == "sentences" else prepared_steps
    seconds: list[list[float]] = [[] for _ in values]
    peaks = [0] * len(values)
    for _ in range(arguments.rounds):
        for place, value in enumerate(values):
            one = timing.alone(prepare, DEFAULT | {name: value}, threads=arguments.threads)
            seconds[place].append(one["result"])
            peaks[place] = max(peaks[place], one["bytes"])
    return summarized(NAMES.get(name, name), [*map(X.get(name, int), values)], seconds, peaks)


def summarized(name: str, x: list[int], seconds: list[list[float]], peaks: list[int]) -> dict[str, Any]:
    times = [timing.summary(measured) for measured in seconds]
    slope = {"seconds": slopes(x, [time["median"] for time in times]), "bytes": slopes(x, peaks)}
    points = zip(x, times, peaks, strict=True)
    text = ", ".join(f"{n}: {1e3 * time['median']:.3g} ms {b / 1e6:.0f} MB" for n, time, b in points)
    print(f"{name}: {text}; slopes {slope['seconds']['last']:.2f}, {slope['bytes']['last']:.2f}", flush=True)
    return {"name": name, "values": x, "seconds": times, "bytes": peaks, "slopes": slope}


def slopes(x: Sequence[float], y: Sequence[float]) -> dict[str, float]:
    across, up = np.log(x), np.log(np.maximum(y, 1e-12))
    last = (up[-1] - up[-2]) / (across[-1] - across[-2])
    return {"all": float(np.polyfit(across, up, 1)[0]), "last": float(last)}


def prepared_steps(knobs: dict[str, int]) -> Callable[[], float]:
    """Load what is loaded once, and return the function to measure, which also builds the model and its data."""
    warm_up()

    def run() -> float:
        trial = made(knobs)
        (batch,) = trial.batches()
        trial.step(batch)
        return timing.measure({"step": lambda: trial.step(batch)}, STEPS)["step"]["median"]

    return run


def prepared_epoch(knobs: dict[str, int]) -> Callable[[], float]:
    warm_up()
    corpus = made_up(knobs["sentences"], range(5, 36))

    def run() -> float:
        start = timing.now()
        trial = Trial(corpus, overrides(knobs))
        for batch in trial.batches():
            trial.step(batch)
        return timing.now() - start

    return run


def warm_up() -> None:
    small = made(DEFAULT | {"sentences": 2, "length": 2, "units": 2})
    for batch in small.batches():
        small.step(batch)


def made(knobs: dict[str, int]) -> Trial:
    return Trial(made_up(knobs["sentences"], knobs["length"], knobs["types"]), overrides(knobs))


def overrides(knobs: dict[str, int]) -> list[str]:
    units, layers = f"model.hidden_size={knobs['units']}", f"layers={knobs['layers']}"
    return ["model=stacked", units, layers, "chars=none", "batches=random"]


def processes(rounds: int) -> dict[str, Any]:
    turns = [[trained(number) for number in PROCESSES] for _ in range(rounds)]
    runs = list(zip(*turns, strict=True))
    seconds = [[1000 / run["tokens_per_second"] for run in of_one] for of_one in runs]
    peaks = [max(run["peak_memory_bytes"]["main"] for run in of_one) for of_one in runs]
    return summarized("processes", list(PROCESSES), seconds, peaks)


def trained(number: int) -> dict[str, Any]:
    """The metrics.json of a run of two epochs by this number of processes."""
    root = timing.FOLDER.parent
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "run.py",
            "trainer=ddp",
            f"trainer.devices={number}",
            "trainer.max_epochs=2",
        ]
        command += ["runtime.accelerator=cpu", "runtime.progress=false", f"output_dir={folder}"]
        environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
        subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True)
        (path,) = Path(folder).rglob("metrics.json")
        return json.loads(path.read_text(encoding="utf-8"))


def tables(result: Result) -> list[str]:
    rows = [
        [
            line["name"],
            ", ".join(map(str, line["values"])),
            *(
                f"{line['slopes'][what][which]:.2f}"
                for what in ("seconds", "bytes")
                for which in ("all", "last")
            ),
        ]
        for line in result["lines"].values()
    ]
    return [
        table("knob", "values", "slope of time", "at its end", "slope of memory", "at its end", rows=rows)
    ]


if __name__ == "__main__":
    main()
