"""Composes the config of an experiment from conf/, and the overrides of each job of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from ner_experiments.config.conf import composed, hydra_context
from ner_experiments.config.overrides import check, split


def compose(overrides: Sequence[str], place: str = "") -> DictConfig:
    """The experiment's config. ValueError, preceded by `place`, for an override that `check` or Hydra refuses.

    Cached: do not change what is returned.
    """
    try:
        return _checked(tuple(overrides))
    except (ValueError, HydraException, OmegaConfBaseException) as error:
        raise ValueError(f"{place}: {error}" if place else str(error)) from error


def jobs(overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of each job of a sweep. ValueError as `check`."""
    check(overrides, sweep=True)
    with hydra_context():
        return split(overrides)


@cache  # a table's rows are composed for checks, for the sweep and for the page
def _checked(overrides: tuple[str, ...]) -> DictConfig:
    check(overrides)
    with hydra_context():
        return composed(overrides)
