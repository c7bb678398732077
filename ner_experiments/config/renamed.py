"""Names of earlier versions and their present names, so that old runs and archives are read like new ones.

No other module knows an earlier name. Identities are still hashed with the earlier name of `init_from`; see `hashed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SETTINGS = {"first": "init_from", "audit.peek": "audit.test_every_epoch"}
"""Settings, by their dotted names."""
LOGGERS = "ner_experiments.loggers"
TARGETS = {
    **{f"{LOGGERS}.csv": f"{LOGGERS}.base.csv"},
    **{f"{LOGGERS}.{name}": f"{LOGGERS}.{name}.{name}" for name in ("tensorboard", "wandb")},
    **{f"{LOGGERS}.base.{name}": f"{LOGGERS}.{name}.{name}" for name in ("tensorboard", "wandb")},
}
"""Values of `_target_`."""
OF_ARCHIVED_RUNS = {
    "peeked": "test_every_epoch",
    "right": "correct",
    "missed": "missing",
    "invented": "spurious",
}
"""Keys of an archived run's file, and of its errors."""
TEST_LOG = "peek.csv"
"""test_every_epoch.csv in a run's folder."""


def settings(node: Any, prefix: str = "") -> Any:
    """The settings of a run, as plain values, under their present names."""
    if isinstance(node, list):
        return [settings(child, f"{prefix}{place}.") for place, child in enumerate(node)]
    if not isinstance(node, dict):
        return node
    renamed: dict[Any, Any] = {}
    for name, child in node.items():
        if name == "_target_" and isinstance(child, str):
            renamed[name] = TARGETS.get(child, child)
        else:
            key = SETTINGS.get(f"{prefix}{name}", f"{name}").rpartition(".")[2]
            renamed[key if isinstance(name, str) else name] = settings(child, f"{prefix}{name}.")
    return renamed


def setting(key: str) -> str | None:
    """The present name of a renamed setting, such as init_from.words for first.words; None for others."""
    for old, new in SETTINGS.items():
        if key == old or key.startswith(f"{old}."):
            return new + key.removeprefix(old)
    return None


def archived(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of an archived run's file under present names."""
    renamed = dict(_values(content))
    if "config" in renamed:
        renamed["config"] = settings(renamed["config"])
    if "errors" in renamed:
        kinds = renamed["errors"]["kinds"]
        renamed["errors"]["kinds"] = {OF_ARCHIVED_RUNS.get(name, name): kinds[name] for name in kinds}
    return renamed


def _values(node: Any) -> Any:
    """A node with present names for its values. Names of mappings are kept, as they may be types of mentions."""
    if isinstance(node, list):
        return [_values(child) for child in node]
    if not isinstance(node, Mapping):
        return node
    return {
        name if isinstance(child, Mapping) else OF_ARCHIVED_RUNS.get(name, name): _values(child)
        for name, child in node.items()
    }


def hashed(counted: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as an identity hashes them: `init_from` under its first name, so that no identity changes."""
    names = {"init_from": "first"}
    return {names.get(name, name): value for name, value in counted.items()}
