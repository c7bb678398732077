"""Two-stage training: the settings of the first run, from whose weights the experiment's own run starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def first_run(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with those of `init_from` merged into them: {optimizer: {lr: 0.1}} changes the learning rate alone.

    A part with a class of its own (`_target_`) replaces the experiment's part, and so does an empty one, such as a
    constant schedule.
    """
    own = {name: merged(settings.get(name), value) for name, value in settings["init_from"].items()}
    return {**settings, **own, "init_from": {}}


def merged(own: Any, changes: Any) -> Any:
    if not (isinstance(own, Mapping) and isinstance(changes, Mapping)) or replaces(changes):
        return changes
    return {**own, **{name: merged(own.get(name), value) for name, value in changes.items()}}


def replaces(changes: Mapping[str, Any]) -> bool:
    """Whether a part of `init_from` replaces the experiment's part instead of being merged into it."""
    return not changes or "_target_" in changes
