"""The config.yaml of a run's folder, read as data: what it may not have called or looked up is refused first.

A run's folder may come from anyone. Its config is instantiated when the run is loaded, so it may name only
what the suite's own configs name, and PyTorch's own modules and optimizers. And as every run writes its
settings resolved, none may refer to something, such as a variable of the environment.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from torch import nn
from torch.optim import Optimizer
from yaml import YAMLError

from ner_experiments.plain_yaml import describe, read_text
from ner_experiments.sealed import CONFIG
from ner_experiments.settings import CONF, PACKAGE

PARTS = (
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
MODELS, INITIALISERS = "ner_experiments.models", "torch.nn.init"
OF_TORCH = ("torch.nn", "torch.optim", INITIALISERS)


def read(folder: Path) -> DictConfig:
    """The settings of a run. ValueError, with place and value, for those that no run of the suite writes."""
    path = folder / CONFIG
    text = read_text(path)
    try:
        cfg = OmegaConf.create(text)
    except (OmegaConfBaseException, YAMLError, ValueError) as error:
        raise ValueError(f"{path}{describe(error, text)}") from error
    if not isinstance(cfg, DictConfig) or (missing := [part for part in PARTS if part not in cfg]):
        lacks = f"it lacks {', '.join(missing)}" if isinstance(cfg, DictConfig) else "got a list"
        raise ValueError(f"{path}: expected the settings of a run, {lacks}")
    settings = OmegaConf.to_container(cfg, resolve=False)
    for place, value in leaves(settings):
        if isinstance(value, str) and "${" in value:
            raise ValueError(f"{path}: {place}: a run's settings are values, not references, got {value!r}")
    refuse_foreign(settings, path)
    return cfg


def refuse_foreign(settings: Any, source: Path | str) -> None:
    """ValueError if settings name anything to be called but what conf/ does, or a part of PyTorch's or ours.

    `settings` are plain dictionaries and lists, without references; `source` is where they come from.
    """
    for place, name in called(settings):
        if not (isinstance(name, str) and (name in named_in_conf() or is_a_part(name))):
            raise ValueError(
                f"{source}: {place}: a run may name what conf/ names, a class of {MODELS}, "
                f"or what is directly in {', '.join(OF_TORCH)}, got {name!r}"
            )


@cache
def named_in_conf() -> frozenset[str]:
    """All that the suite's own configs have called."""
    files = [OmegaConf.to_container(OmegaConf.load(path)) for path in CONF.rglob("*.yaml")]
    return frozenset(name for file in files for _, name in called(file))


def is_a_part(name: str) -> bool:
    """Whether it is a module, optimizer or initialiser by the name under which its own package has it.

    A name that goes on behind that, torch.nn.init.torch.load, could lead anywhere; no such name is looked up.
    """
    place, _, kind = name.rpartition(".")
    models = {f"{MODELS}.{path.stem}" for path in (PACKAGE / "models").glob("*.py")}
    if place not in models.union(OF_TORCH):
        return False
    found = getattr(import_module(place), kind, None)
    of_the_kind = (
        isinstance(found, FunctionType)
        if place == INITIALISERS
        else isinstance(found, type) and issubclass(found, nn.Module | Optimizer)
    )
    return of_the_kind and found.__module__.startswith(place)


def called(node: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Where settings name something to be called, and its name; a class that is only handed on counts too."""
    if isinstance(node, dict) and TARGET in node:
        only_a_class = node[TARGET] == GET_CLASS and node.keys() == {TARGET, "path"}
        key = "path" if only_a_class else TARGET
        yield f"{place}.{key}".removeprefix("."), node[key]
    for key, child in children(node):
        yield from called(child, f"{place}.{key}".removeprefix("."))


def leaves(node: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(node, dict | list):
        yield place, node
    for key, child in children(node):
        yield from leaves(child, f"{place}.{key}".removeprefix("."))


def children(node: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(node, dict):
        yield from node.items()
    elif isinstance(node, list):
        yield from enumerate(node)
