"""`make faults`: the fault campaign. Prints the number of trials of each fault, and how each was survived."""

import logging
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import faults_disks
import faults_files
import faults_runs
from faults_disks import Skipped

Trials = Callable[[random.Random, Path], Iterator[str]]
"""Each trial yields how it was survived; AssertionError if a result was lost, corrupted or wrongly counted."""

CAMPAIGN: dict[Trials, int] = {
    faults_files.killed_downloads: 15,
    faults_files.killed_vector_caches: 15,
    faults_files.killed_bert_caches: 12,
    faults_files.damaged_vector_caches: 200,
    faults_files.damaged_bert_caches: 200,
    faults_files.damaged_kernel_caches: 200,
    faults_files.damaged_checkpoints: 200,
    faults_files.damaged_results: 1_000,
    faults_files.crafted_runs: 100,
    faults_disks.killed_writes: 12,
    faults_runs.killed_sweeps: 10,
    faults_runs.terminated: 4,
    faults_disks.full_disks: 4,
    faults_disks.failed_writes: 4,
    faults_disks.read_only: 2,
    faults_disks.without_flock: 8,
    faults_runs.process_groups: 4,
    faults_runs.memory_limits: 4,
    faults_runs.jumping_clocks: 1,
    faults_runs.skewed_clocks: 4,
    faults_runs.no_numbers: 1,
    faults_runs.no_memory: 2,
    faults_runs.changed_data: 1,
    faults_runs.wandb_troubles: 3,
    faults_runs.processes_of_one_model: 2,
}


def survived(trials: Trials, number: int, folder: Path, seed: int = 1) -> Counter[str]:
    """Number of trials by how they were survived."""
    return Counter(islice(trials(random.Random(seed), folder), number))


def main(names: list[str]) -> int:
    logging.getLogger("ner_experiments").setLevel(logging.ERROR)  # every damaged file is a warning
    bad, began = 0, time.monotonic()
    for trials, number in CAMPAIGN.items():
        if names and trials.__name__ not in names:
            continue
        start = time.monotonic()
        print(f"{trials.__name__}: {trials.__doc__}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                ways = survived(trials, number, Path(folder))
            except Skipped as reason:
                print(f"    skipped: {reason}\n", flush=True)
                continue
            except Exception:
                bad += 1
                traceback.print_exc()
                continue
        for way, count in sorted(ways.items()):
            print(f"    {count:>5}  {way}")
        seconds = f"{time.monotonic() - start:.0f} s"
        print(
            f"    {ways.total():>5}  tried in {seconds}: 0 lost, 0 corrupted, 0 wrongly counted\n",
            flush=True,
        )
    print(f"{bad} kinds of fault not survived, in {time.monotonic() - began:.0f} seconds")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
