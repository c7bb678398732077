"""The folder conf/, as Hydra reads it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

PACKAGE = Path(__file__).parent.parent
CONF = next(folder for folder in (PACKAGE / "conf", PACKAGE.parent / "conf") if folder.is_dir())
"""conf/ lies inside an installed package, and beside the package in a checkout."""

HYDRA_VERSION = "1.3"
CONFIG_NAME = "config"


@contextmanager
def hydra_context() -> Iterator[None]:
    """Context in which Hydra reads the suite's conf/. That of a running sweep is restored at the end."""
    running = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CONF), version_base=HYDRA_VERSION):
            yield
    finally:
        GlobalHydra.instance().hydra = running


@cache
def options(group: str) -> list[str]:
    """The choices of a group of conf/; empty if there is no such group."""
    return loader().get_group_options(group)


def groups() -> list[str]:
    """The groups at the top of conf/, without Hydra's own."""
    return [group for group in loader().list_groups("") if group != "hydra"]


def loader() -> Any:
    return GlobalHydra.instance().config_loader()


def architectures() -> list[str]:
    """The names of conf/model/*.yaml, read without Hydra."""
    return sorted(path.stem for path in (CONF / "model").glob("*.yaml"))
