"""The pages of a table: its archived runs and those in run folders, put together by their settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ner_experiments.config import plain_yaml
from ner_experiments.config.choices import as_value
from ner_experiments.config.compose import override_value
from ner_experiments.config.config_dirs import file_of
from ner_experiments.config.row_settings import joined, key, root
from ner_experiments.experiment_data import Fingerprints
from ner_experiments.runs.store import FindRuns, archives, corpora_in, in_output_dir
from ner_experiments.tables import spec
from ner_experiments.tables.collecting import collect
from ner_experiments.tables.experiments import deviations, experiments, output_dir
from ner_experiments.tables.looks import at_looks
from ner_experiments.tables.scores import Page, Result, on_other_data
from ner_experiments.tables.spec import Table


@dataclass(frozen=True)
class Source:
    """Runs of a table in a folder of results/ or of run folders, and the overrides that they were made with.

    place: the folder as pages name it. deviations: the overrides that deviate from the table's own settings; those of a
    table.json all do, so that no rows need be composed to know them.
    """

    table: str
    place: str
    folder: Path
    overrides: tuple[str, ...]
    find: FindRuns
    deviations: tuple[str, ...] = ()


def page(table: Table, overrides: Sequence[str], results: Path) -> Page:
    """The table with its runs in `output_dir` and, if it is a published one, those archived in `results`.

    If no run has exactly the requested settings, those that deviate least in other settings are taken. Raises
    ValueError as `experiments`.
    """
    if table.is_sweep or not results.is_dir():
        return at_looks(collect(table, overrides))
    if not table.command:
        experiments(table, overrides)  # a row that no run can have is refused even where there are no runs
    output = output_dir(overrides)
    own = [item for item in overrides if root(item) != "output_dir"]
    found = pages(table, in_results(results), output if output.is_dir() else None, own)
    asked = sorted(deviations(table, own)) if not table.command else []
    fitting = [it for it in found if it.is_measured and set(asked) <= {*it.deviations}]
    if fitting:
        return min(fitting, key=lambda it: len(it.deviations))
    exact = (it for it in found if sorted(it.deviations) == asked)
    return next(exact, None) or collect(table, overrides)


def pages(
    table: Table, archived: Iterable[Source], outputs: Path | None, overrides: Sequence[str] = ()
) -> list[Page]:
    """A page for each choice of settings with runs, the paper's first, which is included even if unmeasured.

    archived: as `in_results`. outputs: a folder of run folders, whose runs were made with these overrides. A sweep has
    one page, without archived runs. ValueError or OSError for what cannot be read.
    """
    own = in_run_folders(table, outputs, overrides) if outputs else []
    if table.is_sweep:
        return [page_of(table, own)] if own else []
    by_settings: dict[tuple[str, ...], list[Source]] = {(): []}
    for source in (*(it for it in archived if it.table == table.runs_of), *own):
        settings = () if table.command else tuple(sorted(source.deviations))
        by_settings.setdefault(settings, []).append(source)
    papers, *others = (page_of(table, sources) for sources in by_settings.values())
    return [papers if papers.has_runs else unmeasured(table), *(it for it in others if it.has_runs)]


def page_of(table: Table, sources: Sequence[Source]) -> Page:
    """The table with the runs of all sources, which were made with the same settings.

    Results of a command are not put together; those of the last source that has some are taken.
    """
    if table.command:
        for source in reversed(sources):
            found = collect(table, [f"output_dir={as_value(str(source.folder.parent))}"])
            if found.trials:
                return replace(found, places=(source.place,))
        return unmeasured(table)
    if not sources:
        return unmeasured(table)
    overrides, find = sources[-1].overrides, [it.find for it in sources]
    known = sources[0].deviations
    whole = at_looks(collect(table, overrides, *find, deviates=known))
    analyzed: tuple[Result, ...] = ()
    if table.analysis:
        analyzed = collect(spec.load(table.analysis), overrides, *find, deviates=known).results
    whole = replace(
        whole,
        results=on_archived_data(whole.results),
        analyzed=analyzed,
    )
    places = (
        it.place for it in sources if any(run.folder.is_relative_to(it.folder) for run in whole.runs_used)
    )
    return replace(whole, places=tuple(dict.fromkeys(places)))


def unmeasured(table: Table) -> Page:
    return Page(table, tuple(map(Result, table.rows)))


def in_results(results: Path) -> list[Source]:
    """The archived runs of all tables."""
    if not results.is_dir():
        return []
    return [
        Source(
            it.table,
            (results.name / it.folder.relative_to(results)).as_posix(),
            it.folder,
            it.overrides,
            it.finished,
            it.overrides,
        )
        for it in archives(results)
    ]


def in_run_folders(table: Table, outputs: Path, overrides: Sequence[str]) -> list[Source]:
    """The run folders in `outputs`. Without a run on one of its corpora, a table's rows need not even be composed."""
    if table.command:
        return [Source(table.name, f"{outputs.name}/xor", outputs / "xor", (), in_output_dir(Fingerprints()))]
    if not table.is_sweep and not corpora(table, overrides) & corpora_in(outputs):
        return []
    extra = (*overrides, f"output_dir={as_value(str(outputs))}")
    others = tuple(deviations(table, extra))
    return [Source(table.runs_of, outputs.name, outputs, extra, in_output_dir(Fingerprints()), others)]


def corpora(table: Table, overrides: Sequence[str]) -> set[str]:
    """Names of the corpora of a table's runs."""
    run_table = spec.load(table.runs_of)
    rows = [joined(run_table.base, row.run or (), overrides) for row in run_table.rows]
    choices = {item.partition("=")[2] for row in rows for item in row if item.startswith("data=")}
    files = [file_of(f"data/{choice}") for choice in choices]
    named = {str(plain_yaml.load(path).get("name")) for path in files if path.exists()}
    given = [item for row in rows for item in row if key(item) == "data.name"]
    return named | {str(override_value(item)) for item in given}


def on_archived_data(results: Iterable[Result]) -> tuple[Result, ...]:
    """The rows; those of other files of a corpus than the archived runs are not compared with published numbers."""
    every = tuple(results)
    archived: dict[str, set[str]] = {}
    for result in every:
        for run in result.runs.values():
            if run.archived:
                archived.setdefault(result.data["name"], set()).add(run.metrics["data"]["checksum"])

    def is_on_others(result: Result) -> bool:
        if not (archived and result.runs):
            return False
        return result.data["checksum"] not in archived.get(result.data["name"], {result.data["checksum"]})

    text = "its runs read other files of {} than the archived ones of this table"
    return tuple(on_other_data(it, text.format(it.data["name"])) if is_on_others(it) else it for it in every)
