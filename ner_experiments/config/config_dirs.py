"""The folders of configs: conf/, and the user's own: `--config-dir DIR` and `hydra.searchpath=[DIR]` of any command.

The latter are kept in an environment variable, which reaches the processes of a sweep and of a cluster. Nothing here
imports Hydra, so that `--help` stays quick.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
CONF = next(folder for folder in (PACKAGE / "conf", PACKAGE.parent / "conf") if folder.is_dir())
"""conf/ lies inside an installed package, and beside the package in a checkout."""

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


def folders() -> list[Path]:
    """conf/ and the folders of the user's own configs."""
    return [CONF, *config_dirs()]


def own_group_folders() -> list[Path]:
    """The folders of the user's own configs, one per folder and group; not all of them need exist."""
    groups = sorted(path.name for path in CONF.iterdir() if path.is_dir())
    return [folder / group for folder in config_dirs() for group in groups]


def names(group: str) -> list[str]:
    """The names of the files of a group, as `options`, but without Hydra."""
    return sorted({path.stem for folder in folders() for path in (folder / group).glob("*.yaml")})


def file_of(path: str) -> Path:
    """The file of a config such as data/weibo, in the first folder that has it."""
    files = [folder / f"{path}.yaml" for folder in folders()]
    return next((file for file in files if file.is_file()), files[0])
