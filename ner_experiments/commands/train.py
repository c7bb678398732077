"""`ner-experiments train`, or `python run.py` for short: one experiment, or a sweep of them with -m."""

from __future__ import annotations

import sys
from typing import Any

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.errors import CompactHydraException
from hydra.types import RunMode
from omegaconf import DictConfig

from ner_experiments import __version__
from ner_experiments.config import launch_settings, overrides, values
from ner_experiments.config.conf import CONF, CONFIG_NAME, HYDRA_VERSION
from ner_experiments.config.processes import is_first_process, num_processes
from ner_experiments.launch import search, shell_scripts, sweeper
from ner_experiments.launch.worker import hide_statistics_of_torch

NOT_OF_HYDRA = (*overrides.SWEEP_SETTINGS, search.SPACE)
"""They are read by the suite, and checked where they are."""


def main(arguments: list[str]) -> int:
    """Check the command line, then hand over to Hydra, which calls `run_job` or starts the sweeper."""
    if "--version" in arguments:  # Hydra would print its own
        print(f"ner_experiments {__version__}")
        return 0
    options = get_args_parser().parse_args(arguments)
    if options.shell_completion:
        action, _, shell = " ".join(options.overrides).partition("=")
        if action != "install":
            usage = 'eval "$(python run.py -sc install=bash)"'
            print(f"-sc takes install=bash, install=zsh or install=fish: {usage}", file=sys.stderr)
            return 2
        print(shell_scripts.of_run_py(shell), end="")
        return 0
    try:
        if options.config_name not in (None, CONFIG_NAME):
            raise ValueError(f"--config-name={options.config_name}: there is one config, {CONFIG_NAME}")
        if not (options.help or options.hydra_help):
            own = [item for item in options.overrides if item.partition("=")[0] not in NOT_OF_HYDRA]
            if any(item.startswith(f"{search.SPACE}=") for item in options.overrides):
                own.insert(0, search.SWEEPER)
            launch_settings.check(own, sweep=options.multirun)
        expanded = search.search_overrides(options.overrides, sweep=options.multirun)
        expanded = expanded or sweeper.sweeper_overrides(options.overrides, sweep=options.multirun)
        if not (expanded or options.help or options.hydra_help or options.cfg or options.info):
            overrides.check(options.overrides, sweep=options.multirun)
            if not options.multirun:
                values.check_jobs([options.overrides])
    except ValueError as error:
        print(f"{error}\nNothing was started.", file=sys.stderr)
        return 1
    if expanded is not None:
        arguments = [*(item for item in arguments if item not in options.overrides), *expanded]
    command, sys.argv = sys.argv, ["run.py", *arguments]

    def task(cfg: DictConfig) -> dict[str, Any]:
        hide_statistics_of_torch()
        sys.argv = command  # Lightning repeats it for each process that trains a model with this one
        try:
            return run_job(cfg)
        except CompactHydraException as error:  # Hydra would print its wrapper around it
            if options.multirun:
                raise
            print(error, file=sys.stderr)
            sys.exit(1)

    hydra.main(version_base=HYDRA_VERSION, config_path=str(CONF), config_name=CONFIG_NAME)(task)()
    return 0


def run_job(cfg: DictConfig) -> dict[str, Any]:
    """Run one experiment in this process. User errors are reported in one line, all others with a traceback."""
    # torch and Lightning take seconds to import, and a refused command line needs neither
    from ner_experiments.launch.summary import show_run
    from ner_experiments.launch.worker import RefusedError, reason
    from ner_experiments.train import train

    single = HydraConfig.get().mode is RunMode.RUN
    try:
        if num_processes(cfg) > 1 and not single:
            devices, nodes = cfg.trainer.devices, cfg.trainer.num_nodes
            raise ValueError(
                f"trainer.devices={devices}, trainer.num_nodes={nodes}: a sweep whose jobs have several "
                "processes requires hydra/launcher=local or slurm"
            )
        result = train(cfg, wait=single)
    except (ValueError, OSError) as error:
        raise RefusedError(reason(error)) from error
    if single and is_first_process(cfg):
        show_run(result)
    return result
