"""`ner-experiments completion bash|zsh|fish`: print a script for Tab completion, which the shell evaluates.

The script asks `completion query LINE` at each Tab, where LINE is the command line up to the cursor.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ner_experiments.commands import COMMANDS
from ner_experiments.config import config_dirs
from ner_experiments.config.overrides import SWEEP_SETTINGS
from ner_experiments.launch.shell_scripts import QUERY, SHELLS, script

ABOUT = "Print a script that completes commands, settings, tables, sweeps and runs by Tab."
OUTPUTS = (Path("outputs"), Path("results"))


def main(arguments: Sequence[str]) -> int:
    if [*arguments[:1]] == [QUERY]:
        print(*candidates(arguments[1] if arguments[1:] else ""), sep="\n")
        return 0
    parser = argparse.ArgumentParser(prog="ner-experiments completion", description=ABOUT)
    add_arguments(parser)
    print(script(parser.parse_args(arguments).shell, ["ner-experiments"]), end="")
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help='bash, zsh: eval "$(...)"; fish: ... | source')


def candidates(line: str) -> list[str]:
    """Completions of the last word of the line. Empty for a line of another program."""
    program, *words = [*line.split(), *([""] if line[-1:].isspace() else [])] or [""]
    if Path(program).name.startswith("python"):
        if len(words) < 2 or Path(words[0]).name != "run.py":
            return []
        words[0] = "train"
    elif Path(program).name == "run.py":
        words = ["train", *words]
    if not words:
        return []
    command, *rest = words
    if not rest:
        return starting(command, [*COMMANDS, "--help", "--version"])
    if command == "train":
        return overrides(rest)
    return arguments_of(command, rest) if command in COMMANDS else []


class Arguments(argparse.ArgumentParser):
    """A parser that lists the arguments which are added to it."""

    def __init__(self, **settings: Any) -> None:
        self.actions: list[argparse.Action] = []
        super().__init__(**settings)

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        action = super().add_argument(*names, **settings)
        self.actions.append(action)
        return action

    def add_mutually_exclusive_group(self, **_: Any) -> Any:
        return self


def arguments_of(command: str, words: Sequence[str]) -> list[str]:
    """Completions of the last of a command's arguments, by the metavar of its parser: runs for RUN, and so on."""
    module, word = import_module(f"ner_experiments.commands.{command}"), words[-1]
    parser = Arguments()
    module.add_arguments(parser)
    subcommands: Mapping[str, Arguments] = parser.get_default("subcommands") or {}
    if subcommands and len(words) == 1:
        return starting(word, list(subcommands))
    actions = subcommands.get(words[0], parser).actions
    if word.startswith("-"):
        return starting(word, [option for action in actions for option in action.option_strings[-1:]])
    named = [action for action in actions if not action.option_strings]
    kinds = [kind for action in named for kind in str(action.metavar).split("|")]
    choices = [str(choice) for action in named for choice in action.choices or ()]
    found = [*choices, *(each for kind in kinds if kind in KINDS for each in KINDS[kind]())]
    return [*starting(word, found), *(overrides(words) if command == "watch" else [])]


def starting(word: str, known: Sequence[str]) -> list[str]:
    return [each for each in known if each.startswith(word)]


def table_names() -> list[str]:
    from ner_experiments.tables import spec, sweeps

    return [*spec.names(), *sweeps.names(OUTPUTS[0])]


def claim_ids() -> list[str]:
    from ner_experiments.tables import claims

    path = OUTPUTS[1] / claims.FILE
    return [claim.id for claim in claims.read(path)] if path.is_file() else []


def run_folders() -> list[str]:
    """The finished runs below the working directory."""
    return sorted(str(path.parent) for place in OUTPUTS for path in place.glob("*/seed-*/metrics.json"))


def group(name: str) -> list[str]:
    return config_dirs.names(name)


def overrides(words: Sequence[str]) -> list[str]:
    """Completions of the last word: groups, choices, settings and values, and the suite's own items."""
    *before, word = words
    key, separator, _ = word.partition("=")
    if word.startswith("-"):
        return starting(word, ["-m", "--cfg", "--help", "--version"])
    own: dict[str, Callable[[], list[str]]] = {"table": table_names, "search": lambda: group("search")}
    if separator and key in own:
        return starting(word, [f"{key}={each}" for each in own[key]()])
    from omegaconf import DictConfig, OmegaConf

    from ner_experiments.config.choices import composed
    from ner_experiments.config.conf import groups, options

    cfg = composed(tuple(item for item in before if options(item.partition("=")[0])))
    if separator:
        values = options(key) or [OmegaConf.select(cfg, key, throw_on_missing=False)]
        return starting(word, [f"{key}={value}" for value in values if not OmegaConf.is_config(value)])
    place, dot, _ = word.rpartition(".")
    node = OmegaConf.select(cfg, place) if dot else cfg
    settings = [
        f"{place}{dot}{name}{'.' if OmegaConf.is_dict(OmegaConf.select(node, name)) else '='}"
        for name in (map(str, node) if isinstance(node, DictConfig) else ())
    ]
    parent, slash, _ = word.rpartition("/")
    choices = [f"{parent}{slash}{name}{end}" for name in groups(parent) for end in ("=", "/")]
    choices = [each for each in choices if each.endswith("=") or groups(each[:-1])]
    hidden = "hydra" if not word.startswith("hydra") else "-"
    found = starting(word, [*choices, *settings, *(f"{name}=" for name in (*SWEEP_SETTINGS, "search"))])
    return [each for each in dict.fromkeys(found) if not each.startswith(hidden)]


KINDS: Mapping[str, Callable[[], list[str]]] = {
    "RUN": run_folders,
    "TABLE": table_names,
    "ID": claim_ids,
    "CORPUS": lambda: group("data"),
    "FROM": lambda: group("data"),
}
"""Completions of an argument, by its metavar in the help of a command."""
