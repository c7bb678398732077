"""The runs of a published table or a sweep: of each row those that were finished, from all sources.

The figures of an analysis and the trials of `ner-experiments xor` are collected here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ner_experiments.analysis import archive
from ner_experiments.config.row_settings import root
from ner_experiments.experiment_data import Fingerprints, read_corpus
from ner_experiments.runs.archived_run import ArchivedRun
from ner_experiments.runs.run import Run
from ner_experiments.runs.status import FAILED, planned_run, sweep_statuses
from ner_experiments.runs.store import FindRuns, in_output_dir
from ner_experiments.tables.experiments import Experiment, deviations, experiments, output_dir
from ner_experiments.tables.scores import Page, Result, on_other_data
from ner_experiments.tables.spec import CHUNK, Figures, Table
from ner_experiments.xor.results import FILE, read


def collect(
    table: Table,
    extra_overrides: Sequence[str] = (),
    *sources: FindRuns,
    deviates: Sequence[str] | None = None,
) -> Page:
    """The table with its runs from all sources, as `find`, by default those in `output_dir`.

    deviates: as `deviations` returns them, if they are known. Raises ValueError as `experiments`.
    """
    sources = sources or (in_output_dir(Fingerprints()),)
    if table.command:
        return collect_trials(table, extra_overrides)
    others = tuple(deviations(table, extra_overrides) if deviates is None else deviates)
    comparable = "data" not in map(root, others)
    by_label = {experiment.row.label: experiment for experiment in experiments(table, extra_overrides)}
    if table.analysis:
        return Page(table, tuple(collect_analysis(table, by_label, sources, comparable=comparable)), others)
    results = []
    for row in table.rows:
        if (experiment := by_label.get(row.label)) is None:
            results.append(Result(row, comparable=comparable))
            continue
        found = find(experiment, sources)
        result = replace(
            found,
            comparable=comparable,
            reads=experiment.reads(),
            lacks=() if found.runs else experiment.lacks(),
            stand_ins=experiment.stand_ins(),
        )
        unofficial = result.data.get("unofficial") if result.runs else None
        if unofficial:
            files = f"the files of {result.data['name']} are not the published ones ({', '.join(unofficial)})"
            result = on_other_data(result, files)
        if table.is_sweep and not result.missing and (reason := failed(experiment, result, table.seeds)):
            result = replace(result, failed=reason) if result.runs else replace(result, missing=reason)
        results.append(result)
    return Page(table, tuple(results), others)


def failed(experiment: Experiment, result: Result, seeds: Sequence[int]) -> str:
    """How many planned runs of a sweep's row failed, and why the first did; empty if none has."""
    planned = planned_run(experiment.row.label, experiment.cfg)
    unfinished = [replace(planned, seed=seed) for seed in seeds if seed not in result.runs]
    statuses = sweep_statuses(unfinished, Path(experiment.cfg.output_dir)) if unfinished else []
    if not (found := [it for it in statuses if it.state == FAILED]):
        return ""
    reason = f"{found[0].folder}: {found[0].reason}"
    return f"{len(found)} of {len(seeds)} runs failed ({reason}); repeat the command of the sweep to retry"


def find(experiment: Experiment, sources: Sequence[FindRuns]) -> Result:
    """The row of an experiment with its scored runs from all sources; of several with one seed, that of the last.

    The runs of a source that read other data than those of the sources before it are left out.
    """
    found = Result(experiment.row)
    for source in sources:
        try:
            runs = source(experiment.cfg, experiment.row.label)
        except (ValueError, OSError) as error:
            found = found if found.runs else replace(found, missing=str(error))
            continue
        scored = {seed: run for seed, run in runs.items() if "test" in run.metrics}
        read, others = ({run.metrics["checksum"] for run in each.values()} for each in (found.runs, scored))
        if found.runs and others - read:
            place = next(iter(scored.values())).folder.parent
            text = f"the runs in {place} read other files than those shown, and are left out"
            found = replace(found, remark=text)
        elif scored:
            merged = dict(sorted({**found.runs, **scored}.items()))
            found = replace(found.with_runs(merged), missing="")
    return found


def collect_analysis(
    table: Table, by_label: Mapping[str, Experiment], sources: Sequence[FindRuns], *, comparable: bool
) -> list[Result]:
    """The `measure` of each row, computed from the runs of the analyzed table, seed by seed."""

    @cache
    def found(label: str) -> Result:
        return find(by_label[label], sources)

    @cache
    def figures(label: str, figure: str) -> Mapping[int, Figures]:
        if found(label).missing:
            raise ValueError(found(label).missing)
        runs = found(label).runs
        return figures_by_seed(figure, runs, by_label[label].cfg.data) if runs else {}

    results = []
    for row in table.rows:
        try:
            scores, missing = row.measure.scores(figures) if row.measure else {}, ""
        except (ValueError, OSError) as error:
            scores, missing = {}, str(error)
        result = Result(row, scores, comparable=comparable, missing=missing)
        if row.measure:
            of = row.measure.of
            result = replace(result, stand_ins=by_label[of].stand_ins(), remark=found(of).remark)
        results.append(result)
    return results


def figures_by_seed(figure: str, runs: Mapping[int, Run], corpus: Any) -> dict[int, Figures]:
    """The figures of runs by seed. `corpus` is its config, whose files may have moved since the training.

    Archived runs have no figure "chunk". Raises ValueError or OSError if all runs are archived ones, or if the corpus
    or a run cannot be read.
    """
    if figure == CHUNK:
        trained = {seed: run for seed, run in runs.items() if not isinstance(run, ArchivedRun)}
        if runs and not trained:
            folder = next(iter(runs.values())).folder
            raise ValueError(
                f"{folder}: parts of a model are measured on its weights, and archived runs have none"
            )
        from ner_experiments.analysis.ablation import recalls  # imports torch and Lightning
        from ner_experiments.build import load

        dev = read_corpus(corpus).splits["dev"]
        return {seed: recalls(*load(run.folder), dev) for seed, run in trained.items()}
    return {seed: {"": archive.f1_by_mention(run, figure)} for seed, run in runs.items()}


def collect_trials(table: Table, extra_overrides: Sequence[str]) -> Page:
    """The phrases learned, seed by seed, as `ner-experiments xor` stored them in output_dir/xor.

    Raises ValueError as `xor.results.read`.
    """
    if refused := [item for item in extra_overrides if root(item) != "output_dir"]:
        raise ValueError(f"{table.name}: its rows are no training runs and take no overrides: {refused[0]}")
    path = output_dir(extra_overrides) / "xor" / FILE
    trials = read(path) if path.exists() else None
    results = []
    for row in table.rows:
        assert row.trial is not None
        learned = trials.num_correct(*row.trial) if trials else []
        results.append(Result(row, dict(enumerate(learned))))
    return Page(table, tuple(results), trials=trials)
