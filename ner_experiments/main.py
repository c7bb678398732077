"""The command line: `ner-experiments NAME ...` runs commands/NAME.py, which is imported only when it is called."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from ner_experiments import __version__
from ner_experiments.utils.text import did_you_mean

USAGE = """usage: ner-experiments COMMAND ...

  train [OVERRIDE ...]          one experiment, or with -m a sweep; `python run.py` is the same
  watch [OVERRIDE ...]          how the runs of a sweep stand, live: done, running, failed, waiting
  predict RUN [FILE]            tags text of your own by a run that is finished
  export RUN                    its tagger as torch.export and ONNX, tried on 1,000 sentences, and a card

  table [NAME] [--json]         a published table beside the runs there are of it; without a name, all tables
  table NAME --keep             copies its runs into results/, with a page of them
  tables                        writes the pages of results/ anew
  report [TABLE ...]            everything measured, as a folder of HTML pages
  dashboard TABLE               the W&B workspace that compares a table's rows, saved there or as a file

  errors RUN [RUN ...] [--json] what kinds of errors runs make, on which mentions, and which differ
  cases RUN RUN [RUN ...]       the test sentences that some runs tag right and others wrong
  attention RUN                 draws how much each token attends to each other in a run of Att
  xor [--json]                  what BiLSTMs cannot learn: proved, measured, and trained against
  xor --run FOLDER [--json]     how much of a trained run's tags past and future decide together

  data check NAME [--json]      what a corpus holds: counts, illegal tags, duplicates, checksums
  data check --format conll|conllu FILE ... [--json]
  data get NAME                 downloads a corpus whose licence allows it
  smoke [NAME ...]              every row of every table trains two steps on tiny files made for it
  completion bash|zsh|fish      a script for Tab completion: eval "$(ner-experiments completion bash)"

`ner-experiments COMMAND --help` says more; `ner-experiments --version` prints the version."""

COMMANDS = sorted(path.stem for path in (Path(__file__).parent / "commands").glob("[a-z]*.py"))


def cli(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status; ValueError and OSError are printed, as user errors."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help"):
        print(USAGE)
        return 0
    if name == "--version":
        print(f"ner_experiments {__version__}")
        return 0
    if name not in COMMANDS:
        print(f"ner-experiments: no command {name!r}{did_you_mean(name, COMMANDS)}", file=sys.stderr)
        return 2
    try:
        return run_command(name, rest)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Parses the arguments of a command, runs it, and returns its exit status.

    A command is a module with `add_arguments(parser)` and `run(arguments)`, or with `main(arguments)` if it parses
    them itself.
    """
    command = import_module(f"ner_experiments.commands.{name}")
    if hasattr(command, "main"):
        return int(command.main(list(arguments)))
    parser = argparse.ArgumentParser(prog=f"ner-experiments {name}")
    command.add_arguments(parser)
    try:
        parsed = parser.parse_intermixed_args(arguments)
    except TypeError:  # a parser with sub-commands does not support options between positional arguments
        parsed = parser.parse_args(arguments)
    return int(command.run(parsed))
