"""A command line's overrides, sorted by who reads them, and one experiment of it: a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ner_experiments.config.choices import is_for_hydra, parse_one
from ner_experiments.config.compose import compose
from ner_experiments.config.overrides import SWEEP_SETTINGS


@dataclass(frozen=True)
class CommandLine:
    """Overrides as they were typed: for Hydra, for the sweep (`table=`, ...) by key, and for the experiment."""

    hydra: tuple[str, ...]
    sweep: Mapping[str, str]
    experiment: tuple[str, ...]

    @classmethod
    def of(cls, overrides: Sequence[str]) -> CommandLine:
        """ValueError for an override that does not follow Hydra's grammar."""
        sweep = {key: item for item in overrides if (key := item.partition("=")[0]) in SWEEP_SETTINGS}
        rest = [item for item in overrides if item not in sweep.values()]
        hydra = tuple(item for item in rest if is_for_hydra(parse_one(item)))
        return cls(hydra, sweep, tuple(item for item in rest if item not in hydra))

    def value(self, key: str) -> str:
        """The value of a setting of the sweep as it was typed, or ""."""
        return self.sweep.get(key, "").partition("=")[2]

    def choice(self, group: str, default: str) -> str:
        """The plugin that is chosen in a group of Hydra."""
        chosen = [item for item in map(parse_one, self.hydra) if item.key_or_group == group]
        return str(chosen[-1].value()) if chosen else default

    @property
    def launcher(self) -> str:
        return self.choice("hydra/launcher", "local")  # of conf/config.yaml

    @property
    def is_on_a_cluster(self) -> bool:
        """Whether the jobs run on other machines than this one."""
        return self.launcher == "slurm"


@dataclass(frozen=True)
class Job:
    """One experiment: its overrides, and the names of the sweep, row and registration that it is run for."""

    overrides: tuple[str, ...]
    sweep: str = ""
    row: str = ""
    registration: str = ""

    @property
    def cfg(self) -> DictConfig:
        """The composed config, without the names; read-only."""
        return compose(self.overrides)

    def config(self) -> dict[str, Any]:
        """The composed config as plain values and references: what a process needs to run the job."""
        config: Any = OmegaConf.to_container(self.cfg)
        names = {"name": self.sweep, "row": self.row, "registration": self.registration}
        config["sweep"] |= {key: name for key, name in names.items() if name}
        return dict(config)


def config_of(content: Mapping[str, Any]) -> DictConfig:
    """The config of `Job.config`, which may be changed, but for new keys."""
    cfg = OmegaConf.create(dict(content))
    OmegaConf.set_struct(cfg, True)
    return cfg
