"""Corpora of conf/data, opened by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from hydra.errors import HydraException
from hydra.utils import instantiate
from omegaconf import MISSING, OmegaConf

from ner_experiments.config.compose import compose
from ner_experiments.config.stand_ins import without_stand_ins
from ner_experiments.data.corpus import Source


def open_source(name: str, overrides: Sequence[str] = (), settings: Mapping[str, Any] = {}) -> Source:
    """The corpus of conf/data/NAME.yaml with these overrides, then settings. ValueError for unknown ones.

    A corpus without a name of its own is called as its format.
    """
    data = OmegaConf.to_container(compose([f"data={name}", *overrides]).data, resolve=True)
    assert isinstance(data, dict)
    if data["name"] == MISSING:
        data["name"] = name
    columns = {"columns": {**data["columns"], **settings["columns"]}} if "columns" in settings else {}
    return instantiated({**data, **settings, **columns})


def instantiated(data: Mapping[Any, Any]) -> Source:
    """The corpus with these settings of conf/data. Raises ValueError for values that it does not take."""
    try:
        source: Source = instantiate(_with_segmenter(without_stand_ins(data)))
    except HydraException as error:  # around a ValueError of ours
        raise ValueError(str(error.__cause__ or error)) from error
    return source


def _with_segmenter(data: dict[str, Any]) -> dict[str, Any]:
    """The settings, where a segmenter in `tokens` that is a function is not called before there is a line."""
    tokens = data.get("tokens")
    if not isinstance(tokens, dict) or "_target_" not in tokens:
        return data
    name = str(tokens["_target_"])
    module, _, attribute = name.rpartition(".")
    try:
        target = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"data.tokens._target_={name}: no such function or class ({error})") from None
    return {**data, "tokens": {"_partial_": not isinstance(target, type), **tokens}}
