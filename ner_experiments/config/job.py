"""A command line's overrides, sorted by who reads them, and one experiment of it: a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ner_experiments.config.choices import OPEN, is_for_hydra, parse_one
from ner_experiments.config.compose import compose
from ner_experiments.config.overrides import SWEEP_SETTINGS
from ner_experiments.config.row_settings import as_value


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
class Job(Sequence[str]):
    """One experiment: its overrides, and the names of the sweep, row and registration that it is run for.

    It is passed on as it is. As a sequence of overrides in Hydra's grammar, it is what any launcher of Hydra takes.
    """

    overrides: tuple[str, ...]
    sweep: str = ""
    row: str = ""
    registration: str = ""

    @property
    def cfg(self) -> DictConfig:
        """The composed config, without the names; read-only."""
        return compose(self.overrides)

    @property
    def names(self) -> dict[str, str]:
        names = {"name": self.sweep, "row": self.row, "registration": self.registration}
        return {key: name for key, name in names.items() if name}

    def config(self) -> dict[str, Any]:
        """The composed config as plain values and references: what a process needs to run the job."""
        config: Any = OmegaConf.to_container(self.cfg)
        config["sweep"] |= self.names
        return dict(config)

    def in_hydras_grammar(self) -> list[str]:
        names = [f"sweep.{key}={as_value(name)}" for key, name in self.names.items()]
        return [*with_new_keys(self.overrides), *names]

    def __getitem__(self, index: Any) -> Any:
        return self.in_hydras_grammar()[index]

    def __len__(self) -> int:
        return len(self.in_hydras_grammar())


def as_job(overrides: Sequence[str]) -> Job:
    """A job as a launcher gets it: from another sweeper than the suite's, as overrides."""
    return overrides if isinstance(overrides, Job) else Job(tuple(overrides))


def with_new_keys(overrides: Sequence[str]) -> list[str]:
    """The overrides in Hydra's grammar, in which `++` lets those of the mappings in `OPEN` add keys."""
    opened = tuple(f"{name}{end}" for name in OPEN for end in ".=")
    return [f"++{item}" if item.startswith(opened) else item for item in overrides]


def config_of(content: Mapping[str, Any]) -> DictConfig:
    """The config of `Job.config`, which may be changed, but for new keys."""
    cfg = OmegaConf.create(dict(content))
    OmegaConf.set_struct(cfg, True)
    return cfg
