"""Provenance of a table's numbers: the command, machines, code and data, and the cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ner_experiments.config.row_settings import as_override, run_command
from ner_experiments.runs.code import Code, conflicts
from ner_experiments.runs.run import Run
from ner_experiments.tables.scores import Page
from ner_experiments.xor.results import FILE, XorResults


@dataclass(frozen=True)
class Origin:
    """The command that makes the runs, and sentences on them, each with notes."""

    command: str
    points: Sequence[tuple[str, Sequence[str]]]


def origin(page: Page, runs: Sequence[Run]) -> Origin | None:
    """The provenance of the runs that a page is made from; None without runs and trials."""
    if page.trials:
        return Origin(page.table.command, [(point, ()) for point in of_trials(page.trials)])
    if not runs:
        return None
    versions = comma_separated(
        f"torch {run.metrics['versions']['torch']}" for run in runs if "versions" in run.metrics
    )
    made = f"{len(runs)} runs, {hours(runs):.1f} hours of training in all, on {devices(runs)}; {versions}."
    checksums = comma_separated(run.metrics["code"][:12] for run in runs)
    code = f"Code: checksum {checksums}, commit {comma_separated(short_commit(run.metrics) for run in runs)}."
    data = sorted({of_data(run.metrics["data"]) for run in runs})
    return Origin(command(page, runs), [(made, ()), (code, ()), *data])


def command(page: Page, runs: Iterable[Run]) -> str:
    """The command that makes the runs of a page."""
    if page.table.is_sweep:
        settings: Sequence[str] = page.table.overrides
    else:
        seeds = as_override("seeds", sorted({run.metrics["seed"] for run in runs}))
        settings = [f"table={page.table.runs_of}", *page.deviations, seeds]
    return run_command(*settings)


def of_trials(trials: XorResults) -> list[str]:
    """Cost of the trials, and the code that ran them."""
    content = trials.content
    number = f"{trials.num_trainings} trainings and {trials.num_measurements} measurements at random weights"
    time = f"{60 * trials.hours:.1f} minutes by {content['processes']} processes"
    return [
        f"{number}, in {time}, on {device(content)}; torch {content['versions']['torch']}.",
        f"Code: checksum {content['code'][:12]}, commit {short_commit(content)}.",
        f"Data: phrases, listed in {FILE} with all other settings; no files are read.",
    ]


def of_data(data: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Name and checksum of a corpus, and notes on it. Some archived runs have no leakage counts."""
    counts = [f"{count:,} {name.replace('_', ' ')}" for name, count in data.get("leakage", {}).items()]
    leakage = [f"sentences that also occur in another split: {', '.join(counts)}"] if counts else []
    return f"Data: {data['name']}, checksum `{data['checksum']}`.", (*data["notes"], *leakage)


def short_commit(metrics: Mapping[str, Any]) -> str:
    """The commit, with "+" if the source was changed after it; "unknown" for runs outside a checkout."""
    commit = metrics["commit"] or "unknown"
    return commit[:12] + ("+" if commit.endswith("+") else "")


def devices(runs: Iterable[Run]) -> str:
    return comma_separated(device(run.metrics) for run in runs)


def device(metrics: Mapping[str, Any]) -> str:
    threads = metrics["threads"]
    return f"{metrics['device']} ({threads} {'thread' if threads == 1 else 'threads'})"


def cost(runs: Sequence[Run], trials: XorResults | None) -> tuple[int, float]:
    """The number of trainings, and their hours."""
    return (trials.num_trainings, trials.hours) if trials else (len(runs), hours(runs))


def hours(runs: Iterable[Run]) -> float:
    return sum(run.metrics["seconds"] for run in runs) / 3600


def comma_separated(names: Iterable[str]) -> str:
    """The different names in alphabetical order."""
    return ", ".join(sorted({*names}))


def remarks_on_code(page: Page) -> list[str]:
    """A remark for each row that mixes code, and one for rows of which some are by other code than others.

    A difference between them may be one of the code.
    """
    texts, rows = [], [result for result in page.results if result.runs]
    for result in rows:
        runs = [*result.runs.values()]
        recorded = codes(runs)
        if files := conflicts(recorded):
            texts.append(f'"{result.row.label}" mixes runs of different code: {files}.')
        if recorded and (others := [run for run in runs if run.code() is None]):
            known = f"{len(others)} of which only the commit is known"
            texts.append(f'"{result.row.label}" mixes runs whose code was recorded with {known}.')
    if not texts and (files := conflicts(codes(page.runs))):
        texts.append(f"Rows are by different code, from which a difference between them may come: {files}.")
    return texts


def codes(runs: Iterable[Run]) -> list[Code]:
    """The different recorded codes of runs."""
    distinct = {run.metrics.get("code"): run for run in runs}
    return [code for run in distinct.values() if (code := run.code()) is not None]
