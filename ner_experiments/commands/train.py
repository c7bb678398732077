"""`ner-experiments train`, or `python run.py` for short: one experiment, or a sweep of them with -m."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.utils import get_args_parser
from hydra.errors import CompactHydraException
from omegaconf import DictConfig

from ner_experiments import __version__
from ner_experiments.config import compose, launch_settings, overrides
from ner_experiments.config.choices import is_of_hydra
from ner_experiments.config.conf import CONF, CONFIG_NAME, HYDRA_VERSION
from ner_experiments.config.processes import is_first_process
from ner_experiments.launch import search, shell_scripts, sweeper
from ner_experiments.launch.checks import check_jobs
from ner_experiments.launch.worker import hide_statistics_of_torch, run_job

NOT_OF_HYDRA = (*overrides.SWEEP_SETTINGS, search.SPACE)
"""Settings that the suite reads, and checks where it reads them."""


def main(arguments: list[str]) -> int:
    """Check the command line, then hand over to Hydra, which calls `task` or starts the sweeper."""
    if "--version" in arguments:  # Hydra would print its own
        print(f"ner_experiments {__version__}")
        return 0
    options = get_args_parser().parse_intermixed_args(arguments)
    if options.shell_completion:
        return print_completion(options.overrides)
    try:
        overrides_of_jobs = checked(options)
    except ValueError as error:
        print(f"{error}\nNothing was started.", file=sys.stderr)
        return 1
    of_hydra = [item for item in arguments if item not in options.overrides]
    arguments = [*of_hydra, *overrides_of_jobs]  # Hydra's parser takes no options between overrides
    command, started_in = sys.argv, Path.cwd()

    def task(cfg: DictConfig) -> dict[str, Any]:
        """Run one experiment in this process: the only one, or a job of a sweep."""
        os.chdir(started_in)  # hydra.job.chdir=true changes the folder, but not what relative paths mean
        sys.argv = command  # Lightning repeats it for each process that trains a model with this one
        hide_statistics_of_torch()
        if options.multirun:
            return run_job(cfg)
        try:
            result = run_job(cfg, wait=True)
        except CompactHydraException as error:  # Hydra would print its wrapper around it
            print(error, file=sys.stderr)
            sys.exit(1)
        if is_first_process(cfg):
            from ner_experiments.launch.summary import show_run  # slow to import: rich

            show_run(result)
        return result

    sys.argv = ["run.py", *arguments]  # the only place where hydra.main looks for its arguments
    hydra.main(version_base=HYDRA_VERSION, config_path=str(CONF), config_name=CONFIG_NAME)(task)()
    return 0


def print_completion(overrides: list[str]) -> int:
    """Print the script of `-sc install=SHELL`; return the exit status."""
    action, _, shell = " ".join(overrides).partition("=")
    if action != "install":
        usage = 'eval "$(python run.py -sc install=bash)"'
        print(f"-sc takes install=bash, install=zsh or install=fish: {usage}", file=sys.stderr)
        return 2
    print(shell_scripts.of_run_py(shell), end="")
    return 0


def checked(options: Namespace) -> list[str]:
    """The overrides for Hydra: those typed, or those that make it start the requested search or sweep.

    Raises ValueError for overrides that no experiment can have.
    """
    if options.config_name not in (None, CONFIG_NAME):
        raise ValueError(f"--config-name={options.config_name}: there is one config, {CONFIG_NAME}")
    if not (options.help or options.hydra_help):
        own = [item for item in options.overrides if item.partition("=")[0] not in NOT_OF_HYDRA]
        if any(item.startswith(f"{search.SPACE}=") for item in options.overrides):
            own.insert(0, search.SWEEPER)
        launch_settings.check(own, sweep=options.multirun)
    expanded = search.search_overrides(options.overrides, sweep=options.multirun)
    expanded = expanded or sweeper.sweeper_overrides(options.overrides, sweep=options.multirun)
    if not (expanded or options.help or options.hydra_help):
        own = [item for item in options.overrides if not is_of_hydra(item.partition("=")[0].lstrip("+~"))]
        if options.cfg or options.info:  # shown whether or not there are the files to run it
            compose.compose(own)
        elif options.multirun:  # by another sweeper, which chooses the values
            check_jobs(compose.jobs(own), options.overrides)
        else:
            if launch_settings.is_on_a_cluster(options.overrides):
                name = launch_settings.launcher(options.overrides)
                raise ValueError(f"hydra/launcher={name} launches the jobs of a sweep: add -m")
            check_jobs([options.overrides], ())
    return overrides.with_new_keys(options.overrides if expanded is None else expanded)
