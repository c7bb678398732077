"""Refuses a setting that is misspelt or of the wrong type before anything is started.

Hydra lets `+trainer.max_epoch=3` add a key that nobody reads, and `layers=three` put a word where a number
stood. Here each override is held against the same choices (`model=...`, `data=...`) with their own defaults:
its key must be there already, and its value be of the default's type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf

from ner_experiments.utils.text import did_you_mean

PACKAGE = Path(__file__).parent.parent
CONF = next(folder for folder in (PACKAGE / "conf", PACKAGE.parent / "conf") if folder.is_dir())
"""In an installed package conf/ lies inside it, in a checkout beside it."""

HYDRA = "1.3"
ROOT = "config"
KNOB = "layers"
OF_SWEEPS = ("table", "seeds")
KINDS = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}


@contextmanager
def conf() -> Iterator[None]:
    """Hydra with the suite's conf/, for as long as a `with` lasts; in a sweep that Hydra runs, too."""
    running = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CONF), version_base=HYDRA):
            yield
    finally:
        GlobalHydra.instance().hydra = running


def check(overrides: Sequence[str], *, sweep: bool = False) -> None:
    """ValueError for the first override that names no setting, or gives it a value of the wrong type.

    In a sweep each job is checked that the values make.
    """
    with conf():
        try:
            for job in split(overrides) if sweep else [overrides]:
                check_job(parse(job))
        except HydraException as error:
            raise ValueError(str(error).splitlines()[0]) from error


def jobs(overrides: Sequence[str]) -> list[list[str]]:
    """Of a sweep. ValueError as `check`."""
    check(overrides, sweep=True)
    with conf():
        return split(overrides)


def split(overrides: Sequence[str]) -> list[list[str]]:
    """The cartesian product of the overrides' values, as Hydra's own sweeper makes it."""
    (batch,) = BasicSweeper.split_arguments(parse(overrides), max_batch_size=None)
    return batch


def parse(overrides: Sequence[str]) -> list[Override]:
    return OverridesParser.create(config_loader=loader()).parse_overrides(list(overrides))


def check_job(overrides: Sequence[Override]) -> None:
    parsed = [item for item in overrides if not is_for_hydra(item)]
    choices = [item for item in parsed if options(item.key_or_group)]
    for item in choices:
        check_choice(item)
    defaults = composed(tuple(f"{item.key_or_group}={item.get_value_string()}" for item in choices))
    for item in parsed:
        if item not in choices:
            check_value(item, defaults)
    for item in parsed:
        if item.key_or_group == KNOB and f"${{{KNOB}}}" not in OmegaConf.to_yaml(defaults):
            raise ValueError(f"{item.input_line}: no part of this experiment has layers to choose")


def is_for_hydra(item: Override) -> bool:
    return item.key_or_group.split(".")[0].split("/")[0] == "hydra"


def check_choice(item: Override) -> None:
    group, choice = item.key_or_group, item.value()
    if choice not in options(group):
        raise ValueError(
            f"{item.input_line}: {group} has no {choice!r}{did_you_mean(str(choice), options(group))}"
        )


def check_value(item: Override, defaults: DictConfig) -> None:
    key, known = item.key_or_group, list(keys(defaults))
    if key not in known:
        near = did_you_mean(key, [*known, *groups(), *OF_SWEEPS])
        raise ValueError(f"{item.input_line}: there is no setting {key!r}{near}")
    value = item.value()
    if item.is_delete() or item.is_sweep_override() or (isinstance(value, str) and "${" in value):
        return
    allowed = kinds(defaults, key)
    if allowed and type(value) not in allowed and not (type(value) is int and float in allowed):
        expected = " or ".join(KINDS[kind] for kind in allowed if kind in KINDS)
        raise ValueError(f"{item.input_line}: {key} must be {expected}, got {item.get_value_string()}")


def kinds(defaults: DictConfig, key: str) -> tuple[type, ...]:
    """The types a setting may have: its default's, or if that is null those of the parameter it feeds."""
    place, _, name = key.rpartition(".")
    node = OmegaConf.select(defaults, place) if place else defaults
    if OmegaConf.is_missing(node, name):
        return ()
    default = node[name]
    if default is not None:
        plain = OmegaConf.to_container(default) if OmegaConf.is_config(default) else default
        return (str, int, float) if isinstance(plain, str) else (type(plain),)
    if "_target_" not in node:
        return ()
    hints = get_type_hints(get_object(node._target_).__init__)
    return tuple(kind for kind in get_args(hints[name]) if kind in (*KINDS, NoneType))


def keys(node: DictConfig, prefix: str = "") -> Iterator[str]:
    """Every setting by its dotted name, the inner nodes too."""
    for name in map(str, node):
        yield f"{prefix}{name}"
        child = node._get_node(name)
        if isinstance(child, DictConfig) and not child._is_missing() and not child._is_interpolation():
            yield from keys(child, f"{prefix}{name}.")


@cache  # most rows of tables are choices alone, and composed for their check
def composed(overrides: tuple[str, ...]) -> DictConfig:
    """Unchecked, within `conf`. Not to be changed: who asks again gets the same."""
    return compose(ROOT, overrides=list(overrides))


@cache
def options(group: str) -> list[str]:
    return loader().get_group_options(group)


def architectures() -> list[str]:
    """The names of conf/model/*.yaml, without Hydra."""
    return sorted(path.stem for path in (CONF / "model").glob("*.yaml"))


def groups() -> list[str]:
    return [group for group in loader().list_groups("") if group != "hydra"]


def loader() -> Any:
    return GlobalHydra.instance().config_loader()
