"""Registration of the launchers and the sweepers of ner_experiments/launch, and of `--config-dir`, with Hydra.

Hydra scans only this namespace package for plugins, at every start, and registers only classes that are defined in it.
"""

from hydra.core.config_store import ConfigStore

from ner_experiments.config import conf
from ner_experiments.launch import local, search_study, slurm


class ConfigDirs(conf.ConfigDirs):
    """`--config-dir DIR` of every command"""


STORE = ConfigStore.instance()
STORE.store(group="hydra/launcher", name="local", node=local.LocalLauncher)
STORE.store(group="hydra/launcher", name="basic", node=local.BasicLauncher)  # in place of Hydra's
STORE.store(group="hydra/launcher", name="slurm", node=slurm.SlurmLauncher)
STORE.store(group="hydra/sweeper", name="table", node={})
STORE.store(group="hydra/sweeper", name="optuna", node=search_study.OptunaSweeper)
STORE.store(group="hydra/sweeper/sampler", name="tpe", node=search_study.TPESampler)
STORE.store(group="hydra/sweeper/sampler", name="random", node=search_study.RandomSampler)
