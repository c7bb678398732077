"""The folder conf/, as Hydra reads it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from hydra import initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.plugins.search_path_plugin import SearchPathPlugin

from ner_experiments.config.config_dirs import CONF, config_dirs

HYDRA_VERSION = "1.3"
CONFIG_NAME = "config"
HYDRA_LOCK = threading.RLock()
"""Held by the thread that is in `hydra_context`."""


class ConfigDirs(SearchPathPlugin):
    """Hydra's plugin that adds the folders of `config_dirs` to every search path, those of `hydra.main` included."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in config_dirs():
            search_path.append("config-dir", f"file://{folder}")


@contextmanager
def hydra_context() -> Iterator[None]:
    """Context in which Hydra reads the suite's conf/. That of a running sweep is restored at the end.

    Only one thread at a time can be in it, as Hydra's state is that of the process.
    """
    with HYDRA_LOCK:
        running = GlobalHydra.instance().hydra
        GlobalHydra.instance().clear()
        try:
            with initialize_config_dir(str(CONF), version_base=HYDRA_VERSION):
                yield
        finally:
            GlobalHydra.instance().hydra = running


@cache
def options(group: str) -> list[str]:
    """The choices of a group of conf/, or of Hydra; empty if there is no such group."""
    with hydra_context():
        return list(loader().get_group_options(group))


def groups(parent: str = "") -> list[str]:
    """The groups at the top of conf/, without Hydra's own, or those in the group `parent`."""
    with hydra_context():
        return [group for group in loader().list_groups(parent) if group != "hydra"]


def loader() -> ConfigLoader:
    """Hydra's reader of conf/. Requires a `hydra_context`."""
    return GlobalHydra.instance().config_loader()
