"""The fixed cost of a command, beside that of importing its libraries; and of a further job of a sweep.

    python benchmarks/startup.py [--threads N] [--rounds N] [--clock processor] [--output FILE]

Times are those of whole processes, one after another. A smoke run trains two steps and scores dev and test; its first
process on a machine also compiles the kernels. One process of each command is run first and not counted, and two
of run.py once more under `python -X importtime`, for the seconds that each top-level package takes. The cost of
a further job of a sweep is that of nine smoke runs in one process, less one, by eight; and its training, the seconds
that its run states.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import timing
from tables import Result, at_most, figure, ratio, spread, table

MEASURES = ("commands.train", "config.compose", "main", "train")

ROOT = timing.FOLDER.parent
SMOKE = ["run.py", "trainer=smoke", "data=toy_en", "runtime.progress=false"]
SWEEP = ["run.py", "-m", *SMOKE[1:], "hydra/launcher=basic"]
FURTHER = 8
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import torch": ["-c", "import torch"],
    "import torch, lightning": ["-c", "import torch, lightning"],
    "run.py --help": ["run.py", "--help"],
    "ner-experiments table": ["-m", "ner_experiments", "table"],
    "ner-experiments table yang2020_table12": ["-m", "ner_experiments", "table", "yang2020_table12"],
    "ner-experiments predict RUN -": ["-m", "ner_experiments", "predict"],
    "run.py trainer=smoke data=toy_en": SMOKE,
    "the first smoke run": SMOKE,
    "a sweep of 1 smoke run": [*SWEEP, "seed=1"],
    f"a sweep of {1 + FURTHER} smoke runs": [*SWEEP, f"seed=range(1,{2 + FURTHER})"],
}
WITH_IMPORTS = ("run.py --help", "run.py trainer=smoke data=toy_en")
LARGEST = 12


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=5))
    with tempfile.TemporaryDirectory() as folder:
        run("a sweep of 1 smoke run", folder)  # a tagger for `predict`
        runs = {name: partial(run, name, folder) for name in COMMANDS}
        if arguments.tiny:
            del runs["the first smoke run"]
        else:
            for start in runs.values():
                start()
        times = timing.measure(runs, arguments.rounds)
        timing.say("a process", times)
        imports = {name: import_times(name, folder) for name in WITH_IMPORTS}
        finished = Path(folder).glob("*/*/seed-*/metrics.json")
        training = statistics.median(json.loads(path.read_text())["seconds"] for path in finished)
    one, many = ([*times.values()][place]["median"] for place in (-2, -1))
    job = {"seconds": (many - one) / FURTHER, "training": training}
    result = {"rounds": arguments.rounds, "commands": times, "further_job": job, "imports": imports}
    timing.write("startup", result, arguments.output)


def run(name: str, folder: str, options: list[str] | None = None) -> str:
    """Run a command and return its stderr. Each training gets a new folder, since a finished run is not repeated."""
    command = COMMANDS[name]
    if command[0] == "run.py" and len(command) > 2:
        command = [*command, f"output_dir={tempfile.mkdtemp(dir=folder)}"]
    if "predict" in command:
        command = [*command, str(next(Path(folder).glob("*/*/seed-1/metrics.json")).parent), "-"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if name == "the first smoke run":
        environment["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(dir=folder)
    done = subprocess.run(
        [sys.executable, *(options or []), *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=True,
        text=True,
        input="Ann works in Oslo.",
    )
    return done.stderr


def import_times(name: str, folder: str) -> dict[str, float]:
    """Seconds of the packages that take longest to import, without the time of what each of them imports."""
    seconds: Counter[str] = Counter()
    for line in run(name, folder, ["-X", "importtime"]).splitlines():
        own, _, module = line.removeprefix("import time:").partition("|")
        if line.startswith("import time:") and own.strip().isdigit():
            package = module.partition("|")[2].strip()
            seconds[package.partition(".")[0]] += int(own) / 1e6
    return dict(seconds.most_common(LARGEST))


def tables(result: Result) -> list[str]:
    commands = result["commands"]
    bare = commands["python -c pass"]
    rows = [[f"`{name}`", spread(times), ratio(times, bare)] for name, times in commands.items()]
    imports = [
        [f"`{name}`", ", ".join(f"{part} {spent:.2f}" for part, spent in parts.items() if spent >= 0.01)]
        for name, parts in result["imports"].items()
    ]
    job = result["further_job"]
    further = [[figure(job["seconds"]), figure(job["training"])]]
    return [
        table("command", "seconds", "times `python -c pass`", rows=rows),
        table("a further job of a sweep, seconds", "of them training", rows=further),
        table("of it, in imports", "seconds", rows=imports),
    ]


def targets(results: dict[str, Result]) -> Iterator[list[str]]:
    seconds = {name: times["median"] for name, times in results["startup"]["commands"].items()}
    smoke, job = seconds["run.py trainer=smoke data=toy_en"], results["startup"]["further_job"]
    for what, most, measured, against in (
        ("`run.py --help`", 1, seconds["run.py --help"], "import torch"),
        ("a smoke run", 3, smoke, "import torch, lightning"),
        ("`predict`", 2.5, seconds["ner-experiments predict RUN -"], "import torch"),
    ):
        yield at_most(f"{what} against `{against}`", most, " times", measured / seconds[against])
    first = seconds["the first smoke run"] - smoke
    yield at_most("the first smoke run, which compiles the kernels: more than a later one", 12, " s", first)
    yield at_most(
        "a further job of a sweep: more than its training", 0.3, " s", job["seconds"] - job["training"]
    )


if __name__ == "__main__":
    main()
