"""Composition of an experiment's config from conf/, and the overrides of each job of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ner_experiments.config.choices import compose_quickly, parse
from ner_experiments.config.conf import CONFIG_NAME, hydra_context
from ner_experiments.config.overrides import check, is_for_hydra, with_new_keys


def compose(overrides: Sequence[str], place: str = "") -> DictConfig:
    """The experiment's config. ValueError, preceded by `place`, for an override that `check` or Hydra refuses.

    Cached, and read-only for that reason: change a copy (`OmegaConf.set_readonly(copy, False)`).
    """
    if isinstance(overrides, str):
        raise ValueError(f"expected a list of overrides, got {overrides!r}: compose([{overrides!r}])")
    try:
        return _checked(tuple(overrides))
    except (ValueError, HydraException, OmegaConfBaseException) as error:
        raise ValueError(f"{place}: {error}" if place else str(error)) from error


@cache  # every command on a table compares its rows' settings, and a page is made of several tables
def resolved(overrides: tuple[str, ...]) -> dict[Any, Any]:
    """The settings of `compose` as plain values without references. Cached: do not change what is returned."""
    settings = OmegaConf.to_container(compose(overrides), resolve=True)
    assert isinstance(settings, dict)
    return settings


@cache  # the jobs of a sweep have few different overrides
def override_value(override: str) -> Any:
    """The value of an override as it is written: 3 for layers=3, but text for layers=${seed}."""
    with hydra_context():
        (parsed,) = parse([override])
        return parsed.value()


def jobs(overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of each job of a sweep. ValueError as `check`."""
    return [list(job) for job in _jobs(tuple(overrides))]


@cache  # commands ask whether overrides are a sweep, and then for its rows
def _jobs(overrides: tuple[str, ...]) -> list[list[str]]:
    return check(overrides, sweep=True)


@cache  # a table's rows are composed for checks, for the sweep and for the page
def _checked(overrides: tuple[str, ...]) -> DictConfig:
    check(overrides)
    cfg = compose_unchecked(overrides)
    OmegaConf.set_readonly(cfg, True)
    return cfg


def compose_unchecked(overrides: Sequence[str]) -> DictConfig:
    """Result of `hydra.compose`, five times as fast for overrides that are neither a sweep nor Hydra's own.

    Unlike there, overrides of the mappings `overrides.OPEN` may add keys.
    """
    overrides = with_new_keys(overrides)
    with hydra_context():
        parsed = parse(overrides)
        if any(item.is_sweep_override() or is_for_hydra(item) for item in parsed):
            return hydra.compose(CONFIG_NAME, overrides=overrides)
        return compose_quickly(parsed)
