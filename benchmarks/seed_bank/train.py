"""Train the cells of the seed bank: one corpus after the other, all its cells with seed 1, then all with seed 2, etc.

The order makes whole tables early: all rows of a corpus with many seeds are worth more than all corpora with few.

    python benchmarks/seed_bank/train.py [--seeds N] [--runs DIR] [--output DIR]

As soon as a run is finished, it is added to the file of its cell, as counts and tags without words, and its folder is
removed. A repeated command trains what is missing, and resumes a run that was interrupted.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import time
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from cells import FOLDER, ROWS, Cell, pack_counts

from ner_experiments.config.compose import compose
from ner_experiments.runs.archived_run import pack_tags
from ner_experiments.runs.run import open_run
from ner_experiments.train import train

SEEDS = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds per cell")
    parser.add_argument(
        "--runs", type=Path, default=Path("outputs/seed_bank"), help="folder of unfinished runs"
    )
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of the bank")
    parser.add_argument("overrides", nargs="*", help="overrides of every cell, such as data_dir=DIR")
    arguments = parser.parse_args()
    logging.getLogger("ner_experiments").setLevel(logging.WARNING)
    for corpus, rows in ROWS.items():
        for seed, row in product(range(1, arguments.seeds + 1), rows):
            cell = Cell(corpus, row)
            if seed not in {run["seed"] for run in cell.runs(arguments.output)}:
                add(cell, seed, arguments)


def add(cell: Cell, seed: int, arguments: argparse.Namespace) -> None:
    """Train a cell with a seed, add it to the bank, and remove its folder."""
    began, clock = time.time(), time.process_time()
    settings = ["runtime.progress=false", f"output_dir={arguments.runs}", *arguments.overrides]
    result = train(compose([*cell.overrides, *settings, f"seed={seed}"]))
    folder = Path(result["folder"])
    cell.add(packed(folder, seed, time.process_time() - clock), arguments.output)
    shutil.rmtree(folder)
    print(
        f"{cell.corpus} {cell.row} seed {seed}: test F1 {100 * result['test']['f1']:.2f},"
        f" {time.process_time() - clock:.0f} s of CPU in {time.time() - began:.0f} s",
        flush=True,
    )


def packed(folder: Path, seed: int, cpu_seconds: float) -> dict[str, Any]:
    """The part of a finished run that the bank stores. Scores are in [0, 1]."""
    run = open_run(folder)
    metrics = run.metrics
    return {
        "seed": seed,
        "f1": metrics["test"]["f1"],
        "macro_f1": fmean(each["f1"] for each in metrics["test"]["types"].values()),
        "dev_f1": metrics["dev"]["f1"],
        "best_epoch": metrics["best_epoch"],
        "identity": metrics["identity"],
        "code": metrics["code"],
        "cpu_seconds": round(cpu_seconds, 1),
        "counts": pack_counts(run.counts()),
        "predicted_tags": pack_tags(run.predicted_tags()),
    }


if __name__ == "__main__":
    main()
