"""`ner-experiments train [OVERRIDE ...]`: train one experiment, or a sweep with -m; same as `python run.py`."""

from __future__ import annotations

import sys
import traceback
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import hydra

from ner_experiments import __version__
from ner_experiments.config import compose, launch_settings
from ner_experiments.config.choices import OPEN, parse
from ner_experiments.config.conf import CONFIG_NAME, HYDRA_VERSION
from ner_experiments.config.config_dirs import CONF
from ner_experiments.config.job import CommandLine, Job
from ner_experiments.config.overrides import refuse_several_values
from ner_experiments.config.processes import is_first_process
from ner_experiments.launch import search, shell_scripts, sweeper, worker
from ner_experiments.launch.checks import check_jobs
from ner_experiments.launch.summary import show_run
from ner_experiments.launch.sweeper import Launch


def main(arguments: list[str]) -> int:
    """Check the command line, then run what it asks for; return the exit status."""
    if "--version" in arguments:  # Hydra would print its own
        print(f"ner_experiments {__version__}")
        return 0
    options = parsed(arguments)
    if options.shell_completion:
        return print_completion(options.overrides)
    # Hydra's parser takes no options between overrides
    of_hydra = [item for item in arguments if item not in options.overrides]
    try:
        command = planned(options, of_hydra)
    except ValueError as error:
        print(f"{error}\nNothing was started.", file=sys.stderr)
        return 1
    return command()


def planned(options: Namespace, of_hydra: Sequence[str]) -> Callable[[], int]:
    """The experiment, sweep or search that a command line asks for, or what Hydra shows for the options `of_hydra`.

    Raises ValueError for overrides that no experiment can have.
    """
    if options.config_name not in (None, CONFIG_NAME):
        raise ValueError(f"--config-name={options.config_name}: there is one config, {CONFIG_NAME}")
    line = CommandLine.of(search.expanded(options.overrides, sweep=options.multirun))
    show = partial(show_by_hydra, [*of_hydra, *line.hydra, *with_new_keys(line.experiment)])
    if options.help or options.hydra_help:
        return show
    launch_settings.check(line, sweep=options.multirun)
    if options.cfg or options.info:  # shown whether or not there are the files to run it
        refuse_several_values(parse(line.experiment), "this shows the config of one experiment")
        compose.compose(line.experiment)
        return show
    if line.choice("hydra/sweeper", "table") == "optuna":
        space = search.planned(line, options.overrides)
        return partial(search.run, space, launch_settings.composed(line.hydra).sweeper, Launch(line))
    if options.multirun:
        return partial(sweeper.run, sweeper.planned(line), Launch(line))
    sweeper.refuse_without_m(line)
    check_jobs([line.experiment])
    return partial(run_here, Job(line.experiment), launch_settings.logging(line.hydra))


def run_here(job: Job, logging: Mapping[str, Any]) -> int:
    """Run an experiment in this process, and print its result."""
    try:
        result = worker.run(worker.message(job, logging), wait=True)
    except Exception as error:
        if not isinstance(error, ValueError | OSError):
            if not hasattr(error, "__notes__"):  # which say where the traceback is
                raise
            frames = traceback.extract_tb(error.__traceback__)
            # the last line that is no library's, which is where to look
            own = [frame for frame in frames if "site-packages" not in frame.filename]
            print(*traceback.format_list(own[-1:]), sep="", end="", file=sys.stderr)
        print(worker.reason(error), file=sys.stderr)
        return 1
    if is_first_process(job.cfg):
        show_run(result)
    return 0


def show_by_hydra(arguments: Sequence[str]) -> int:
    """Let Hydra show its help, or a config."""
    sys.argv = ["run.py", *arguments]
    hydra.main(version_base=HYDRA_VERSION, config_path=str(CONF), config_name=CONFIG_NAME)(lambda _: None)()
    return 0


def with_new_keys(overrides: Sequence[str]) -> list[str]:
    """The overrides in Hydra's grammar, in which `++` lets those of the mappings in `OPEN` add keys."""
    opened = tuple(f"{name}{end}" for name in OPEN for end in ".=")
    return [f"++{item}" if item.startswith(opened) else item for item in overrides]


def parsed(arguments: list[str]) -> Namespace:
    """The options of a command line, which are Hydra's, and the overrides."""
    parser = ArgumentParser(prog="run.py", add_help=False)
    parser.add_argument("overrides", nargs="*")
    flags = ("--help -h", "--hydra-help", "--resolve", "--run -r", "--multirun -m", "--shell-completion -sc")
    values = ("--cfg -c", "--package -p", "--config-name -cn", "--config-path -cp")
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
    # the script leaves other programs of Python to the shell's own completion
    print(shell_scripts.script(shell, ["python", "python3", "run.py", "ner-experiments"]), end="")
    return 0
