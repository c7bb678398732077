"""The tables at the end of a search: best trials, importance of settings, expected best score, failed trials."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from ner_experiments.analysis.search_trials import Search, expected_best, varied_values
from ner_experiments.config.config_dirs import config_dirs
from ner_experiments.launch.summary import TOO_FEW_STEPS, mean_and_deviation
from ner_experiments.utils.terminal import make_console, new_table

SHOWN = 10
"""Number of trials in the table of the best."""
DRAWS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of trials whose expected best score is printed."""


def show(search: Search, *, exhausted: bool = False) -> None:
    """Print the tables, and the command that scores the best settings on test."""
    console = make_console()
    ranked = search.ranked
    if ranked:
        shared = " ".join([*search.fixed, f"seed={','.join(map(str, search.seeds))}"])
        console.print(f"\n{shared}", markup=False, highlight=False, soft_wrap=True)
        console.print(best_trials(search))
        best = f"The best: {', '.join(ranked[0].folders)}"
        console.print(best, markup=False, highlight=False, soft_wrap=True)
        if not ranked[0].score:
            console.print(
                f"All trials have a dev {search.metric} of 0, {TOO_FEW_STEPS}", markup=False, soft_wrap=True
            )
        console.print()
        if search.importance:
            console.print("Importance: the share of the variance of dev scores that a setting explains alone")
            console.print(importance(search))
        if len(ranked) > 1:
            console.print("Expected best dev score of N trials drawn at random from these")
            console.print(expected(search))
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


def best_trials(search: Search) -> Table:
    """The best trials: rank, number, dev score in percent, and the settings that vary."""
    table = new_table("rank", "trial", f"dev {search.metric}", *map(escape, search.keys))
    for rank, trial in enumerate(search.ranked[:SHOWN], 1):
        values = map(escape, varied_values(trial))
        score = mean_and_deviation([100 * each for each in trial.scores])
        table.add_row(str(rank), str(trial.number), score, *values)
    return table


def importance(search: Search) -> Table:
    """The importance of each setting in percent of the variance, the largest first."""
    table = new_table("setting", "importance")
    for key, share in sorted(search.importance.items(), key=lambda item: -item[1]):
        table.add_row(escape(key), f"{100 * share:.0f} %")
    return table


def expected(search: Search) -> Table:
    """Expected best dev score of n of the trials, drawn at random."""
    best = expected_best(search.scores)
    numbers = [number for number in DRAWS if number < len(best)] + [len(best)]
    table = new_table("trials", *map(str, numbers))
    table.add_row(f"dev {search.metric}", *(f"{100 * best[number - 1]:.2f}" for number in numbers))
    return table
