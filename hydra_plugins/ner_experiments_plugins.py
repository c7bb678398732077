"""Registration of the launchers and the sweepers of ner_experiments/launch, and of `--config-dir`, with Hydra.

Hydra scans only this namespace package for plugins, at every start, and registers only classes that are defined in it.
"""

from typing import Any

from hydra.core.config_store import ConfigStore

from ner_experiments.config import conf
from ner_experiments.config.launch_settings import PROVIDER
from ner_experiments.launch import local, search_study, slurm


class ConfigDirs(conf.ConfigDirs):
    """`--config-dir DIR` of every command"""


OWN: dict[str, dict[str, Any]] = {
    "hydra/launcher": {
        "local": local.LocalLauncher,
        "basic": local.BasicLauncher,  # in place of Hydra's
        "slurm": slurm.SlurmLauncher,
    },
    "hydra/sweeper": {"table": {}, "optuna": search_study.OptunaSweeper},
    "hydra/sweeper/sampler": {"tpe": search_study.TPESampler, "random": search_study.RandomSampler},
}
for group, nodes in OWN.items():
    for name, node in nodes.items():
        ConfigStore.instance().store(name, node, group, provider=PROVIDER)
