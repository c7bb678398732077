"""The campaign: `make fuzz`, or with options `PYTHONPATH=tests/helpers:tests/campaigns python -m fuzz --help`."""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from fuzz.campaign import Outcome, run_named
from fuzz.other_readers import all_readers

SHOWN = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the campaign's inputs (1,015,000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="READER", help="such as weibo, csv, vectors")
    parser.add_argument("--case", type=int, help="of that reader: this input alone")
    options = parser.parse_args()
    began, total = time.perf_counter(), Counter[str]()
    for name, outcome in outcomes(options):
        show(name, outcome)
        total += Counter(tried=outcome.tried, accepted=outcome.accepted, wrong=len(outcome.wrong))
    minutes = (time.perf_counter() - began) / 60
    print(
        f"{total['tried']:,} inputs, {total['accepted']:,} accepted, {total['wrong']:,} wrong "
        f"(a traceback, a hang, a changed mention, a refusal without place or reason), {minutes:.1f} minutes"
    )
    return 1 if total["wrong"] or not total["tried"] else 0


def outcomes(options: argparse.Namespace) -> Iterator[tuple[str, Outcome]]:
    """Outcome of each reader in turn, with its cases spread over one process per processor."""
    with tempfile.TemporaryDirectory() as folder:
        readers = [reader for reader in all_readers(Path(folder)) if options.only in (None, reader.name)]
    names = [reader.name for reader in readers]
    numbers = [
        range(options.case, options.case + 1)
        if options.case is not None
        else range(round(options.share * reader.inputs))
        for reader in readers
    ]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        yield from zip(names, pool.map(partial(run_named, options.seed), names, numbers), strict=True)


def show(name: str, outcome: Outcome) -> None:
    print(
        f"{name}: {outcome.tried:,} inputs ({outcome.whole:,} whole), {outcome.accepted:,} accepted, "
        f"{outcome.rules.total():,} refused, {len(outcome.wrong):,} wrong; "
        f"{outcome.seconds:.0f} s, the slowest {outcome.slowest:.2f} s"
    )
    for rule, number in outcome.rules.most_common():
        print(f"    {number:8,} {rule}")
    for number, message in list(outcome.wrong.items())[:SHOWN]:
        print(f"  WRONG, --only '{name}' --case {number}:\n{message}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
