"""Time how long a command takes from its start to a test F1 of 83.6 on CoNLL-2003; speedrun/README.md has the rules.

    python benchmarks/speedrun.py NAME [--seeds N] [--note TEXT] OVERRIDE ...

`python run.py data=conll2003 OVERRIDE ... seed=S` is run for seeds 1 to N, one after another, each in a new process and
a new folder. Nothing else should run on the machine meanwhile. The seconds and scores are
written to speedrun/NAME.json, what the runs print to speedrun/NAME.log, and the table of the page anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import timing
from scipy.stats import ttest_1samp
from tables import MARKED, table

from ner_experiments.config.compose import compose
from ner_experiments.config.row_settings import root
from ner_experiments.data.needed_files import INPUTS
from ner_experiments.runs import artifacts
from ner_experiments.runs.provenance import commit
from ner_experiments.utils.files import write_json
from ner_experiments.view.cells import probability

RECORDS = timing.FOLDER / "speedrun"
PAGE, RUN = RECORDS / "README.md", timing.FOLDER.parent / "run.py"
TARGET, LEVEL = 83.6, 0.01
GIVEN = ("data", "data_dir", "output_dir", "seed", "audit", "init_from")
"""Settings that a record may not choose: the corpus, its place, and what would train or score more than once."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name", help="name of the record's files")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--note", default="", help="what is new, for the table")
    parser.add_argument("overrides", nargs="*")
    arguments = parser.parse_intermixed_args()
    try:
        check(arguments.overrides)
    except ValueError as error:
        parser.error(str(error))
    with (RECORDS / f"{arguments.name}.log").open("w") as log:
        runs = [run(arguments.overrides, seed, log) for seed in range(1, arguments.seeds + 1)]
    write_json(RECORDS / f"{arguments.name}.json", record(arguments, runs))
    write_page()


def check(overrides: list[str]) -> None:
    """Raise ValueError for what the rules forbid: another corpus, or an input that reads a file."""
    for item in overrides:
        if root(item) in GIVEN:
            raise ValueError(f"{item}: not for a record to choose")
    cfg = compose(["data=conll2003", *overrides])
    for part in (cfg.words, cfg.chars, cfg.features, *cfg.direct.values()):
        kind = part.input._target_.rpartition(".")[2] if part and "input" in part else ""
        if kind in INPUTS:
            raise ValueError(f"{kind}: reads a file besides the corpus")


def run(overrides: list[str], seed: int, log: Any) -> dict[str, Any]:
    """Seconds and scores of one seed. The clock starts before the process does, and stops when it has ended."""
    command = [sys.executable, str(RUN), "data=conll2003", *overrides, f"seed={seed}"]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
        )
        seconds = time.perf_counter() - start
        (path,) = Path(folder).glob("outputs/*/seed-*/metrics.json")
        metrics = artifacts.read(path)
    log.write(f"$ python run.py data=conll2003 {' '.join(overrides)} seed={seed}\n{done.stdout}\n")
    log.flush()
    found = {name: 100 * metrics[name]["f1"] for name in ("dev", "test")}
    print(f"seed {seed}: {seconds:.1f} s, dev F1 {found['dev']:.2f}, test F1 {found['test']:.2f}", flush=True)
    return {"seed": seed, "seconds": seconds, "training_seconds": metrics["seconds"], **found}


def record(arguments: argparse.Namespace, runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": arguments.name,
        "note": arguments.note,
        "overrides": arguments.overrides,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(":/ner_experiments", ":/conf", ":/run.py"),
        "cpu": timing.cpu(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "load": os.getloadavg()[2],
        "runs": runs,
    }


def write_page() -> None:
    """Write the table of README.md between its markers, the earliest record first."""
    found = sorted(
        (json.loads(path.read_text(encoding="utf-8")) for path in RECORDS.glob("*.json")),
        key=lambda it: it["date"],
    )
    rows = table(*("date", "seconds", "test F1", "p", "what is new", "machine"), rows=map(cells, found))
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARKED.sub(lambda it: f"{it[1]}{it[2]}\n{rows}\n\n", text), encoding="utf-8")


def cells(record: dict[str, Any]) -> list[str]:
    """Line of a record in the table. p is that of a one-sided t-test."""
    scores, seconds = ([run[key] for run in record["runs"]] for key in ("test", "seconds"))
    p = ttest_1samp(scores, TARGET, alternative="greater").pvalue
    return [
        record["date"][:10],
        f"[{median(seconds):.0f}]({record['name']}.log) ({min(seconds):.0f} to {max(seconds):.0f})",
        f"{fmean(scores):.2f} ± {stdev(scores):.2f} ({len(scores)})",
        probability(p) + ("" if p < LEVEL else ", **no record**"),
        record["note"],
        record["cpu"],
    ]


if __name__ == "__main__":
    main()
