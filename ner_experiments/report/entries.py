"""What a report is made of: each published table with its runs, kept in results/ or in their own folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ner_experiments import pages, settings, table_runs, tables
from ner_experiments.runs import KeptRun, Run, kept
from ner_experiments.table_command import as_value
from ner_experiments.table_scores import Page, Result, Source, collect, in_output_dir
from ner_experiments.tables import Table

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
        return any(isinstance(run, KeptRun) for run in self.runs)


def plain(override: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", override).strip("-")


def entries(
    results: Path, outputs: Path | None, names: Sequence[str] = (), overrides: Sequence[str] = ()
) -> list[Entry]:
    """All tables in the order of the papers, or those named; a table's own settings before others.

    `overrides` are those with which runs under `outputs` were made. ValueError or OSError as `pages.read`.
    """
    chosen = [tables.load(name) for name in names or tables.names()]
    folders = pages.kept_folders(results) if results.is_dir() else []
    found = []
    for table in chosen:
        own = [folder for folder in folders if pages.about(folder)[0].name == table.runs_of]
        made = [from_results(table, folder, results) for folder in own]
        made += from_outputs(table, outputs, overrides) if outputs else []
        found += settle(table, made)
    return found


def from_results(table: Table, folder: Path, results: Path) -> Entry:
    place = (results.name / folder.relative_to(results)).as_posix()
    if table.command:
        return Entry(pages.read(folder), (place,))
    _, overrides = pages.about(folder)
    return of_source(table, overrides, pages.among(list(kept(folder / pages.RUNS))), place)


def of_source(table: Table, overrides: Sequence[str], source: Source, place: str) -> Entry:
    """The table's page, and of an analysis the rows that it analyses."""
    page = collect(table, overrides, source)
    analysed = collect(tables.load(table.analysis), overrides, source).results if table.analysis else ()
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
    analysed = tables.load(table.runs_of)
    rows = [table_runs.joined(analysed.base, row.run or (), overrides) for row in analysed.rows]
    choices = {item.partition("=")[2] for row in rows for item in row if item.startswith("data=")}
    files = [settings.CONF / "data" / f"{choice}.yaml" for choice in choices]
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
