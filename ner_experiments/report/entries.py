"""What a report is made of: each published table with its runs, kept in results/ or in their own folders.

Runs that stand in no published table: of each folder the experiments on a corpus, as a table's rows.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ner_experiments.config import compose
from ner_experiments.config.identity import counted, flat
from ner_experiments.config.overrides import as_value, varying
from ner_experiments.runs import artifacts
from ner_experiments.runs.artifacts import read_config
from ner_experiments.runs.run import ArchivedRun, Run, archived_runs, by_seed, open_run
from ner_experiments.tables import experiments, pages, spec
from ner_experiments.tables.scores import Page, Result, Source, collect, in_output_dir
from ner_experiments.tables.spec import Row, Table

LONGEST = 60
"""Letters of a file's name."""


@dataclass(frozen=True)
class Entry:
    """A table under one choice of settings.

    places: where its runs lie.
    analysed: of an analysis the rows whose runs it is made from.
    overrides: with which its rows were composed.
    """

    page: Page
    places: tuple[str, ...] = ()
    analysed: tuple[Result, ...] = ()
    overrides: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of its files: the table, and in what it deviates from the paper, which may be much."""
        text = "-".join([self.page.table.name, *(plain(item) for item in self.page.deviations)])
        if len(text) <= LONGEST:
            return text
        return f"{self.page.table.name}-{sha256(' '.join(self.page.deviations).encode()).hexdigest()[:8]}"

    @property
    def runs(self) -> list[Run]:
        return [run for result in (*self.page.results, *self.analysed) for run in result.runs.values()]

    @property
    def commands(self) -> Sequence[tuple[str, str]]:
        """What makes its runs, each with what it is."""
        seeds = ",".join(map(str, sorted({run.metrics["seed"] for run in self.runs})))
        table = f"table={self.page.table.runs_of}"
        text = " ".join(["python run.py -m", table, *self.page.deviations, f"seeds=[{seeds}]"])
        return (("The command", text),)

    @property
    def to_measure(self) -> list[Result]:
        """The rows for which there is something to run, or to measure on the runs of others."""
        return [it for it in self.page.results if it.row.run is not None or it.row.trial or it.row.measure]

    @property
    def missing(self) -> int:
        return sum(result.measured is None for result in self.to_measure)

    @property
    def off(self) -> int:
        """Rows whose published number is not where further runs of ours would be expected."""
        return sum(bool(it.against and it.against.inside is False) for it in self.page.results)

    @property
    def sealed(self) -> bool:
        """Whether some runs are kept ones, which have no sentences and no weights."""
        return any(isinstance(run, ArchivedRun) for run in self.runs)


def plain(override: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", override).strip("-")


def entries(
    results: Path, outputs: Path | None, names: Sequence[str] = (), overrides: Sequence[str] = ()
) -> list[Entry]:
    """All tables in the order of the papers, or those named; a table's own settings before others.

    `overrides` are those with which runs under `outputs` were made. ValueError or OSError as `pages.read`.
    """
    chosen = [spec.load(name) for name in names or spec.names()]
    folders = pages.archive_folders(results) if results.is_dir() else []
    found = []
    for table in chosen:
        own = [folder for folder in folders if pages.read_table(folder)[0].name == table.runs_of]
        made = [from_results(table, folder, results) for folder in own]
        made += from_outputs(table, outputs, overrides) if outputs else []
        found += settle(table, made)
    return found


def from_results(table: Table, folder: Path, results: Path) -> Entry:
    place = (results.name / folder.relative_to(results)).as_posix()
    if table.command:
        return Entry(pages.read(folder), (place,))
    _, overrides = pages.read_table(folder)
    return of_source(table, overrides, pages.source_of(list(archived_runs(folder / pages.RUNS))), place)


def of_source(table: Table, overrides: Sequence[str], source: Source, place: str) -> Entry:
    """The table's page, and of an analysis the rows that it analyses."""
    page = collect(table, overrides, source)
    analysed = collect(spec.load(table.analysis), overrides, source).results if table.analysis else ()
    return Entry(page, (place,), analysed, tuple(overrides))


def from_outputs(table: Table, outputs: Path, overrides: Sequence[str]) -> list[Entry]:
    """The table's page of run folders. Its rows are not composed if no run is of a corpus that one names."""
    further = [*overrides, f"output_dir={as_value(str(outputs))}"]
    if table.command:
        page = collect(table, further[-1:])
        return [Entry(page, (f"{outputs.name}/xor",))] if page.trials else []
    if not corpora(table, overrides) & {path.name.partition("-")[0] for path in outputs.glob("*-*")}:
        return []
    return [of_source(table, further, in_output_dir(), outputs.name)]


def corpora(table: Table, overrides: Sequence[str]) -> set[str]:
    """The names of the corpora that rows are run on."""
    analysed = spec.load(table.runs_of)
    rows = [experiments.joined(analysed.base, row.run or (), overrides) for row in analysed.rows]
    choices = {item.partition("=")[2] for row in rows for item in row if item.startswith("data=")}
    files = [compose.CONF / "data" / f"{choice}.yaml" for choice in choices]
    texts = [path.read_text(encoding="utf-8") for path in files if path.exists()]
    return {found for text in texts for found in re.findall(r"^name: (\S+)", text, re.MULTILINE)}


def settle(table: Table, made: Iterable[Entry]) -> list[Entry]:
    """One entry for each choice of settings, the paper's first; that one also where nothing was measured."""
    of_settings: dict[tuple[str, ...], Entry] = {(): Entry(Page(table, unmeasured(table)))}
    for entry in made:
        key = tuple(sorted(entry.page.deviations))
        of_settings[key] = merged(of_settings[key], entry) if key in of_settings else entry
    return [entry for key, entry in of_settings.items() if not key or known(entry)]


def unmeasured(table: Table) -> tuple[Result, ...]:
    return tuple(Result(row) for row in table.rows)


def measured(entry: Entry) -> bool:
    return bool(entry.runs) or any(result.scores for result in entry.page.results)


def known(entry: Entry) -> bool:
    """Whether there are runs of it, though they may not count."""
    return measured(entry) or any(result.missing for result in entry.page.results)


def merged(first: Entry, second: Entry) -> Entry:
    """Row by row the runs of both; a run's own folder takes the place of what is kept of it.

    An analysis is made again from these. What a command measured is of one place: the second.
    """
    if not measured(first):
        return second if known(second) else first
    if not measured(second):
        return first
    table = first.page.table
    if table.command:
        return second
    analysed = tuple(map(both, first.analysed, second.analysed))
    if table.analysis:
        runs = {result.row.label: result.runs for result in analysed}
        results = collect(table, second.overrides, lambda experiment: runs[experiment.row.label]).results
    else:
        results = tuple(map(both, first.page.results, second.page.results))
    page = Page(table, results, first.page.deviations)
    places = tuple(dict.fromkeys([*first.places, *second.places]))
    return Entry(page, places, analysed, second.overrides)


def both(first: Result, second: Result) -> Result:
    """Runs of other files are not mixed: then those of the second alone."""
    if not first.scores:
        return second if second.scores or second.missing else first
    if len({run.metrics["checksum"] for run in (*first.runs.values(), *second.runs.values())}) > 1:
        return second
    scores = dict(sorted({**first.scores, **second.scores}.items()))
    runs = dict(sorted({**first.runs, **second.runs}.items()))
    return Result(second.row, scores, runs, second.comparable)


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
    for path in sorted(outputs.rglob(f"*/seed-*/{artifacts.METRICS}")):
        if path.parent.resolve() in theirs:
            continue
        try:
            run, settings = open_run(path.parent), counted(read_config(path.parent))
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
