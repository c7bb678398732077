"""Registers the launchers and the sweeper of ner_experiments/launch.

Hydra looks for plugins in this namespace package alone, at every start, and takes only classes that are
defined in it.
"""

from hydra.core.config_store import ConfigStore

from ner_experiments.launch import local, slurm, sweeper


class LocalLauncher(local.LocalLauncher):
    """`hydra/launcher=local`"""


class SlurmLauncher(slurm.SlurmLauncher):
    """`hydra/launcher=slurm`"""


class TableSweeper(sweeper.TableSweeper):
    """`hydra/sweeper=table`, the default of conf/config.yaml"""


STORE = ConfigStore.instance()
STORE.store(group="hydra/launcher", name="local", node=local.LocalLauncherConfig)
STORE.store(group="hydra/launcher", name="slurm", node=slurm.SlurmLauncherConfig)
STORE.store(group="hydra/sweeper", name="table", node=sweeper.TableSweeperConfig)
