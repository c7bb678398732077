"""The fixed cost of a command: `python run.py --help`, two tables, and a smoke run, which trains two steps.

    python benchmarks/startup.py [--threads N] [--rounds N] [--output FILE]

Times are those of whole processes, one after another. One process of each is run first and not counted: it compiles
what is then cached on disk. Each command of run.py is run once more under `python -X importtime`, for the seconds that
each top-level package takes.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from functools import partial

import timing

ROOT = timing.FOLDER.parent
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "run.py --help": ["run.py", "--help"],
    "ner-experiments table": ["-m", "ner_experiments", "table"],
    "ner-experiments table yang2020_table12": ["-m", "ner_experiments", "table", "yang2020_table12"],
    "run.py trainer=smoke data=toy_en": ["run.py", "trainer=smoke", "data=toy_en"],
}
LARGEST = 12


def main() -> None:
    arguments = timing.begin(timing.options(__doc__, rounds=5))
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: partial(run, command, folder) for name, command in COMMANDS.items()}
        for start in runs.values():
            start()
        times = timing.measure(runs, arguments.rounds)
        timing.say("a process", times)
        imports = {
            name: import_times(command, folder) for name, command in COMMANDS.items() if "run.py" in command
        }
    result = {"rounds": arguments.rounds, "commands": times, "imports": imports}
    timing.write("startup", result, arguments.output)


def run(command: list[str], folder: str) -> str:
    """Run a command and return its stderr. Each smoke run gets a new folder, since a finished run is not repeated."""
    if "trainer=smoke" in command:
        command = [*command, f"output_dir={tempfile.mkdtemp(dir=folder)}", "runtime.progress=false"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, check=True, text=True
    )
    return done.stderr


def import_times(command: list[str], folder: str) -> dict[str, float]:
    """Seconds of the packages that take longest to import, without the time of what each of them imports."""
    seconds: Counter[str] = Counter()
    for line in run(["-X", "importtime", *command], folder).splitlines():
        own, _, module = line.removeprefix("import time:").partition("|")
        if line.startswith("import time:") and own.strip().isdigit():
            name = module.partition("|")[2].strip()
            seconds[name.partition(".")[0]] += int(own) / 1e6
    return dict(seconds.most_common(LARGEST))


if __name__ == "__main__":
    main()
