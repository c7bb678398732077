"""Remarks on runs by different code: a difference between them may be one of the code."""

from __future__ import annotations

from collections.abc import Iterable

from ner_experiments.runs.code import Code, conflicts
from ner_experiments.runs.run import Run
from ner_experiments.tables.scores import Page


def remarks(page: Page) -> list[str]:
    """A remark for each row that mixes code, and one for rows of which some are by other code than others."""
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
