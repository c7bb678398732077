"""The tables at the end of a search: best trials, importance of settings, expected best score, failed trials."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from ner_experiments.analysis.search_trials import Search, expected_grid, importance_grid, trials_grid
from ner_experiments.config.config_dirs import config_dirs
from ner_experiments.tables.experiments import counts
from ner_experiments.tables.short_runs import TOO_FEW_STEPS
from ner_experiments.utils.terminal import draw, make_console

SHOWN = 10
"""Number of trials in the table of the best."""
DRAWS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of trials whose expected best score is printed, beside that of all."""


def show(search: Search, *, exhausted: bool = False) -> None:
    """Print the tables, and the command that scores the best settings on test."""
    console = make_console()
    ranked = search.ranked
    if ranked:
        shared = " ".join([*filter(counts, search.fixed), f"seed={','.join(map(str, search.seeds))}"])
        console.print(f"\n{shared}", markup=False, highlight=False, soft_wrap=True)
        trials = trials_grid(search).without(["runs"])
        draw(replace(trials, lines=trials.lines[:SHOWN]).with_rules, console)
        best = f"The best: {', '.join(ranked[0].folders)}"
        console.print(best, markup=False, highlight=False, soft_wrap=True)
        if not ranked[0].score:
            console.print(
                f"All trials have a dev {search.metric} of 0, {TOO_FEW_STEPS}",
                markup=False,
                soft_wrap=not console.is_terminal,
            )
        console.print()
        if search.importance:
            console.print("Importance: the share of the variance of dev scores that a setting explains alone")
            draw(importance_grid(search).with_rules, console)
        if len(ranked) > 1:
            console.print("Expected best dev score of N trials drawn at random from these")
            expected = expected_grid(search)
            *most, last = expected.lines
            lines = [*(line for number, line in enumerate(most, 1) if number in DRAWS), last]
            draw(replace(expected, lines=lines).with_rules, console)
    if exhausted:
        console.print("All points of the search space were tried.")
    for trial in search.failed:
        message = f"trial {trial.number} failed: {' '.join(trial.overrides)}\n    {trial.error}"
        console.print(message, markup=False, soft_wrap=True)
    if ranked:
        command = shlex.join(with_own_configs(search.command(ranked[0])))
        console.print("\nThe search scored no trial on test. The best settings, on test:")
        console.print(f"    {command}", markup=False, highlight=False, soft_wrap=True)


def with_own_configs(command: list[str]) -> list[str]:
    """The command with the folders of configs that this process has; outside a checkout there is no run.py."""
    options = [f"--config-dir={folder}" for folder in config_dirs()]
    if options and not Path("run.py").is_file():
        command = ["ner-experiments", "train", *command[2:]]
    return command + options
