"""Safe reading of the config.yaml of a run's folder.

A run's folder may come from anyone, and its config is instantiated when the run is loaded. So its `_target_`s may
only name what the suite's own conf/ names, or modules and optimizers of PyTorch and of `ner_experiments.models`.
Every run writes its settings resolved, so interpolations such as `${oc.env:HOME}` are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ner_experiments.config.config_dirs import PACKAGE, folders
from ner_experiments.config.plain_yaml import describe, load
from ner_experiments.utils.text import truncated_repr


def as_config(content: Any, path: Path) -> DictConfig | ListConfig:
    """The content of a file as a config. ValueError for a key or value that no config can have."""
    try:
        return OmegaConf.create(content)
    except OmegaConfBaseException as error:  # such as a key that is null
        raise ValueError(f"{path}{describe(error)}") from error


PARTS = (
    "init_from",
    "data",
    "words",
    "chars",
    "features",
    "direct",
    "model",
    "decoder",
    "penalty",
    "optimizer",
    "trainer",
)
TARGET, GET_CLASS = "_target_", "hydra.utils.get_class"
MODELS, INITIALIZERS = "ner_experiments.models", "torch.nn.init"
OF_TORCH = ("torch.nn", "torch.optim", INITIALIZERS)


def read_config(path: Path) -> DictConfig:
    """The settings of a run. ValueError, with key and value, for any that no run writes."""
    settings = load(path)
    if not isinstance(settings, dict) or (missing := [part for part in PARTS if part not in settings]):
        lacks = f"it lacks {', '.join(missing)}" if isinstance(settings, dict) else "got a list"
        raise ValueError(f"{path}: expected the settings of a run, {lacks}")
    for part in PARTS:
        if not isinstance(settings[part], dict):
            raise ValueError(f"{path}: {part}: expected a mapping, got {truncated_repr(settings[part])}")
    for place, value in leaves(settings):
        if isinstance(value, str) and "${" in value:
            raise ValueError(
                f"{path}: {place}: a run's settings are values, not interpolations, got {value!r}"
            )
    refuse_foreign(settings, path)
    cfg = as_config(settings, path)
    assert isinstance(cfg, DictConfig)
    return cfg


def refuse_foreign(settings: Any, source: Path | str) -> None:
    """Raise ValueError if a `_target_` names anything but what conf/ names, or a module or optimizer.

    What the user's own configs name (`--config-dir`) is allowed, too.

    settings: plain dictionaries and lists, without interpolations. source: where they come from.
    """
    for place, name in targets(settings):
        if not (isinstance(name, str) and (is_known(name) or is_module_or_optimizer(name))):
            raise ValueError(
                f"{source}: {place}: conf/ does not name {name!r}; if it is your own, repeat the command with "
                f"--config-dir and the folder of the configs that name it; else a run may name a class of "
                f"{MODELS}, or what is directly in {', '.join(OF_TORCH)}"
            )


def is_known(name: str) -> bool:
    """Whether a `_target_` of conf/, or of the user's own configs, has this name."""
    return any(name in targets_in(folder) for folder in folders())


@cache
def targets_in(folder: Path) -> frozenset[str]:
    """Every `_target_` of the configs in a folder."""
    files = [load(path) for path in folder.rglob("*.yaml")]
    return frozenset(name for file in files for _, name in targets(file))


def is_module_or_optimizer(name: str) -> bool:
    """Whether a dotted name is that of a module, optimizer or initializer, directly in its own package.

    A longer name, such as torch.nn.init.torch.load, could lead anywhere and is not looked up.
    """
    place, _, kind = name.rpartition(".")
    models = {f"{MODELS}.{path.stem}" for path in (PACKAGE / "models").glob("*.py")}
    if place not in models.union(OF_TORCH):
        return False
    from torch import nn  # takes a second, and `--help` and tables read YAML as well
    from torch.optim import Optimizer

    target = getattr(import_module(place), kind, None)
    of_the_kind = (
        isinstance(target, FunctionType)
        if place == INITIALIZERS
        else isinstance(target, type) and issubclass(target, nn.Module | Optimizer)
    )
    return of_the_kind and target.__module__.startswith(place)


def targets(node: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the key and the name of every `_target_`, and of every class passed on by `hydra.utils.get_class`."""
    if isinstance(node, dict) and TARGET in node:
        only_a_class = node[TARGET] == GET_CLASS and node.keys() == {TARGET, "path"}
        key = "path" if only_a_class else TARGET
        yield f"{place}.{key}".removeprefix("."), node[key]
    for key, child in children(node):
        yield from targets(child, f"{place}.{key}".removeprefix("."))


def leaves(node: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and the value of every setting that is neither a mapping nor a list."""
    if not isinstance(node, dict | list):
        yield place, node
    for key, child in children(node):
        yield from leaves(child, f"{place}.{key}".removeprefix("."))


def children(node: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(node, dict):
        yield from node.items()
    elif isinstance(node, list):
        yield from enumerate(node)
