"""Hydra's own settings, such as the launcher: checked, so that a mistake in them is one line as well, and composed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ner_experiments.config import choices, values
from ner_experiments.config.choices import HYDRA, is_choice, parse
from ner_experiments.config.conf import groups, options
from ner_experiments.config.job import CommandLine
from ner_experiments.config.overrides import keys, refuse_several_values
from ner_experiments.utils.text import did_you_mean

PROVIDER = "ner_experiments"
INSTALL: Mapping[str, tuple[str, str]] = {
    "hydra/sweeper=optuna": ("optuna", "hydra/sweeper=optuna needs Optuna: pip install -e '.[search]'"),
    "hydra/launcher=slurm": ("submitit", "hydra/launcher=slurm needs submitit: pip install -e '.[slurm]'"),
}
"""The package that a choice needs, and the message if it is missing."""


def check(line: CommandLine, *, sweep: bool) -> None:
    """Raise ValueError for an unknown launcher, sweeper or setting of theirs, and for a sweep without -m."""
    items = parse(line.hydra)
    for item in items:
        check_plugin(item)
    for item in items:
        check_key(item, tuple(str(it.input_line) for it in items if is_choice(it)))
    if sweep and line.is_on_a_cluster and not has_slurm():
        raise ValueError("hydra/launcher=slurm: SLURM is not installed here (command sbatch not found)")
    if line.hydra:
        for part in ("launcher", "sweeper"):
            values.check_ranges(composed(line.hydra)[part], f"hydra.{part}.")
    if not sweep:
        if line.is_on_a_cluster:
            raise ValueError(f"hydra/launcher={line.launcher} launches the jobs of a sweep: add -m")
        refuse_several_values(parse(line.experiment), "add -m")


def check_plugin(item: Override) -> None:
    group, choice = item.key_or_group, item.value()
    package, message = INSTALL.get(f"{group}={choice}", ("", ""))
    if package and find_spec(package) is None:
        raise ValueError(message)
    known = own_options(group) or options(group)
    if group.startswith("hydra/") and known and choice not in known:
        raise ValueError(f"{item.input_line}: {group} has no {choice!r}{did_you_mean(str(choice), known)}")


def check_key(item: Override, chosen: tuple[str, ...]) -> None:
    """Raise ValueError for a setting that Hydra, with the chosen launcher and sweeper, does not have.

    To a mapping, such as hydra.job.env_set, Hydra adds any key with `+`.
    """
    key, settings = item.key_or_group, composed(chosen)
    near = dict.fromkeys(keys_of(settings, HYDRA), "")
    if key in near or is_choice(item):
        return
    parents = (key.rsplit(".", number)[0] for number in range(1, key.count(".") + 1))
    deepest = next((it for it in parents if it in near), "")
    node = OmegaConf.select(settings, deepest.removeprefix(f"{HYDRA}.")) if deepest else None
    if (item.is_add() or item.is_force_add()) and OmegaConf.get_type(node) is dict:
        return
    near |= {f"{HYDRA}/{group}": "" for group in groups(HYDRA)}
    for part in ("launcher", "sweeper"):
        for choice in (f"{HYDRA}/{part}={name}" for name in own_options(f"{HYDRA}/{part}")):
            near = dict.fromkeys(keys_of(composed((choice,))[part], f"{HYDRA}.{part}"), choice) | near
    if needed := near.get(key):
        raise ValueError(f"{item.input_line}: {key} needs {needed}")
    raise ValueError(f"{item.input_line}: there is no setting {key!r}{did_you_mean(key, near, near)}")


def keys_of(settings: DictConfig, place: str) -> Iterator[str]:
    """The dotted names of settings that are at `place`."""
    plain = OmegaConf.to_container(settings)
    assert isinstance(plain, dict)
    return keys(plain, f"{place}.")


def own_options(group: str) -> list[str]:
    """The choices of a group of Hydra that hydra_plugins registers, without those of Hydra and its other plugins."""
    options(group)  # lets Hydra import its plugins
    store = ConfigStore.instance()
    files = store.list(group) if group in ("hydra/launcher", "hydra/sweeper") else []
    names = [name.removesuffix(".yaml") for name in files if name.endswith(".yaml")]
    return [name for name in names if store.load(f"{group}/{name}.yaml").provider == PROVIDER]


def composed(overrides: tuple[str, ...]) -> DictConfig:
    """Hydra's own settings, composed. ValueError, in one line, for overrides that Hydra refuses."""
    try:
        settings = choices.composed(overrides).hydra
        assert isinstance(settings, DictConfig)
        OmegaConf.to_container(settings.launcher, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        causes = [error, *([error.__cause__] if error.__cause__ else [])]
        reason = ": ".join(str(each).splitlines()[0].rstrip(".") for each in causes)
        if found := re.search(r"override (\S+)=(\S+): .* is not a ListConfig", reason):
            reason = f"{found[1]} must be a list, such as {found[1]}=[0,1], got {found[2]}"
        raise ValueError(reason) from error
    return settings


def logging(overrides: tuple[str, ...]) -> dict[str, Any]:
    """The settings for the logging of jobs, as plain values."""
    settings = composed(overrides)
    job_logging = OmegaConf.to_container(settings.job_logging, resolve=True)
    return {"job_logging": job_logging, "verbose": settings.verbose}


def has_slurm() -> bool:
    """Whether jobs can be submitted from this machine."""
    return bool(shutil.which("sbatch") and shutil.which("srun"))
