"""The command line: `ner-experiments NAME ...` runs commands/NAME.py, which is imported only when it is called."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from ner_experiments import __version__, commands
from ner_experiments.commands import COMMANDS
from ner_experiments.config.config_dirs import take_config_dirs
from ner_experiments.utils.garbage import exit_without_collecting
from ner_experiments.utils.text import did_you_mean, message_of

FURTHER = """\
Every command takes --config-dir DIR, a folder of your own configs, such as DIR/data/mine.yaml for data=mine.
`ner-experiments COMMAND --help` says more; `ner-experiments --version` prints the version."""


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
        print(usage())
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
    except ModuleNotFoundError as error:  # such as Hydra, without which files of predictions can be compared
        module = f"{error.name}".partition(".")[0]
        rule = (
            f"needs the module {module}, which is not installed; `pip install -e .` in a checkout brings all"
        )
        print(f"ner-experiments {name}: {rule}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130


def usage() -> str:
    """The text of --help, with a line for each command: the first of its file."""
    paths = [Path(commands.__file__).with_name(f"{name}.py") for name in COMMANDS]
    heads = [path.read_text(encoding="utf-8").splitlines()[0].strip('".') for path in paths]
    parts = [head.removeprefix("`ner-experiments ").split("`: ", 1) for head in heads]
    indent = max(len(synopsis) for synopsis, _ in parts) + 4
    screen = shutil.get_terminal_size().columns
    lines = [
        textwrap.fill(
            text, screen, initial_indent=f"  {synopsis}".ljust(indent), subsequent_indent=" " * indent
        )
        for synopsis, text in parts
    ]
    further = [textwrap.fill(line, screen, break_on_hyphens=False) for line in FURTHER.splitlines()]
    return "\n".join(["usage: ner-experiments COMMAND ...", "", *lines, "", *further])


def run_command(name: str, arguments: Sequence[str]) -> int:
    """Parse the arguments of a command, run it, and return its exit status, 0 unless it returns another.

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
    if isinstance(run := getattr(parsed, "run", None), Path) and not run.exists():
        from ner_experiments.tables.sweeps import refuse_several  # imports Hydra

        refuse_several(run)
    return int(command.run(parsed) or 0)


def parse_subcommand(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """The arguments, with options between the positional arguments of a sub-command.

    The parser's default `subcommands` has the parser of each sub-command by its name.
    """
    subcommands = parser.get_default("subcommands")
    if not arguments or arguments[0] not in subcommands:
        return parser.parse_args(arguments)
    name, *rest = arguments
    return subcommands[name].parse_intermixed_args(rest, argparse.Namespace(action=name))
