"""Composition of an experiment's config from conf/, and the overrides of each job of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ner_experiments.config.choices import merged, parse, parse_one
from ner_experiments.config.overrides import check, refuse_several_values, split


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


def override_value(override: str) -> Any:
    """The value of an override as it is written: 3 for layers=3, but text for layers=${seed}."""
    return parse_one(override).value()


def jobs(overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of each job of a sweep. ValueError as `overrides.split` and `overrides.check`."""
    return [list(job) for job in _jobs(tuple(overrides))]


@cache  # commands ask whether overrides are a sweep, and then for its rows
def _jobs(overrides: tuple[str, ...]) -> list[list[str]]:
    jobs = split(overrides)
    check(jobs, overrides)
    return jobs


@cache  # a table's rows are composed for checks, for the sweep and for the page
def _checked(overrides: tuple[str, ...]) -> DictConfig:
    refuse_several_values(parse(overrides), "`jobs` returns the overrides of each of its experiments")
    check([overrides], overrides)
    cfg = merged(overrides)
    OmegaConf.set_readonly(cfg, True)
    return cfg
