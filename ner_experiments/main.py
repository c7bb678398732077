"""The command line: `ner-experiments COMMAND ...`. Imports only Hydra until there is work to do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast

import hydra

from ner_experiments.commands import table
from ner_experiments.config import compose
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

`ner-experiments COMMAND --help` says more."""

COMMANDS: tuple[str, ...] = ("train", "attention", "cases", "dashboard", "errors", "export")
COMMANDS += ("predict", "report", "smoke", "table", "watch", "xor")
"""Modules of `commands` whose `main` takes a command's arguments. Each is imported when its command is given."""


def cli(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit status."""
    command, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if command in ("-h", "--help"):
        print(USAGE)
        return 0
    own: dict[str, Callable[[list[str]], int]] = {
        "data": data,
        "tables": table.rewrite,
    }
    if command not in (*own, *COMMANDS):
        message = f"ner-experiments: no command {command!r}{did_you_mean(command, [*own, *COMMANDS])}"
        print(message, file=sys.stderr)
        return 2
    try:
        return own[command](rest) if command in own else main_of(command)(rest)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def main_of(command: str) -> Callable[[list[str]], int]:
    """ValueError and OSError that it raises are what the user caused."""
    return cast(Callable[[list[str]], int], import_module(f"ner_experiments.commands.{command}").main)


def data(arguments: list[str]) -> int:
    from ner_experiments.commands.data import main

    return main(arguments, open_source)


def open_source(name: str) -> Any:
    """The corpus that conf/data/NAME.yaml describes; ValueError for a name that has none."""
    from hydra.utils import instantiate

    compose.check([f"data={name}"])
    with compose.hydra_context():
        return instantiate(hydra.compose(compose.CONFIG_NAME, overrides=[f"data={name}"]).data)
