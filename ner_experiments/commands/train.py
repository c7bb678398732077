"""`ner-experiments train [OVERRIDE ...]`: train one experiment, or a sweep with -m; same as `python run.py`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import hydra
from hydra.errors import CompactHydraException
from omegaconf import DictConfig

from ner_experiments import __version__
from ner_experiments.config import compose, launch_settings
from ner_experiments.config.conf import CONF, CONFIG_NAME, HYDRA_VERSION
from ner_experiments.config.job import CommandLine, Job, config_of, with_new_keys
from ner_experiments.config.processes import is_first_process
from ner_experiments.launch import search, shell_scripts, sweeper
from ner_experiments.launch.checks import check_jobs
from ner_experiments.launch.search_space import Space
from ner_experiments.launch.sweeper import Sweep
from ner_experiments.launch.worker import hide_statistics_of_torch, run_job


def main(arguments: list[str]) -> int:
    """Check the command line, then start Hydra, which calls the task: itself, or by a sweeper and a launcher."""
    if "--version" in arguments:  # Hydra would print its own
        print(f"ner_experiments {__version__}")
        return 0
    options = parsed(arguments)
    if options.shell_completion:
        return print_completion(options.overrides)
    try:
        line, plan = planned(options)
    except ValueError as error:
        print(f"{error}\nNothing was started.", file=sys.stderr)
        return 1
    command, started_in = sys.argv, Path.cwd()

    def task(cfg: DictConfig) -> dict[str, Any]:
        """Run one experiment in this process: the only one, or one of a launcher that is not the suite's."""
        os.chdir(started_in)  # hydra.job.chdir=true changes the folder, but not what relative paths mean
        sys.argv = command  # Lightning repeats it for each process that trains a model with this one
        hide_statistics_of_torch()
        if not isinstance(plan, Job):
            return run_job(cfg)
        cfg = config_of(plan.config())
        try:
            result = run_job(cfg, wait=True)
        except CompactHydraException as error:  # Hydra would print its wrapper around it
            print(error, file=sys.stderr)
            sys.exit(1)
        if is_first_process(cfg):
            from ner_experiments.launch.summary import show_run  # slow to import: rich

            show_run(result)
        return result

    vars(task)["plan"] = plan
    # Hydra gets what it has to show or to sweep, or else its own settings and what these refer to
    own = [item for item in line.experiment if plan is None or item.startswith("output_dir=")]
    # Hydra's parser takes no options between overrides
    of_hydra = [item for item in arguments if item not in options.overrides]
    # hydra.main looks nowhere else
    sys.argv = ["run.py", *of_hydra, *line.hydra, *with_new_keys(own)]
    hydra.main(version_base=HYDRA_VERSION, config_path=str(CONF), config_name=CONFIG_NAME)(task)()
    return 0


def planned(options: Namespace) -> tuple[CommandLine, Job | Sweep | Space | None]:
    """The sorted command line, and the experiment, sweep or search that it asks for.

    That is None for what Hydra does alone: to show help or settings, and a sweep by a sweeper that is not the suite's.
    Raises ValueError for overrides that no experiment can have.
    """
    if options.config_name not in (None, CONFIG_NAME):
        raise ValueError(f"--config-name={options.config_name}: there is one config, {CONFIG_NAME}")
    line = CommandLine.of(search.expanded(options.overrides, sweep=options.multirun))
    if options.help or options.hydra_help:
        return line, None
    launch_settings.check(line, sweep=options.multirun)
    sweeper_name = line.choice("hydra/sweeper", "table")
    if options.cfg or options.info:  # shown whether or not there are the files to run it
        compose.compose(line.experiment)
        return line, None
    if sweeper_name == "optuna":
        return line, search.planned(line)
    if not options.multirun:
        sweeper.refuse_without_m(line)
        check_jobs([line.experiment])
        return line, Job(line.experiment)
    if sweeper_name == "table":
        return line, sweeper.planned(line)
    check_jobs(compose.jobs(line.experiment), line)
    return line, None


def parsed(arguments: list[str]) -> Namespace:
    """The options of a command line, which are Hydra's, and the overrides."""
    parser = ArgumentParser(prog="run.py", add_help=False)
    parser.add_argument("overrides", nargs="*")
    flags = ("--help -h", "--hydra-help", "--resolve", "--run -r", "--multirun -m", "--shell-completion -sc")
    values = ("--cfg -c", "--package -p", "--config-name -cn", "--config-path -cp", "--experimental-rerun")
    for names in flags:
        parser.add_argument(*names.split(), action="store_true")
    for names in values:
        parser.add_argument(*names.split())
    parser.add_argument("--info", "-i", nargs="?", const="all")
    return parser.parse_intermixed_args(arguments)


def print_completion(overrides: list[str]) -> int:
    """Print the script of `-sc install=SHELL`; return the exit status."""
    action, _, shell = " ".join(overrides).partition("=")
    if action != "install":
        usage = 'eval "$(python run.py -sc install=bash)"'
        print(f"-sc takes install=bash, install=zsh or install=fish: {usage}", file=sys.stderr)
        return 2
    print(shell_scripts.of_run_py(shell), end="")
    return 0
