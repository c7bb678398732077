"""Safe reading of untrusted YAML files: config.yaml of a run's folder, and tables.

A run's folder may come from anyone, and its config is instantiated when the run is loaded. So its `_target_`s may
only name what the suite's own conf/ names, or modules and optimizers of PyTorch and of `ner_experiments.models`.
Every run writes its settings resolved, so interpolations such as `${oc.env:HOME}` are refused, as are YAML aliases,
tags and deep nesting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

import yaml
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import MarkedYAMLError, YAMLError

from ner_experiments.config.conf import PACKAGE, folders
from ner_experiments.data.text_files import read_lines
from ner_experiments.utils.text import printable, truncated_repr

MAX_DEPTH = 10
MAX_BYTES = 2**20
"""Size of the largest YAML file that is read: parsing takes a second. A run's config has some 5 kB."""
_NESTS = {
    yaml.MappingStartEvent: 1,
    yaml.SequenceStartEvent: 1,
    yaml.MappingEndEvent: -1,
    yaml.SequenceEndEvent: -1,
}


RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
"""Rules by which PyYAML tells numbers, dates and so on from texts, by a value's first character."""


class Loader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """Plain values, read as OmegaConf does: 1e-3 is a number, a date is a text, and a repeated key is an error.

    With libyaml if it is there: it is ten times as fast as OmegaConf's own loader, which is written in Python.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, rule) for tag, rule in rules if not tag.endswith(":timestamp")]
        for first, rules in RESOLVERS.items()
    }

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        found: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in found:
                rule = f"found duplicate key {key.value}"
                raise MarkedYAMLError("while constructing a mapping", node.start_mark, rule, key.start_mark)
            found.add(key.value)
        return dict(super().construct_mapping(node, deep=deep))


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+(_[0-9]+)*(\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def read_text(path: Path) -> str:
    """The text of a file, checked to be plain YAML.

    ValueError, with file and line, for bytes that are not UTF-8, invalid YAML, a bare value, more than ten levels,
    an alias (`*name`: a few lines of them expand to millions) and a tag (`!name`).
    """
    if (size := path.stat().st_size) > MAX_BYTES:
        raise ValueError(f"{path}: expected at most {MAX_BYTES:,} bytes, got {size:,}")
    text = "\n".join(line for _, line in read_lines(path))
    depth = 0
    try:
        for event in yaml.parse(text, Loader=Loader):
            depth += _NESTS.get(type(event), 0)
            if rule := _broken(event, depth):
                raise ValueError(f"{path}:{event.start_mark.line + 1}: {rule}")
    except YAMLError as error:
        raise ValueError(f"{path}{describe(error, text)}") from error
    return text


def read_plain(path: Path) -> Any:
    """The content of a file as dictionaries and lists, with references as they are written.

    ValueError as `read_text`, and for a key or value that no config can have.
    """
    content = load(path)
    as_config(content, path)
    return content


def load(path: Path) -> Any:
    """The content of a file as dictionaries and lists.

    ValueError as `read_text`, and for values that cannot be read.
    """
    text = read_text(path)
    try:
        content = yaml.load(text, Loader)  # noqa: S506  it makes plain values alone
    except (YAMLError, ValueError) as error:  # such as a number of 5,000 digits
        raise ValueError(f"{path}{describe(error, text)}") from error
    return {} if content is None else content


def as_config(content: Any, path: Path) -> DictConfig | ListConfig:
    """The content of a file as a config. ValueError for a key or value that no config can have."""
    try:
        return OmegaConf.create(content)
    except OmegaConfBaseException as error:  # such as a key that is null
        raise ValueError(f"{path}{describe(error)}") from error


def to_yaml(content: Mapping[str, Any]) -> str:
    """The content as YAML that `read_plain` reads."""
    return OmegaConf.to_yaml(OmegaConf.create(dict(content)))


def _broken(event: yaml.Event, depth: int) -> str:
    if depth > MAX_DEPTH:
        return f"more than {MAX_DEPTH} levels"
    if isinstance(event, yaml.AliasEvent):
        return f"aliases are not allowed, got {truncated_repr(f'*{event.anchor}')}"
    if getattr(event, "tag", None):
        return f"tags are not allowed, got {truncated_repr(event.tag)}"
    if isinstance(event, yaml.ScalarEvent) and not depth:
        return f"expected a mapping, got {truncated_repr(event.value)}"
    return ""


def describe(error: Exception, text: str = "") -> str:
    """A parser's error as a suffix to the file's name: the line, if known, and the rule."""
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        rule = " ".join(part for part in (error.context, error.problem) if part)
        if not mark:
            return f": {printable(rule)}"
        line = min(mark.line, text.count("\n")) + 1  # libyaml puts the end of a file one line below its last
        return f":{line}: {printable(rule)}"
    if isinstance(error, yaml.reader.ReaderError):
        line = text.encode()[: error.position].count(b"\n") + 1
        return f":{line}: U+{error.character:04X}: {error.reason}"
    return f": {printable(str(error).partition(chr(10))[0])}"


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
                f"{source}: {place}: a run may name what conf/ and the configs of --config-dir name, a class of "
                f"{MODELS}, or what is directly in {', '.join(OF_TORCH)}, got {name!r}"
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
