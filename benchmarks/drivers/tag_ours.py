"""Trains with this suite for one epoch, and tags the lines of a text with `ner-experiments predict`.

    python tag_ours.py FOLDER OUTPUT TEXT

The seconds are those of the whole command, start-up included. The run is trained once in a folder.
"""

import subprocess
import sys
import time
from pathlib import Path

import outcome
from run_ours import overrides, places

ROOT = Path(__file__).parents[2]


def main() -> None:
    task, text = outcome.text_task()
    runs = task.folder / "outputs"
    if not runs.exists():
        command = [sys.executable, "run.py", *overrides(task, "tokens"), *places(task), f"output_dir={runs}"]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    (metrics,) = runs.glob("*/*/metrics.json")
    command = [sys.executable, "-m", "ner_experiments", "predict", str(metrics.parent), str(text), "--lines"]
    started = time.perf_counter()
    with text.with_suffix(".jsonl").open("w") as file:
        subprocess.run([*command, "--output", "jsonl"], cwd=ROOT, check=True, stdout=file)
    outcome.write_tagging(task, time.perf_counter() - started, version="")


if __name__ == "__main__":
    main()
