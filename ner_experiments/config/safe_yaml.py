"""YAML of the plain kind: names, lists and values written out, of which nothing grows or acts when read.

The config.yaml of a run's folder, read as data: what it may not have called or looked up is refused first.

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

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from ner_experiments.config.compose import CONF, PACKAGE
from ner_experiments.data.columns import read_lines
from ner_experiments.utils.text import quoted, visible

DEEPEST = 10
_NESTS = {
    yaml.MappingStartEvent: 1,
    yaml.SequenceStartEvent: 1,
    yaml.MappingEndEvent: -1,
    yaml.SequenceEndEvent: -1,
}


def read_text(path: Path) -> str:
    """The file's text, for a parser of YAML.

    ValueError, with file and line: bytes that are no UTF-8 text, text that is no YAML, a value that stands
    alone, more than ten levels, an alias (`*name`, of which a few lines make millions), a tag (`!name`).
    """
    text = "\n".join(line for _, line in read_lines(path))
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += _NESTS.get(type(event), 0)
            if rule := _broken(event, depth):
                raise ValueError(f"{path}:{event.start_mark.line + 1}: {rule}")
    except yaml.YAMLError as error:
        raise ValueError(f"{path}{describe(error, text)}") from error
    return text


def _broken(event: yaml.Event, depth: int) -> str:
    if depth > DEEPEST:
        return f"more than {DEEPEST} levels"
    if isinstance(event, yaml.AliasEvent):
        return f"aliases are not read, got {quoted(f'*{event.anchor}')}"
    if getattr(event, "tag", None):
        return f"tags are not read, got {quoted(event.tag)}"
    if isinstance(event, yaml.ScalarEvent) and not depth:
        return f"expected names, and what each stands for, got {quoted(event.value)}"
    return ""


def describe(error: Exception, text: str) -> str:
    """A parser's error as it follows the name of the file: its line, where it knows one, and its rule."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        rule = " ".join(part for part in (error.context, error.problem) if part)
        return f":{mark.line + 1}: {visible(rule)}" if mark else f": {visible(rule)}"
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return f":{line}: U+{error.character:04X}: {error.reason}"
    return f": {visible(str(error).partition(chr(10))[0])}"


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


def read_config(path: Path) -> DictConfig:
    """The settings of a run. ValueError, with place and value, for those that no run of the suite writes."""
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
    from torch import nn  # takes a second, and `--help` and tables read YAML as well
    from torch.optim import Optimizer

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
