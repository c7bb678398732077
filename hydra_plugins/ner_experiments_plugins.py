"""Registration of the launchers and the sweepers of ner_experiments/launch, and of `--config-dir`, as Hydra plugins.

Hydra scans only this namespace package for plugins, at every start, and registers only classes that are defined in it.
"""

from hydra.core.config_store import ConfigStore

from ner_experiments.config import conf
from ner_experiments.launch import local, search, slurm, sweeper


class ConfigDirs(conf.ConfigDirs):
    """`--config-dir DIR` of every command"""


class LocalLauncher(local.LocalLauncher):
    """`hydra/launcher=local`"""


class BasicLauncher(local.BasicLauncher):
    """`hydra/launcher=basic`"""


class SlurmLauncher(slurm.SlurmLauncher):
    """`hydra/launcher=slurm`"""


class TableSweeper(sweeper.TableSweeper):
    """`hydra/sweeper=table`, the default of conf/config.yaml"""


class OptunaSweeper(search.OptunaSweeper):
    """`hydra/sweeper=optuna`"""


STORE = ConfigStore.instance()
STORE.store(group="hydra/launcher", name="local", node=local.LocalLauncherConfig)
STORE.store(group="hydra/launcher", name="basic", node=local.BasicLauncherConfig)  # in place of Hydra's
STORE.store(group="hydra/launcher", name="slurm", node=slurm.SlurmLauncherConfig)
STORE.store(group="hydra/sweeper", name="table", node=sweeper.TableSweeperConfig)
STORE.store(group="hydra/sweeper", name="optuna", node=search.OptunaSweeperConfig)
STORE.store(group="hydra/sweeper/sampler", name="tpe", node=search.TPESamplerConfig)
STORE.store(group="hydra/sweeper/sampler", name="random", node=search.RandomSamplerConfig)
