"""conf/ has no unused key: each is an argument of its part's class or function, or named in the code."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hydra.utils import get_object
from omegaconf import OmegaConf
from places import ROOT

from ner_experiments.config.choices import merged
from ner_experiments.config.config_dirs import CONF
from ner_experiments.config.targets import check_targets

CHOICES = sorted(
    path.relative_to(CONF).with_suffix("").as_posix()
    for path in CONF.glob("*/*.yaml")
    if path.parent.name != "search"  # overrides: tests/launch/test_search_space.py
)
NOT_PASSED_ON = {"_target_", "_partial_", "stand_in"}
CODE = "\n".join(
    path.read_text(encoding="utf-8")
    for place in ("ner_experiments", "hydra_plugins")
    for path in (ROOT / place).rglob("*.py")
)


def unread(node: Any, place: str) -> Iterator[str]:
    if not isinstance(node, dict):
        return
    if "_target_" in node:
        known = {*inspect.signature(get_object(node["_target_"])).parameters} | NOT_PASSED_ON
        yield from (f"{place}.{key}" for key in node if key not in known)
    else:
        yield from (f"{place}.{key}" for key in node if not is_named(key))
    for key, value in node.items():
        yield from unread(value, f"{place}.{key}")


def is_named(key: str) -> bool:
    """Whether code names the key: as an attribute, in quotes, as a keyword, or quoted at the end of a path of keys."""
    return bool(re.search(rf"""[.'"]{re.escape(key)}(?!\w)|\b{re.escape(key)}\s*[=:]""", CODE))


def composed(*overrides: str) -> Any:
    return OmegaConf.to_container(merged(overrides), resolve=False)


@pytest.mark.parametrize("choice", CHOICES)
def test_a_choice_has_no_unused_key_and_the_required_ones(choice: str) -> None:
    group, _, name = choice.partition("/")
    check_targets(merged([f"{group}={name}"]))
    part = composed(f"{group}={name}")
    if group in ("paper", "data_trainer"):  # which set what belongs to other groups
        part.pop("direct")
        assert [*unread(part, choice)] == []
    else:
        parts = part[group].values() if group == "direct" else [part[group]]  # whose names are free
        assert [key for each in parts for key in unread(each, choice)] == []


def test_an_unused_key_is_found() -> None:
    part = composed("model=bilstm")
    part["model"]["hiden_size"] = 3
    part["runtime"]["nobody_reads_this"] = 3
    assert sorted(unread(part, "")) == [".model.hiden_size", ".runtime.nobody_reads_this"]
