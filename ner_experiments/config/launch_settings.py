"""Checks of the overrides for Hydra itself, such as the launcher, so that a mistake in them is one line as well."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec

import hydra
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ner_experiments.config import values
from ner_experiments.config.choices import parse
from ner_experiments.config.compose import compose, override_value
from ner_experiments.config.conf import CONFIG_NAME, hydra_context, options
from ner_experiments.config.overrides import is_for_hydra, refuse_several_values
from ner_experiments.config.processes import num_processes
from ner_experiments.utils.text import did_you_mean

INSTALL: Mapping[str, tuple[str, str]] = {
    "hydra/sweeper=optuna": ("optuna", "hydra/sweeper=optuna needs Optuna: pip install -e '.[search]'"),
    "hydra/launcher=slurm": ("submitit", "hydra/launcher=slurm needs submitit: pip install -e '.[slurm]'"),
}
"""The package that a choice needs, and the message if it is missing."""
NO_SLURM = "hydra/launcher=slurm: SLURM is not installed here (command sbatch not found)"
EXTRAS = {
    "hydra/sweeper": "optuna needs pip install -e '.[search]'",
    "hydra/launcher": "slurm needs pip install -e '.[slurm]'",
}


def check(overrides: Sequence[str], *, sweep: bool) -> None:
    """Raise ValueError for an unknown launcher, sweeper or setting of theirs, and for a sweep without -m."""
    with hydra_context():
        items = parse(overrides)
        own = [item for item in items if is_for_hydra(item)]
        for item in own:
            check_plugin(item)
    if sweep and is_on_a_cluster(overrides) and not has_slurm():
        raise ValueError(NO_SLURM)
    if own:
        values.check_ranges(composed(tuple(str(item.input_line) for item in own)).launcher, "hydra.launcher.")
    if not sweep:
        refuse_several_values(items, "add -m")


def check_plugin(item: Override) -> None:
    group, choice = item.key_or_group, item.value()
    if group in EXTRAS and choice not in options(group):
        known = ", ".join(options(group))
        raise ValueError(
            f"{item.input_line}: {group} has no {choice!r}; there are: {known} ({EXTRAS[group]})"
        )
    package, message = INSTALL.get(f"{group}={choice}", ("", ""))
    if package and find_spec(package) is None:
        raise ValueError(message)
    if group.startswith("hydra/") and options(group) and choice not in options(group):
        raise ValueError(
            f"{item.input_line}: {group} has no {choice!r}{did_you_mean(str(choice), options(group))}"
        )


@cache  # composing them takes twenty times as long as composing an experiment, and all jobs of a sweep have the same
def composed(overrides: tuple[str, ...]) -> DictConfig:
    """Hydra's own settings, composed. ValueError, in one line, for overrides that Hydra refuses."""
    try:
        with hydra_context():
            cfg = hydra.compose(CONFIG_NAME, overrides=[*overrides], return_hydra_config=True)
        settings = cfg.hydra
        assert isinstance(settings, DictConfig)
        OmegaConf.to_container(settings.launcher, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        causes = [error, *([error.__cause__] if error.__cause__ else [])]
        raise ValueError(": ".join(str(each).splitlines()[0].rstrip(".") for each in causes)) from error
    return settings


def check_jobs(jobs: Sequence[Sequence[str]], overrides: Sequence[str], *, files: bool = True) -> None:
    """Raise ValueError for the first job that the launcher chosen by the overrides of the sweep cannot run.

    GPUs and files are looked for only if the jobs run on this machine, and files only if `files`.
    """
    here = not is_on_a_cluster(overrides)
    values.check_jobs(jobs, files=files and here, devices=here)
    for cfg in map(compose, jobs) if launcher(overrides) == "basic" else ():
        if num_processes(cfg) > 1:
            devices, nodes = cfg.trainer.devices, cfg.trainer.num_nodes
            raise ValueError(
                f"trainer.devices={devices}, trainer.num_nodes={nodes}: a sweep whose jobs have several "
                "processes requires hydra/launcher=local or slurm"
            )


def launcher(overrides: Sequence[str]) -> str:
    """The launcher that overrides choose; by default that of conf/config.yaml."""
    chosen = [item for item in overrides if item.startswith("hydra/launcher=")]
    return str(override_value(chosen[-1])) if chosen else "local"


def is_on_a_cluster(overrides: Sequence[str]) -> bool:
    """Whether the jobs run on other machines than this one."""
    return launcher(overrides) == "slurm"


def has_slurm() -> bool:
    """Whether jobs can be submitted from this machine."""
    return bool(shutil.which("sbatch") and shutil.which("srun"))
