"""`hydra/sweeper=optuna`: a search for settings by dev score, with Optuna's samplers and the suite's launchers.

Hydra's own plugin is not used: its newest release, hydra-optuna-sweeper 1.3.0, requires optuna<3 (its port to Optuna 4,
pull request 3211 of Hydra, is merged but not released). The syntax is the plugin's, with three differences: `range`
excludes its end, the seed is never searched, and the n_trials of an interrupted search include those already done.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from ner_experiments.config.compose import compose
from ner_experiments.config.job import CommandLine, Job
from ner_experiments.config.launch_settings import composed
from ner_experiments.config.row_settings import joined, key
from ner_experiments.experiment_data import Fingerprints
from ner_experiments.launch import search_space, search_study, search_summary
from ner_experiments.launch.search_study import OptunaSweeper
from ner_experiments.launch.worker import Outcome
from ner_experiments.runs.code import code_of, digest
from ner_experiments.runs.progress import format_duration
from ner_experiments.utils.files import json_digest

SWEEPER = "hydra/sweeper=optuna"
SPACE = "search"
"""`search=NAME` on the command line stands for the ranges of conf/search/NAME.yaml."""
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
NOT_OF_A_SEARCH = {
    "table": "a search has no table",
    "sweep.name": "a search is named by hydra.sweeper.study_name",
    **dict.fromkeys(
        ("sweep.register", "sweep.primary"),
        "a search chooses by dev and tests nothing; register a sweep over what it has found, with new seeds",
    ),
}


def run(
    space: search_space.Space, sweeper: OptunaSweeper, launch: Callable[[Sequence[Job]], list[Outcome]]
) -> int:
    """Run trials until the search has `n_trials`, and show them; return the exit status, which is 1 if some failed."""
    failed, ended, began = 0, 0, time.monotonic()
    with search_study.open_study(space, sweeper, fingerprints_of(space)) as study:
        print(f"{study.folder.name}: {study.progress()}; stored in {study.folder}", flush=True)
        while batch := study.next_trials():
            points = [study.overrides(trial) for trial in batch]
            jobs = [
                Job(tuple(job), study.study.study_name, " ".join(point))
                for point in points
                for job in space.jobs(point)
            ]
            try:
                results = iter(launch(jobs))
            except SystemExit:  # by a signal
                print(f"Ended: {study.progress()}", flush=True)
                raise
            for trial in batch:
                failed += not study.record(trial, [next(results) for _ in space.seeds])
            study.write()
            ended += len(batch)
            if (remaining := sweeper.n_trials - len(study.in_state("COMPLETE")) - failed) > 0:
                left = format_duration((time.monotonic() - began) / ended * remaining)
                print(f"{study.progress()}, about {left} left", flush=True)
        content = study.write(at_end=True)
    search_summary.show(content, exhausted=study.exhausted)
    return int(failed > 0)


def fingerprints_of(space: search_space.Space) -> dict[str, str]:
    """Digests of what the runs of a search are made from at any point: the data with the files of inputs, and the code.

    With runtime.reuse=any the code does not count.
    """
    configs = [compose(job) for _, job in space.checked_jobs()]
    found = {"data": json_digest(sorted({*map(Fingerprints(), configs)}))}
    if configs[0].runtime.reuse != "any":
        found["code"] = json_digest(sorted({digest(code_of(cfg)) for cfg in configs}))
    return found


# The command line


def expanded(overrides: Sequence[str], *, sweep: bool) -> list[str]:
    """The overrides with `search=NAME` replaced by its ranges. ValueError for a search without -m."""
    named = [item for item in overrides if key(item) == SPACE]
    if not named and SWEEPER not in overrides:
        return [*overrides]
    if not sweep:
        raise ValueError(f"{(named or [SWEEPER])[0]} is a search: add -m")
    ranges = [item for each in named for item in search_space.shipped(each.partition("=")[2])]
    return [*joined([SWEEPER], ranges, [item for item in overrides if item not in named])]


def planned(line: CommandLine, typed: Sequence[str] = ()) -> search_space.Space:
    """The space of a search. ValueError for settings and ranges that it cannot have, whose ends are all composed.

    typed: the overrides before `expanded`.
    """
    for name, item in line.sweep.items():
        raise ValueError(f"{item}: {NOT_OF_A_SEARCH.get(name, 'a search takes seeds as seed=1,2,3')}")
    name = composed(line.hydra).sweeper.study_name
    if name is not None and not NAME.fullmatch(name):
        rule = "letters, digits, '.', '_' and '-'"
        raise ValueError(f"hydra.sweeper.study_name names a folder: {rule}, got {name!r}")
    space = search_space.read_space(line.experiment)
    names = [item.partition("=")[2] for item in typed if key(item) == SPACE]
    files = {key(item): f"search/{name}.yaml: " for name in names for item in search_space.shipped(name)}
    space.check(line, {name: file for name, file in files.items() if name not in map(key, typed)})
    return space
