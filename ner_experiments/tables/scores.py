"""How much of a test set stands in one sentence, such as a list of names, and what is measured without it.

A tenth of all mentions in one sentence can decide which of two rows is ahead, whatever the seeds say.

The figures of a row's finished runs, seed by seed.

What finished runs make of a published table: scores row by row, and what their differences are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, cast

import numpy as np
from jaxtyping import Int

from ner_experiments import build
from ner_experiments.analysis import archive, statistics
from ner_experiments.analysis.ablation import recalls
from ner_experiments.analysis.randomization import Randomization, randomization_test, score
from ner_experiments.analysis.statistics import AgainstPublished, Difference, Summary
from ner_experiments.build import read_corpus
from ner_experiments.runs import run as runs
from ner_experiments.runs.run import ArchivedRun, Run, format_counts
from ner_experiments.tables.experiments import Experiment, deviations, experiments, output_dir, root
from ner_experiments.tables.spec import CHUNK, Figures, Row, Table
from ner_experiments.xor.results import FILE, Trials, read

SHARE = 0.05
"""Of all that is scored: a sentence that holds more is heavy."""
SENTENCES = 100
"""A test set of fewer has no heavy sentence: there the mean sentence holds much."""


def heaviest(gold: Int[np.ndarray, " sentences"]) -> int | None:
    """Of the sentences that are heavy the one that holds most, by its number, from 1; None if none is."""
    if len(gold) < SENTENCES or gold.max() <= SHARE * gold.sum():
        return None
    return int(gold.argmax()) + 1


def remarks(page: Page) -> list[str]:
    """On each corpus of its runs that has a heavy sentence in test."""
    found = []
    for group in groups(page.results):
        run = next(iter(group[0].runs.values()))
        gold = run.counts()[:, -1]
        if (number := heaviest(gold)) is not None:
            test = f"{run.metrics['data']['name']}'s test, number {number:,}"
            what = "tags" if run.metrics["task"] == "tags" else "mentions"
            found.append(f"One sentence of {test}, has {gold[number - 1]:,} of its {gold.sum():,} {what}.")
    return found


def without(page: Page) -> Page:
    """A page of kept runs, scored on test without its heaviest sentence. ValueError if none is heavy."""
    return replace(page, results=tuple(one_fewer(result) for result in page.results))


def one_fewer(result: Result) -> Result:
    runs = {seed: scored_without(cast(ArchivedRun, run)) for seed, run in result.runs.items()}
    return replace(result, runs=runs, scores={seed: run.score for seed, run in runs.items()})


def scored_without(run: ArchivedRun) -> ArchivedRun:
    """With its counts and score alone; of all else on test nothing, as in a run that was kept without."""
    counts = run.counts()
    if (number := heaviest(counts[:, -1])) is None:
        raise ValueError(f"{run.folder}: no sentence of its test set holds more than {SHARE:.0%} of it")
    counts = np.delete(counts, number - 1, axis=0)
    content = {name: run.content[name] for name in ("label", "config", "epochs")}
    content |= {"counts": format_counts(counts), "test_every_epoch": []}
    return ArchivedRun(run.folder, {**run.metrics, "test": {run.primary_metric: score(counts)}}, content)


def by_seed(figure: str, runs: Mapping[int, Run], source: Any) -> dict[int, Figures]:
    """`source` is the config of the runs' corpus, which may lie elsewhere now than when they were trained.

    Of kept runs there is no figure "chunk". ValueError or OSError if all are kept ones, or if the corpus or a
    run cannot be read.
    """
    if figure == CHUNK:
        trained = {seed: run for seed, run in runs.items() if not isinstance(run, ArchivedRun)}
        if runs and not trained:
            kept = next(iter(runs.values())).folder
            raise ValueError(f"{kept}: parts of a model are measured on its weights, and kept runs have none")
        dev = read_corpus(source).splits["dev"]
        return {seed: recalls(*build.load(run.folder), dev) for seed, run in trained.items()}
    return {seed: {"": archive.f1_by_mention(run, figure)} for seed, run in runs.items()}


Source = Callable[[Experiment], Mapping[int, Run]]
"""Gives the runs of an experiment by seed; ValueError or OSError if they cannot be told."""


@dataclass(frozen=True)
class Result:
    """A row and what was measured for it: scores by seed, and their runs.

    scores: on test, in percent; of trials, the phrases learned of four.
    comparable: whether the published number is of the same data.
    missing: why finished runs, if there are any, were not made use of.
    reads: its corpus and its inputs' files, as `Experiment.reads`; empty where nothing is trained.
    """

    row: Row
    scores: Mapping[int, float] = field(default_factory=dict)
    runs: Mapping[int, Run] = field(default_factory=dict)
    comparable: bool = True
    missing: str = ""
    reads: tuple[str, ...] = ()

    @property
    def measured(self) -> Summary | None:
        return statistics.summarize(self.scores.values()) if self.scores else None

    @property
    def data(self) -> Mapping[str, Any]:
        """The corpus of its runs, as metrics.json has it; of a row with runs."""
        return dict(next(iter(self.runs.values())).metrics["data"])

    @property
    def against(self) -> AgainstPublished | None:
        """Ours and the published number, where there are both and they speak of the same."""
        published, count = self.row.published, self.row.runs or 1
        if not (self.scores and self.comparable and isinstance(published, int | float)):
            return None
        sd = self.row.sd if count > 1 else None
        return statistics.against_published(self.scores.values(), published, sd=sd, runs=count)

    def also(self) -> dict[str, float]:
        """The mean of each further figure that the paper prints and a run has, such as precision."""
        reports = [run.metrics["test"] for run in self.runs.values()]
        names = [name for name in self.row.also if reports and name in reports[0]]
        return {name: 100 * float(np.mean([report[name] for report in reports])) for name in names}

    def price_of_peeking(self) -> float | None:
        """Best epoch on test minus the one that dev chose, in points: the mean over runs that peeked."""
        prices = [max(peeked) - run.score for run in self.runs.values() if (peeked := run.test_every_epoch())]
        return float(np.mean(prices)) if prices else None

    def cost(self) -> dict[str, float]:
        """Trained parameters, and seconds per epoch on whatever machine it was; empty without runs."""
        runs = [run.metrics for run in self.runs.values()]
        if not runs:
            return {}
        seconds = sum(run["seconds"] for run in runs) / sum(run["epochs"] for run in runs)
        return {"parameters": runs[0]["parameters"], "seconds_per_epoch": seconds}


@dataclass(frozen=True)
class Comparison:
    """A row against the reference, on one test set: over seeds, and over seeds and sentences.

    seeds: with how many in each row a difference of this size would be seen four times out of five.
    """

    row: Row
    reference: Row
    over_seeds: Difference
    over_sentences: Randomization
    seeds: int | None


@dataclass(frozen=True)
class Page:
    """A table with all that was measured for it.

    deviations: the overrides that are not the paper's.
    trials: of a table of `ner-experiments xor` what that left, of these rows and others.
    """

    table: Table
    results: tuple[Result, ...]
    deviations: tuple[str, ...] = ()
    trials: Trials | None = None

    @property
    def runs(self) -> list[Run]:
        """Of all rows, row by row."""
        return [run for result in self.results for run in result.runs.values()]

    def needs(self, result: Result) -> list[str]:
        """What a row without runs would read and no row with runs has."""
        at_hand = {name for other in self.results if other.runs for name in other.reads}
        return [name for name in dict.fromkeys(result.reads) if name not in at_hand]

    def comparisons(self) -> list[Comparison]:
        """Each row against the one on its data that the paper has the best number of."""
        found = []
        for group in groups(self.results):
            best = reference(group)
            found += [compare(result, best) for result in group if result is not best]
        return found


def collect(table: Table, further: Sequence[str] = (), source: Source | None = None) -> Page:
    """The table with its runs, by default those in `output_dir`. ValueError as `experiments`."""
    source = source or in_output_dir()
    if table.command:
        return of_trials(table, further)
    other = tuple(deviations(table, further))
    comparable = "data" not in map(root, other)
    of_row = {it.row.label: it for it in experiments(table, further)}
    if table.analysis:
        return Page(table, tuple(of_analysis(table, of_row, source, comparable=comparable)), other)
    results = []
    for row in table.rows:
        experiment = of_row.get(row.label)
        found, missing = finished(experiment, source)
        scores = {seed: run.score for seed, run in found.items()}
        reads = experiment.reads() if experiment else ()
        results.append(Result(row, scores, found, comparable, missing, reads))
    return Page(table, tuple(results), other)


def in_output_dir() -> Source:
    fingerprints = build.Fingerprints()
    return lambda experiment: runs.finished(experiment.cfg, fingerprints)


def finished(experiment: Experiment | None, source: Source) -> tuple[dict[int, Run], str]:
    """Its runs that were scored on test, by seed, or why they cannot be told."""
    if experiment is None:
        return {}, ""
    try:
        found = source(experiment)
    except (ValueError, OSError) as error:
        return {}, str(error)
    return {seed: run for seed, run in found.items() if "test" in run.metrics}, ""


def of_analysis(
    table: Table, of_row: Mapping[str, Experiment], source: Source, *, comparable: bool
) -> list[Result]:
    """What the `measure` of each row finds in the runs of the analysed table, seed by seed."""

    @cache
    def figures(label: str, figure: str) -> Mapping[int, Figures]:
        found, missing = finished(of_row[label], source)
        if missing:
            raise ValueError(missing)
        if not found:
            return {}

        return by_seed(figure, found, of_row[label].cfg.data)

    results = []
    for row in table.rows:
        try:
            scores, missing = row.measure.scores(figures) if row.measure else {}, ""
        except (ValueError, OSError) as error:
            scores, missing = {}, str(error)
        results.append(Result(row, scores, comparable=comparable, missing=missing))
    return results


def of_trials(table: Table, further: Sequence[str]) -> Page:
    """Phrases learned, seed by seed, as `ner-experiments xor` left them in output_dir/xor.

    ValueError as `xor.trials.read`.
    """
    if wrong := [item for item in further if root(item) != "output_dir"]:
        raise ValueError(f"{table.name}: its rows are no training runs and take no overrides: {wrong[0]}")
    path = output_dir(further) / "xor" / FILE
    trials = read(path) if path.exists() else None
    results = []
    for row in table.rows:
        assert row.trial is not None
        right = trials.right(*row.trial) if trials else []
        results.append(Result(row, dict(enumerate(right))))
    return Page(table, tuple(results), trials=trials)


def groups(results: Sequence[Result]) -> list[list[Result]]:
    """Rows with runs, those together that were scored on the same data."""
    found: dict[str, list[Result]] = {}
    for result in results:
        if result.runs:
            found.setdefault(result.data["checksum"], []).append(result)
    return list(found.values())


def reference(group: Sequence[Result]) -> Result:
    """What the others on its data are held against: the best published number, without any the first row."""
    return max(group, key=lambda result: published(result.row))


def published(row: Row) -> float:
    return row.published if isinstance(row.published, int | float) else 0.0


def compare(result: Result, reference: Result) -> Comparison:
    ours, theirs = result.measured, reference.measured
    assert ours is not None
    assert theirs is not None
    gap = ours.mean - theirs.mean
    spread = ours.sd is not None and theirs.sd is not None
    return Comparison(
        row=result.row,
        reference=reference.row,
        over_seeds=statistics.difference(result.scores, reference.scores),
        over_sentences=randomization_test(all_counts(result), all_counts(reference)),
        seeds=statistics.seeds_needed(ours.sd or 0.0, theirs.sd or 0.0, gap) if spread and gap else None,
    )


def all_counts(result: Result) -> np.ndarray:
    """[runs, sentences, counts]"""
    return np.stack([run.counts() for run in result.runs.values()])
