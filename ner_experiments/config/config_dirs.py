"""Folders with configs of the user's own, beside conf/: `--config-dir DIR` and `hydra.searchpath=[DIR]` of any command.

They are kept in an environment variable, which reaches the processes of a sweep and of a cluster. Nothing here imports
Hydra, so that `--help` stays quick.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

VARIABLE = "NER_CONFIG_DIRS"
OPTIONS = ("--config-dir", "-cd")
_SEARCHPATH = "hydra.searchpath"
_SCHEME = "file://"


def config_dirs() -> list[Path]:
    """The folders, in the order in which Hydra looks there, after conf/."""
    return [Path(folder) for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]


def take_config_dirs(arguments: Sequence[str]) -> list[str]:
    """The arguments without those that name folders of configs, which are added to the environment variable.

    Raises ValueError for a folder that does not exist.
    """
    kept: list[str] = []
    named: list[str] = []
    items = iter(arguments)
    for item in items:
        option, joined, value = item.partition("=")
        if option in OPTIONS:
            value = value if joined else next(items, "")
            if not value:
                raise ValueError(f"{option}: expected the folder of your configs")
            named.append(folder_of(value, option))
        elif option.lstrip("+") == _SEARCHPATH:
            entries = value.removeprefix("[").removesuffix("]").split(",")
            named += [folder_of(entry.strip(" '\""), _SEARCHPATH) for entry in entries if entry.strip()]
        else:
            kept.append(item)
    if named:
        before = [str(folder) for folder in config_dirs()]
        os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys([*before, *named]))
    return kept


def folder_of(text: str, option: str) -> str:
    folder = Path(text.removeprefix(_SCHEME)).expanduser()
    if not folder.is_dir():
        raise ValueError(f"{option}={text}: there is no such folder")
    return str(folder.absolute())
