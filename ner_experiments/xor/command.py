"""`ner-experiments xor`: the XOR limit as certificate, measurement and experiment, or of a trained run."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str]) -> int:
    """Returns the exit status: 1 if training did what was proved impossible.

    ValueError or OSError for what the user caused.
    """
    arguments = parser().parse_args(argv)
    from ner_experiments.xor import report

    return report.of_run(arguments) if arguments.run else report.of_suite(arguments)


def parser() -> argparse.ArgumentParser:
    text = "The XOR limit of taggers whose past and future only add up (Li, Fu & Ma 2020, 3.3 and 3.4)."
    parser = argparse.ArgumentParser(prog="ner-experiments xor", description=text)
    parser.add_argument("--models", nargs="+", metavar="NAME", help="only these of conf/model")
    parser.add_argument(
        "--seeds", type=int, default=20, metavar="N", help="trainings per model and decoder (20)"
    )
    parser.add_argument("--certificates", action="store_true", help="print every proof, not only the first")
    parser.add_argument(
        "--run", type=Path, metavar="FOLDER", help="instead: a finished run on its own corpus"
    )
    parser.add_argument("--sentences", type=int, default=200, metavar="N", help="with --run: how many (200)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--output", type=Path, default=Path("outputs/xor"), metavar="DIR", help="(outputs/xor)"
    )
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, metavar="N", help="(the machine's cores)"
    )
    return parser
