"""`ner-experiments export RUN`: export a run's tagger to torch.export and ONNX, verified, with a model card.

The module that imports torch is imported inside `run`, to keep `--help` quick.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ner_experiments.utils.arguments import at_least, refuse

SENTENCES = 1000
"""Number of sentences that an export is verified on by default."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command to its parser."""
    parser.description = (
        "Write a finished run's tagger, decoding included, as model.pt2 (torch.export) and model.onnx, with "
        "encoder.json, which describes its inputs, tag.py, which tags text by NumPy and ONNX Runtime alone, and a "
        "model card. Each file is verified: unless it reproduces the run's own tags, nothing is written. "
        "docs/predict.md explains how to use them."
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a finished run")
    parser.add_argument(
        "--to",
        choices=("files", "hub-folder"),
        default="files",
        help="hub-folder: instead of these files, what the Hugging Face hub expects: weights as safetensors, the "
        "configuration, and a model card (files)",
    )
    parser.add_argument(
        "--license",
        metavar="ID",
        help="hub-folder: an identifier of the hub, such as apache-2.0 (that of the corpus if open, else other)",
    )
    parser.add_argument("--format", choices=("onnx", "torch", "both"), help="files: which of the two (both)")
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="a folder that does not exist yet (RUN/export, RUN/hub)"
    )
    parser.add_argument(
        "--sentences",
        type=int,
        metavar="N",
        help=f"files: number of sentences of dev and test to verify them on ({SENTENCES})",
    )


def run(arguments: argparse.Namespace) -> None:
    """Export the run, and print the files. Raises ValueError or OSError for user errors."""
    if arguments.to == "hub-folder":
        refuse(arguments, "format", "sentences", reason="is for --to files")
        from ner_experiments.export import hub  # slow to import: torch

        folder = arguments.output or arguments.run / "hub"
        for name in hub.export(arguments.run, folder, licence=arguments.license):
            print(folder / name)
        return
    refuse(arguments, "license", reason="is for --to hub-folder")
    number = SENTENCES if arguments.sentences is None else arguments.sentences
    at_least(1, sentences=number)
    from ner_experiments.export.export import export  # slow to import: torch

    folder = arguments.output or arguments.run / "export"
    exported = export(arguments.run, folder, format=arguments.format or "both", number=number)
    print(f"the run's own tags on {number:,} sentences ({exported.checked.origin})")
    for name, difference in exported.differences.items():
        print(f"{folder / name}: scores differ by at most {difference:.1e}")
    for name in ("encoder.json", "tag.py", "tokens.py", "README.md"):
        if (folder / name).exists():
            print(folder / name)
