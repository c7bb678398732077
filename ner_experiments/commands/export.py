"""`ner-experiments export`: a run's tagger as torch.export and ONNX, with a model card."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str]) -> int:
    """Returns the exit status. ValueError or OSError for what the user caused."""
    arguments = parser().parse_args(argv)
    show(arguments)
    return 0


def parser() -> argparse.ArgumentParser:
    text = (
        "Writes a finished run's tagger, best path included, as model.pt2 (torch.export) and model.onnx, "
        "with encoder.json, which tells how to make its inputs, and a model card. Each file is tried: unless "
        "it gives the run's own tags, nothing is written. docs/export.md says how to use them."
    )
    parser = argparse.ArgumentParser(prog="ner-experiments export", description=text)
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a finished run")
    parser.add_argument("--format", choices=("onnx", "torch", "both"), default="both", help="(both)")
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="a folder that is not there yet (RUN/export)"
    )
    parser.add_argument(
        "--sentences",
        type=int,
        default=1000,
        metavar="N",
        help="how many it is tried on, of dev and test (1000)",
    )
    return parser


def show(arguments: argparse.Namespace) -> None:
    if arguments.sentences < 1:
        raise ValueError(f"--sentences must be at least 1, got {arguments.sentences}")
    from ner_experiments.export.export import export

    folder = arguments.output or arguments.run / "export"
    exported = export(arguments.run, folder, format=arguments.format, number=arguments.sentences)
    print(f"the run's own tags on {arguments.sentences:,} sentences ({exported.tried.origin})")
    for name, difference in exported.differences.items():
        print(f"{folder / name}: scores differ by at most {difference:.1e}")
    for name in ("encoder.json", "README.md"):
        print(folder / name)
