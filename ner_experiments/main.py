"""The command line: `ner-experiments NAME ...` runs commands/NAME.py, which is imported only when it is called."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from ner_experiments import __version__
from ner_experiments.config.config_dirs import take_config_dirs
from ner_experiments.utils.garbage import exit_without_collecting
from ner_experiments.utils.text import did_you_mean, message_of

USAGE = """usage: ner-experiments COMMAND ...

  train [OVERRIDE ...]          train one experiment, or a sweep with -m; same as `python run.py`
  watch [OVERRIDE ...]          show the live status of a sweep
  predict RUN [FILE]            tag your own text with a finished run
  export RUN                    export a run's tagger to torch.export and ONNX, verified, with a model card

  table                         list all tables, sweeps and searches
  table NAME [--json]           print a published table next to the finished runs
  table NAME --archive          archive its runs in results/, with a page
  tables                        regenerate the pages of results/
  claims [ID ...] [--json]      print the papers' claims with verdicts computed from the archived runs
  register [PAPER ...]          check the registered replication; print its hashes, cost, commands and verdicts
  rescore NAME --gold FILE      score the runs of a table against another gold file of the same text
  report [TABLE ...]            build an HTML report of all results
  dashboard TABLE               create a W&B workspace that compares the rows of a table

  errors RUN [RUN ...] [--json] analyze the errors of runs and compare them
  cases RUN RUN [RUN ...]       list test sentences that some runs tag correctly and others do not
  attention RUN                 draw the attention maps of a run of Att
  xor [--json]                  show the XOR limit of BiLSTMs: by proof, measurement and training
  xor --run FOLDER [--json]     measure how often a trained run needs past and future jointly

  data check NAME [--json]      check a corpus: counts, illegal tags, duplicates, checksums
  data check --format FORMAT FILE ... [--json]
  data new NAME FILE ...        write a config for a corpus of your own, after a look at its files
  data convert FROM TO          write a corpus or a file in another format
  data get NAME                 download a corpus with an open license
  smoke [NAME ...]              train every table row for two steps on tiny generated files
  completion bash|zsh|fish      print a script for Tab completion: eval "$(ner-experiments completion bash)"

Every command takes --config-dir DIR, a folder of your own configs, such as DIR/data/mine.yaml for data=mine.
`ner-experiments COMMAND --help` says more; `ner-experiments --version` prints the version."""

COMMANDS = sorted(path.stem for path in (Path(__file__).parent / "commands").glob("[a-z]*.py"))


def cli(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 1, without a message, if the reader of its output has gone."""
    exit_without_collecting()
    try:
        try:
            return answer(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def answer(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. ValueError and OSError, which are user errors, are printed."""
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
        return run_command(name, take_config_dirs(rest))
    except BrokenPipeError:  # see `cli`
        raise
    except (ValueError, OSError) as error:
        print(message_of(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Parse the arguments of a command, run it, and return its exit status.

    A command is a module with `add_arguments(parser)` and `run(arguments)`, or with `main(arguments)` if it parses
    them itself.
    """
    command = import_module(f"ner_experiments.commands.{name}")
    if hasattr(command, "main"):
        return int(command.main(list(arguments)))
    parser = argparse.ArgumentParser(prog=f"ner-experiments {name}")
    parser.add_argument("--version", action="version", version=f"ner_experiments {__version__}")
    command.add_arguments(parser)
    try:
        parsed = parser.parse_intermixed_args(arguments)
    except TypeError:  # a parser with sub-commands cannot do it
        parsed = parse_subcommand(parser, arguments)
    return int(command.run(parsed))


def parse_subcommand(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments, with options between the positional arguments of a sub-command.

    The parser's default `subcommands` has the parser of each sub-command by its name.
    """
    subcommands = parser.get_default("subcommands")
    if not arguments or arguments[0] not in subcommands:
        return parser.parse_args(arguments)
    name, *rest = arguments
    return subcommands[name].parse_intermixed_args(rest, argparse.Namespace(action=name))
