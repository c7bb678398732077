"""Attacks that a file from a stranger can carry, and a small run to try them on."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hydra
from omegaconf import DictConfig

from ner_experiments.config.conf import CONFIG_NAME, hydra_context

SMALL = [
    "model=residual",
    "model.hidden_size=8",
    "model.dense_size=8",
    "chars.module.num_filters=4",
    "data.max_sentences=20",
    "trainer=smoke",
    "runtime.progress=false",
    "runtime.accelerator=cpu",
]


def configure(*overrides: str) -> DictConfig:
    with hydra_context():
        return hydra.compose(CONFIG_NAME, overrides=[*SMALL, *overrides])


class Attack:
    """A pickle that executes code when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.mark}",)


def unmarked(folder: Path) -> Iterator[Path]:
    """Yield a path that attacks create; fail if it exists afterwards."""
    mark = folder / "executed"
    yield mark
    assert not mark.exists()
