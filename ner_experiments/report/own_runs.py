"""Runs that stand in no published table: of each folder the experiments on a corpus, as a table's rows."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ner_experiments import run_config, sealed
from ner_experiments.identity import counted, flat
from ner_experiments.report.entries import Entry
from ner_experiments.runs import Run, by_seed, run_of
from ner_experiments.table_scores import Page, Result
from ner_experiments.table_settings import varying
from ner_experiments.tables import Row, Table

log = logging.getLogger(__name__)

NOTE = "No paper prints these rows: where they are compared, it is with the first of them."
Settings = Mapping[str, Any]


class OwnRuns(Entry):
    """A table that no command makes."""

    @property
    def commands(self) -> Sequence[tuple[str, str]]:
        return ()


@dataclass
class Group:
    """The runs of a folder on a corpus, and the settings without it, both by the runs' identity."""

    place: str
    corpus: str
    runs: dict[str, list[Run]] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)


def own_entries(outputs: Path, tables: Sequence[Entry]) -> list[Entry]:
    """Of run folders anywhere in `outputs` those that were scored on test and of which no table is made.

    Those whose metrics or settings cannot be read are left out, and the log says why.
    """
    theirs = {run.folder.resolve() for entry in tables for run in entry.runs}
    groups: dict[str, Group] = {}
    for path in sorted(outputs.rglob(f"*/seed-*/{sealed.METRICS}")):
        if path.parent.resolve() in theirs:
            continue
        try:
            run, settings = run_of(path.parent), counted(run_config.read(path.parent))
        except (ValueError, OSError) as error:
            log.warning("left out of the report: %s", error)
            continue
        if "test" in run.metrics:
            add(groups, run, settings, (outputs.name / path.parents[2].relative_to(outputs)).as_posix())
    return [entry(key, group) for key, group in groups.items()]


def add(groups: dict[str, Group], run: Run, settings: dict[str, Any], place: str) -> None:
    """To the runs on the same sentences, which alone can be compared."""
    data, identity = settings.pop("data"), run.metrics["identity"]
    key = json.dumps([place, data, run.metrics["data"]["checksum"]], sort_keys=True)
    group = groups.setdefault(key, Group(place, data["name"]))
    group.runs.setdefault(identity, []).append(run)
    group.settings[identity] = described(settings)


def described(settings: Settings) -> dict[str, str]:
    """Of each part which one it is, and all settings by their dotted names."""
    kinds = {name: kind(part) for name, part in settings.items() if isinstance(part, Mapping)}
    return kinds | {name: str(value) for name, value in flat(settings)}


def kind(part: Settings) -> str:
    """ResidualBiLSTM; Characters+CharCNN, an input and what reads it; spelling+context, parts of it; none."""
    nodes = (part, part.get("input", {}), part.get("module", {}))
    targets = [node["_target_"].rpartition(".")[2] for node in nodes if "_target_" in node]
    return "+".join(targets or part) or "none"


def entry(key: str, group: Group) -> Entry:
    overrides = apart(list(group.settings.values()))
    labels = [" ".join(items) for items in overrides]
    results = []
    for label, items, runs in zip(labels, overrides, group.runs.values(), strict=True):
        own = label if label and labels.count(label) == 1 else runs[0].label
        scores = {seed: run.score for seed, run in by_seed(runs).items()}
        results.append(Result(Row(label=own, run=tuple(items)), scores, by_seed(runs)))
    results.sort(key=lambda result: natural(result.row.label))
    table = Table(
        name=f"runs_{sha256(key.encode()).hexdigest()[:8]}",
        title=f"Experiments on {group.corpus} in {group.place}",
        source=group.place,
        rows=tuple(result.row for result in results),
        notes=(NOTE,),
    )
    return OwnRuns(Page(table, tuple(results)), (group.place,))


def apart(rows: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """Of each row the settings that all rows have and in which they differ."""
    shared = [name for name in varying(rows) if all(name in row for row in rows) and "_target_" not in name]
    return [[f"{name}={row[name]}" for name in shared] for row in rows]


def natural(label: str) -> list[int | str]:
    """By which 2 stands before 10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", label)]
