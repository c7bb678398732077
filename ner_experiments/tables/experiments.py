"""The experiments of a published table: its rows, composed, and which of them have no finished run yet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ner_experiments.config.compose import compose, resolved
from ner_experiments.config.identity import NOT_THE_EXPERIMENT, identity, inputs
from ner_experiments.config.row_settings import joined, key, root
from ner_experiments.config.stand_ins import declared
from ner_experiments.data.corpus import check
from ner_experiments.experiment_data import Fingerprints, source
from ner_experiments.runs.store import in_output_dir
from ner_experiments.tables import spec
from ner_experiments.tables.spec import Row, Table

if TYPE_CHECKING:
    from omegaconf import DictConfig

OTHER_FILES = re.compile(r"^data\.(files|path)\b|input\.path$|\.stand_in$")
"""Settings that change what is read and are no part of the identity."""


@dataclass(frozen=True)
class Experiment:
    """A row that is run: its overrides on the command line, and the composed config with an arbitrary seed."""

    row: Row
    overrides: tuple[str, ...]
    cfg: DictConfig

    def reads(self) -> tuple[str, ...]:
        """The name of the corpus, and the names of the files and folders that the inputs are made of."""
        return (self.cfg.data.name, *(path.name for path in self._files_of_inputs()))

    def lacks(self) -> tuple[str, ...]:
        """The corpus and the files among `reads` that are not on this machine."""
        missing = [path.name for path in self._files_of_inputs() if not path.expanduser().exists()]
        try:
            check(source(self.cfg))
        except (ValueError, OSError):
            missing.insert(0, self.cfg.data.name)
        return tuple(missing)

    def _files_of_inputs(self) -> list[Path]:
        settings = resolved(self.overrides)
        return [Path(node[key]) for node in inputs(settings) for key in ("path", "folder") if key in node]

    def stand_ins(self) -> tuple[str, ...]:
        """The stand-ins that conf/ declares for the row: substitutes for what its paper used."""
        return declared(resolved(self.overrides))


def experiments(table: Table, extra_overrides: Sequence[str] = ()) -> list[Experiment]:
    """The rows that are run, composed; extra overrides replace the table's own.

    An analysis has the experiments of the table it analyzes. Raises ValueError, with the row, for overrides that
    Hydra or `compose` refuse, and for overrides that make two rows the same experiment.
    """
    if table.command:
        raise ValueError(f"{table.name}: its rows are no training runs; `{table.command}` measures them")
    if table.analysis:
        return experiments(spec.load(table.analysis), extra_overrides)
    by_settings: dict[str, Experiment] = {}
    for row in table.rows:
        if row.run is None:
            continue
        overrides = joined(table.base, row.run, extra_overrides)
        experiment = Experiment(row, overrides, compose(overrides, f"{table.name}, row {row.label!r}"))
        same = by_settings.setdefault(repr(resolved(overrides)), experiment)
        if same is not experiment:
            raise ValueError(
                f"{table.name}: rows {same.row.label!r} and {row.label!r} are one experiment"
                + (f" with {' '.join(extra_overrides)}" if extra_overrides else "")
            )
    return list(by_settings.values())


def unfinished(
    table: Table, extra_overrides: Sequence[str], seeds: Sequence[int]
) -> tuple[list[list[str]], int]:
    """The jobs that a sweep over the table has to launch, and the number of runs that are already finished.

    Without seeds, those of the table. Rows whose files cannot be read are launched: their jobs fail with the
    reason.
    """
    jobs, num_finished, find = [], 0, in_output_dir(Fingerprints())
    seeds = seeds or seeds_of_table(table)
    for experiment in experiments(table, extra_overrides):
        try:
            finished = find(experiment.cfg, experiment.row.label)
        except (ValueError, OSError):
            finished = {}
        # a search does not score test; such a run is started again for its test score alone
        scored = [seed for seed, each in finished.items() if "test" in each.metrics]
        remaining = [seed for seed in seeds if seed not in scored]
        jobs += [[*experiment.overrides, f"seed={seed}"] for seed in remaining]
        num_finished += len(seeds) - len(remaining)
    return jobs, num_finished


def seeds_of_table(table: Table) -> tuple[int, ...]:
    """The table's seeds; for an analysis, those of the table it analyzes."""
    return (spec.load(table.analysis) if table.analysis else table).seeds


def output_dir(extra_overrides: Sequence[str]) -> Path:
    """The folder of runs that the overrides choose."""
    return Path(compose([item for item in extra_overrides if root(item) == "output_dir"]).output_dir)


def deviations(table: Table, extra_overrides: Sequence[str]) -> list[str]:
    """The overrides that change the rows' experiments, and not only the place or machine they run on.

    Some count even if no identity changes, since this is compared without the content of files: other files of the
    corpus, a path that words are read from, which may be the name of a model on a hub, and a stand-in declared for it.
    A data.folder does not, so that a corpus may lie elsewhere.
    """
    others = [*filter(counts, extra_overrides)]
    if not others:
        return []
    pairs = zip(experiments(table), experiments(table, extra_overrides), strict=True)
    if all(identity_of(own.overrides) == identity_of(other.overrides) for own, other in pairs):
        return [item for item in others if OTHER_FILES.search(key(item))]
    return others


@cache  # each table and page of a report asks for those of the table's own rows
def identity_of(overrides: tuple[str, ...]) -> str:
    """The identity of an experiment without its data."""
    return identity(compose(overrides), "")


def row_settings(name: str, label: str, overrides: Sequence[str]) -> tuple[str, ...]:
    """The overrides that make the runs of a table's row, with further ones."""
    table = spec.load(name)
    (run,) = (row.run for row in table.rows if row.label == label)
    return joined(table.base, run or (), overrides)


def counts(override: str) -> bool:
    """Whether an override belongs to the experiment: not the seed, and not where or how it runs."""
    return root(override) not in NOT_THE_EXPERIMENT
