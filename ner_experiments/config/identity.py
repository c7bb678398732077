"""Which settings make a run what it is: its name on disk, and what a table may count."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

NOT_THE_EXPERIMENT = ("seed", "runtime", "audit", "logger", "data_dir", "output_dir", "cache_dir")
KNOBS = ("layers", "paper")
"""They act only where another setting takes them up, and count there."""
PLACES = ("folder", "files", "path", "cache", "source", "licence", "url", "sha256", "sizes")
"""Of data and inputs: where a file lies is not what it holds, and its checksum counts instead."""
FOR_OTHER_TEXT = "tokens"
"""Of data: says how `predict` cuts text into tokens, and nothing of what was trained."""


def identity(cfg: DictConfig, checksum: str) -> str:
    """64 hexadecimal digits; equal if and only if two runs differ in nothing but the seed and where they ran.

    `checksum` stands for the contents of every file that was read.
    """
    text = json.dumps([as_numbers(counted(cfg)), checksum], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def experiment(cfg: DictConfig) -> str:
    """Like `identity`, but known before any file is read: the same on whatever data lies in its place."""
    return f"experiment-{identity(cfg, checksum='')[:12]}"


def counted(cfg: DictConfig) -> dict[Any, Any]:
    """The settings that make a run what it is, without those that say where and how it ran."""
    settings = OmegaConf.to_container(cfg, resolve=True)
    assert isinstance(settings, dict)
    # init_from was called "first" when the archived runs of results/ were made, and their identities are hashes of that
    settings = {"first" if name == "init_from" else name: value for name, value in settings.items()}
    for name in (*NOT_THE_EXPERIMENT, *KNOBS):
        settings.pop(name, None)
    for reader in (settings["data"], *inputs(settings)):
        for name in PLACES:
            reader.pop(name, None)
    settings["data"].pop(FOR_OTHER_TEXT, None)
    return settings


def as_numbers(node: Any) -> Any:
    """0 and 0.0 are one setting."""
    if isinstance(node, dict):
        return {name: as_numbers(value) for name, value in node.items()}
    if isinstance(node, list):
        return [as_numbers(value) for value in node]
    return float(node) if type(node) is int else node


def flat(settings: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """model.num_layers of {model: {num_layers: ...}}, and its value."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def inputs(part: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
    """What reads the text, wherever it is set: words.input, direct.spelling.input, init_from.words.input."""
    for name, value in part.items():
        if name == "input":
            yield value
        elif isinstance(value, dict):
            yield from inputs(value)


def run_folder(cfg: DictConfig, name: str) -> Path:
    """output_dir/DATA-MODEL-DECODER-IDENTITY/seed-SEED; nothing in it depends on the clock."""
    parts = [cfg.data.name, kind(cfg.model), kind(cfg.decoder), name[:12]]
    return Path(cfg.output_dir) / "-".join(parts) / f"seed-{cfg.seed}"


def kind(part: DictConfig) -> str:
    return part._target_.rsplit(".", 1)[-1].lower()


def tags(cfg: DictConfig) -> list[str]:
    """What a logger can find a run by. The last is the same for all that a row of a table counts."""
    parts = [str(cfg.get("paper", "none")), cfg.data.name, kind(cfg.model), kind(cfg.decoder)]
    return [*dict.fromkeys(parts), experiment(cfg)]
