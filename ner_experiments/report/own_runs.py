"""Entries of a report for runs in no table of a paper: each folder and corpus has a table of its own."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ner_experiments.config.compose import compose
from ner_experiments.config.identity import as_numbers, counted
from ner_experiments.config.row_settings import flat, key, varying
from ner_experiments.report.entries import Entry
from ner_experiments.runs import artifacts
from ner_experiments.runs.run import Run, by_seed
from ner_experiments.runs.store import finished_runs, intact
from ner_experiments.tables.experiments import counts
from ner_experiments.tables.origin import Origin
from ner_experiments.tables.scores import Page, Result
from ner_experiments.tables.spec import Row, Table

log = logging.getLogger(__name__)

REPORTED = (
    *artifacts.RECORDED,
    *("seconds", "tokens_per_second", "parameters", "parameters_of"),
    *("peak_memory_bytes", "versions", "threads", "device"),
)
"""Keys of metrics.json that the page of a run needs."""
OWN_RUNS_NOTE = "No published numbers. Comparisons are with the first row."


class OwnRuns(Entry):
    """Runs of no published table, shown as a table of their own."""

    @property
    def is_own(self) -> bool:
        return True

    @property
    def origin(self) -> Origin | None:
        """The provenance of its runs, which no one command has made."""
        made = super().origin
        return made and replace(made, command="")


@dataclass
class Group:
    """The runs in a folder on one test set, and their settings, both by identity and code.

    Settings are all by their dotted names, and the kind of each part by its name.
    first: one of the runs, by which it is known whether another belongs to them.
    """

    place: str
    first: Run
    runs: dict[tuple[str, str], list[Run]] = field(default_factory=dict)
    settings: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)


def own_entries(
    outputs: Path,
    tables: Sequence[Entry],
    reuse: str = "unchanged",
    chosen: Sequence[Path] = (),
    overrides: Sequence[str] = (),
) -> list[Entry]:
    """Entries of all run folders in `outputs`, at any depth, that were scored on test and are in none of the tables.

    chosen: folders of runs, of rows or of folders of rows, to take the runs from instead; ValueError if one has none.
    overrides: settings that the runs must have.
    Damaged runs are left out with a warning, and so are runs whose code has changed since, unless `reuse` is "any".
    """
    if empty := next((it for it in chosen if not any(finished_runs(it, below=True))), None):
        raise ValueError(f"{empty}: no run in it is finished")
    in_tables = {run.folder.resolve() for entry in tables for run in entry.runs}
    others = (
        run
        for folder in chosen or [outputs]
        for run in finished_runs(folder, below=True)
        if "test" in run.metrics and run.folder.resolve() not in in_tables
    )
    asked = asked_settings(overrides)
    groups: list[Group] = []
    for run in intact(others):
        try:
            if lacking := [name for name in REPORTED if name not in run.metrics]:
                path = run.folder / artifacts.METRICS_FILE
                raise ValueError(f"{path}: it lacks {', '.join(lacking)}")
            if run.outdated and reuse != "any":
                raise ValueError(f"{run.folder}: {run.outdated}; runtime.reuse=any shows such runs")
            settings = dict(run.settings())
        except (ValueError, OSError) as error:
            log.warning("left out of the report: %s", error)
            continue
        if asked.items() - dict(flat_texts(settings)).items():
            continue
        rows = run.folder.absolute().parents[1]
        within = rows.is_relative_to(top := outputs.absolute())
        add_to_group(groups, run, settings, str(top.name / rows.relative_to(top)) if within else rows.name)
    return [own_entry(group) for group in groups]


def asked_settings(overrides: Sequence[str]) -> dict[str, str]:
    """The settings that overrides choose, by their dotted names: those that they name, and all that they change."""
    typed = [item for item in overrides if counts(item)]
    if not typed:
        return {}
    default, wanted = (dict(flat_texts(counted(compose(items)))) for items in ((), typed))
    names = [key(item).replace("/", ".") for item in typed]
    return {
        name: value
        for name, value in wanted.items()
        if default.get(name) != value or any(f"{name}.".startswith(f"{it}.") for it in names)
    }


def flat_texts(settings: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Each setting by its dotted name, as text."""
    return ((name, str(value)) for name, value in flat(as_numbers(settings)))


def add_to_group(groups: list[Group], run: Run, settings: dict[str, Any], place: str) -> None:
    """Add a run to the runs on the same test set, the only ones it can be compared with."""
    identity = run.experiment
    fitting = (group for group in groups if group.place == place and group.first.shares_test_set(run))
    if (group := next(fitting, None)) is None:
        groups.append(group := Group(place, run))
    group.runs.setdefault(identity, []).append(run)
    kinds = {name: kind(part) for name, part in settings.items() if isinstance(part, Mapping)}
    group.settings[identity] = kinds | {name: str(value) for name, value in flat(settings)}


def kind(part: Mapping[str, Any]) -> str:
    """Classes of a part, such as ResidualBiLSTM or Characters+CharCNN; without one, its subparts; "none" if empty."""
    nodes = (part, part.get("input", {}), part.get("module", {}))
    targets = [node["_target_"].rpartition(".")[2] for node in nodes if "_target_" in node]
    return "+".join(targets or part) or "none"


def own_entry(group: Group) -> Entry:
    """A group of runs as a table, with rows labeled by the settings in which they differ."""
    settings = list(group.settings.values())
    varied = [name for name in varying(settings) if all(name in row for row in settings)]
    overrides = [[f"{name}={row[name]}" for name in varied if "_target_" not in name] for row in settings]
    labels = [" ".join(items) for items in overrides]
    results = []
    for label, items, runs in zip(labels, overrides, group.runs.values(), strict=True):
        unique_label = label if label and labels.count(label) == 1 else runs[0].label
        scores = {seed: run.score for seed, run in by_seed(runs).items()}
        results.append(Result(Row(label=unique_label, run=tuple(items)), scores, by_seed(runs)))
    results.sort(  # 2 before 10
        key=lambda it: [int(n) if n.isdecimal() else n for n in re.split(r"(\d+)", it.row.label)]
    )
    key = json.dumps([group.place, group.first.settings()["data"], group.first.test_set], sort_keys=True)
    table = Table(
        name=f"runs_{sha256(key.encode()).hexdigest()[:8]}",
        title=f"Experiments on {group.first.metrics['data']['name']} in {group.place}",
        source=group.place,
        rows=tuple(result.row for result in results),
        notes=(OWN_RUNS_NOTE,),
    )
    return OwnRuns(Page(table, tuple(results), places=(group.place,)))
