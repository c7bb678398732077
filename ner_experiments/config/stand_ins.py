"""Declared stand-ins: substitutes for what the experiment's paper used and we could not get.

An option in conf/, the settings of a paper or an override (`words.stand_in=...`, for the path of another BERT) declare
one as `stand_in`, a text beside the settings of a part. It changes no result, so that no identity counts it, and every
page of a table prints it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

STAND_IN = "stand_in"


def build_part(part: DictConfig) -> Any:
    """`hydra.utils.instantiate` of a part of the config, whose class does not take the stand-in as an argument."""
    if STAND_IN not in part:
        return instantiate(part)
    return instantiate(without_stand_ins(OmegaConf.to_container(part, resolve=True)))


def without_stand_ins(node: Any) -> Any:
    """Settings as plain values, without the declared stand-ins."""
    if isinstance(node, dict):
        return {name: without_stand_ins(value) for name, value in node.items() if name != STAND_IN}
    return [without_stand_ins(value) for value in node] if isinstance(node, list) else node


def declared(settings: dict[Any, Any]) -> tuple[str, ...]:
    """The stand-ins of an experiment for parts of its paper, each once; none without a paper."""
    return () if settings["paper"] == "none" else tuple(dict.fromkeys(stand_ins(settings)))


def stand_ins(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name != STAND_IN:
                yield from stand_ins(value)
            elif value:  # a part that is what the paper used has ""
                yield str(value)
