"""Registering a sweep before its first run; `sweep_registration` reads what was registered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path

from ner_experiments.config.identity import identity
from ner_experiments.config.plain_yaml import to_yaml
from ner_experiments.experiment_data import Fingerprints
from ner_experiments.runs.artifacts import CONFIG
from ner_experiments.runs.code import code_of
from ner_experiments.runs.code import digest as code_digest
from ner_experiments.runs.status import planned_run, sweep_statuses
from ner_experiments.tables.experiments import Experiment, counts, deviations, experiments
from ner_experiments.tables.significance import ALPHA
from ner_experiments.tables.spec import Table
from ner_experiments.tables.sweep_registration import (
    TEST,
    Analysis,
    Primary,
    RegisteredRow,
    Registration,
    file_of,
    new_seeds,
    read,
    way_out,
)
from ner_experiments.utils.checks import keys
from ner_experiments.utils.files import atomic_write
from ner_experiments.utils.locks import hold_lock
from ner_experiments.utils.text import did_you_mean, listed

FEWEST_SEEDS = 2
"""The fewest with which Welch's test has a variance; a claim of a paper needs `registration.FEWEST_SEEDS`."""


def place(table: Table, extra_overrides: Sequence[str], output: Path) -> Path:
    """The file of a sweep's registration; a table has one for each choice of settings that are not its own."""
    return file_of(table.name, deviations(table, extra_overrides), output)


def register(
    table: Table, extra_overrides: Sequence[str], seeds: Sequence[int], primary: str, output: Path
) -> Registration:
    """Write the registration of a sweep, or return the one written before if it says the same.

    Raises ValueError for what cannot be registered: too few rows or seeds, no primary comparison, runs that were begun
    before, and anything else than was registered.
    """
    if table.analysis:
        raise ValueError(f"sweep.register: {table.name} has no runs; register table={table.analysis}")
    if table.looks:
        rule = f"a registration has a fixed number of seeds, and {table.name} has sweep.looks"
        raise ValueError(f"sweep.register: {rule}; choose one of them")
    if len(seeds) < FEWEST_SEEDS:
        raise ValueError(
            f"sweep.register: a test over seeds takes {FEWEST_SEEDS} of each row or more, got {len(seeds)}"
        )
    rows = experiments(table, extra_overrides)
    a, b = primary_of(table.name, [it.row.label for it in rows], primary)
    fingerprint = Fingerprints()
    asked = Registration(
        registered=datetime.now().astimezone().isoformat(sep=" ", timespec="seconds"),
        name=table.name,
        rows=tuple(
            RegisteredRow(
                label=it.row.label,
                settings=" ".join(filter(counts, it.overrides)),
                identity=identity(it.cfg, fingerprint(it.cfg)),
                code=code_digest(code_of(it.cfg)),
            )
            for it in rows
        ),
        seeds=tuple(sorted(seeds)),
        primary=Primary(a, b),
        analysis=Analysis(TEST, ALPHA, table.smallest_effect),
    )
    path = place(table, extra_overrides, output)
    if not path.exists():
        refuse_begun(table, rows, seeds, output)
    with hold_lock(path.parent, wait=True):
        if not path.exists():
            content = {name: value for name, value in asdict(asked).items() if name in keys(Registration)}
            with atomic_write(path) as part:
                part.write_text(to_yaml(content), encoding="utf-8")
        found = read(path)
        if changed := [name for name, value in asked.fixed.items() if found.fixed[name] != value]:
            raise ValueError(
                f"{path}: its {listed(changed)} cannot change after registering (rows: their settings, data and "
                f"code); {way_out(table, seeds)}"
            )
    return found


def primary_of(name: str, labels: Sequence[str], primary: str) -> tuple[str, str]:
    """The rows of the primary comparison: those that `primary` names as "A - B", or the only two."""
    pairs = {f"{a} - {b}": (a, b) for a in labels for b in labels if a != b}
    if not pairs:
        raise ValueError(f"sweep.register: a registration compares rows, and {name} has only one")
    if primary and primary not in pairs:
        raise ValueError(
            f"sweep.primary={primary}: expected two rows of {name}, such as sweep.primary='{next(iter(pairs))}'"
            f"{did_you_mean(primary, pairs)}"
        )
    if not primary and len(labels) > 2:
        raise ValueError(
            f"sweep.register: {name} has {len(labels)} rows; name the two whose difference is tested, such as "
            f"sweep.primary='{next(iter(pairs))}'"
        )
    return pairs[primary or f"{labels[0]} - {labels[1]}"]


def refuse_begun(table: Table, rows: Sequence[Experiment], seeds: Sequence[int], output: Path) -> None:
    """Raise ValueError if a run was begun, by whatever code: what it has shown may be why it is registered."""
    planned = [
        replace(planned_run(it.row.label, it.cfg), seed=seed, reuse="any") for it in rows for seed in seeds
    ]
    statuses = sweep_statuses(planned, output)
    begun = [it for it in statuses if it.folder and (Path(it.folder) / CONFIG).exists()]
    if begun:
        more = f" and {len(begun) - 1} more" if len(begun) > 1 else ""
        raise ValueError(
            f"sweep.register: {begun[0].folder}{more} of these runs were begun before, so they cannot be registered; "
            f"register new seeds: {new_seeds(table, seeds)}"
        )
