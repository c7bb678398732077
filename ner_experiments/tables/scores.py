"""The scores of a table's finished runs, row by row, as `tables.collecting` finds them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ner_experiments.analysis import statistics
from ner_experiments.analysis.statistics import AgainstPublished, Summary
from ner_experiments.runs.run import Run
from ner_experiments.tables.spec import Row, Table, named_rows
from ner_experiments.utils.garbage import paused_garbage_collection
from ner_experiments.utils.text import listed
from ner_experiments.xor.results import XorResults


@dataclass(frozen=True)
class Page:
    """A table with all that was measured for it.

    deviations: the overrides that are not the paper's, or not those of the user's own sweep.
    trials: for a table of `ner-experiments xor`, what that command stored, for these rows and others.
    places: the folders of the runs.
    analyzed: for an analysis, the rows whose runs it is made from.
    """

    table: Table
    results: tuple[Result, ...]
    deviations: tuple[str, ...] = ()
    trials: XorResults | None = None
    places: tuple[str, ...] = ()
    analyzed: tuple[Result, ...] = ()

    @property
    def runs(self) -> list[Run]:
        """The runs of all rows, row by row."""
        return [run for result in self.results for run in result.runs.values()]

    @property
    def runs_used(self) -> list[Run]:
        """Its runs and, for an analysis, those that it is made from."""
        return [*self.runs, *(run for result in self.analyzed for run in result.runs.values())]

    @property
    def is_measured(self) -> bool:
        return bool(self.runs_used) or any(result.scores for result in self.results)

    @property
    def has_runs(self) -> bool:
        """Whether it has results, or runs that were not used."""
        return self.is_measured or any(result.missing for result in self.results)

    @property
    def not_counted(self) -> list[str]:
        """`layers=2 and layers=3: runs by other code: ...`: the rows whose runs are not used, for each reason."""
        rows: dict[str, list[str]] = {}
        for result in self.results:
            if result.missing:
                rows.setdefault(result.missing, []).append(result.row.label)
        return [f"{named_rows(labels)}: {reason}" for reason, labels in rows.items()]

    @property
    def deviations_heading(self) -> str:
        return f"Not the {'sweep' if self.table.is_sweep else 'paper'}'s settings"

    @property
    def stand_ins(self) -> list[str]:
        """Each declared stand-in, with the labels of its rows unless all rows that are run have it."""
        rows: dict[str, list[str]] = {}
        for result in self.results:
            for text in result.stand_ins:
                rows.setdefault(text, []).append(result.row.label)
        run = sum(bool(result.reads or result.row.measure) for result in self.results)
        named = {text: ", ".join(f'"{label}"' for label in labels) for text, labels in rows.items()}
        return [text if len(rows[text]) == run else f"{text} ({named[text]})" for text in rows]

    @property
    def needs(self) -> list[str]:
        """Names of the data that rows which were not run would read, and which are not on this machine.

        A sweep names none: whoever started it knows.
        """
        not_run = [it for it in self.results if it.measured is None and not it.missing]
        return [] if self.table.is_sweep else [*dict.fromkeys(name for it in not_run for name in it.lacks)]


@dataclass(frozen=True)
class Result:
    """A row and what was measured for it.

    scores: by seed, on test, in percent; for trials, the number of phrases learned, of four.
    runs: by seed.
    comparable: whether the published number is for the same data.
    missing: why finished runs, if there are any, were not used.
    failed: of a sweep's row with finished runs, how many others failed, and why.
    remark: on which other data the runs are, or why some runs were not used, as a sentence without its end.
    reads: the corpus and the files of the inputs, as `Experiment.reads`; empty if nothing is trained.
    lacks: for a row without runs, what of `reads` is not on this machine.
    stand_ins: as `Experiment.stand_ins`.
    """

    row: Row
    scores: Mapping[int, float] = field(default_factory=dict)
    runs: Mapping[int, Run] = field(default_factory=dict)
    comparable: bool = True
    missing: str = ""
    failed: str = ""
    reads: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    remark: str = ""

    def with_runs(self, runs: Mapping[int, Run]) -> Result:
        """The row with these runs and their scores in place of its own."""
        return replace(self, runs=runs, scores={seed: run.score for seed, run in runs.items()})

    def at(self, seeds: Collection[int]) -> Result:
        """The row with the runs of these seeds alone, as far as there are any."""
        runs = {seed: run for seed, run in self.runs.items() if seed in seeds}
        return replace(self, runs=runs, scores={seed: self.scores[seed] for seed in runs})

    @cached_property
    def measured(self) -> Summary | None:
        """The mean of its scores as it is displayed: of F1 and accuracy, with an interval from 0 to 100 at most."""
        if not self.scores:
            return None
        found = statistics.summarize(self.scores.values())
        return found.within(0.0, 100.0) if self.runs else found

    @cached_property
    def counts(self) -> np.ndarray:
        """Counts of its runs, as `runs.predictions.count`, [runs, sentences, counts]. Reads their predictions once."""
        with paused_garbage_collection(keeps=True):
            return np.stack([run.counts() for run in self.runs.values()])

    @property
    def run(self) -> Run:
        """One of its runs, which all read the same data. Requires a run."""
        return next(iter(self.runs.values()))

    @property
    def score_name(self) -> str:
        """`F1` or `accuracy`; without runs, F1."""
        return self.run.score_name if self.runs else "F1"

    @property
    def data(self) -> Mapping[str, Any]:
        """The corpus as recorded in metrics.json. Requires a run."""
        return dict(self.run.metrics["data"])

    @property
    def against(self) -> AgainstPublished | None:
        """Our scores compared with the published number, if there are both and they are for the same data."""
        published, count = self.row.published, self.row.runs or 1
        if not (self.scores and self.comparable and isinstance(published, int | float)):
            return None
        sd = self.row.sd if count > 1 else None
        return statistics.against_published(self.scores.values(), published, sd=sd, runs=count)

    def also(self) -> dict[str, float]:
        """The mean of each further figure that both the paper and our runs have, such as precision."""
        reports = [run.metrics["test"] for run in self.runs.values()]
        names = [name for name in self.row.also if reports and name in reports[0]]
        return {name: 100 * float(np.mean([report[name] for report in reports])) for name in names}

    def oracle_epoch_gain(self) -> float | None:
        """Test score of the best epoch on test minus that of the epoch chosen by dev, in points.

        The mean over the runs that scored test after every epoch; None without such runs.
        """
        every = [(run.score, scores) for run in self.runs.values() if (scores := run.test_every_epoch())]
        gains = [max(chosen, *scores) - chosen for chosen, scores in every]  # the chosen epoch is one of them
        return float(np.mean(gains)) if gains else None

    def cost(self) -> dict[str, float]:
        """Trained parameters, and seconds per epoch on whatever machine it was; empty without trainings."""
        runs = [run.metrics for run in self.runs.values() if "epochs" in run.metrics]
        if not runs:
            return {}
        seconds = sum(run["seconds"] for run in runs) / sum(run["epochs"] for run in runs)
        return {"parameters": runs[0]["parameters"], "seconds_per_epoch": seconds}


def on_test(page: Page, name: str) -> Page:
    """The page by the scores on a further test set, without the runs that were not scored on it.

    ValueError if it has runs and none of them was.
    """
    if page.table.analysis or page.table.command:
        raise ValueError(
            f"{page.table.name}: its rows are no training runs, which further test sets are scored by"
        )
    if page.runs and not any(name in run.extra_tests for run in page.runs):
        known = sorted({it for run in page.runs for it in run.extra_tests})
        found = f"; they were on {', '.join(known)}" if known else ""
        raise ValueError(
            f"{page.table.name}: none of its runs was scored on {name}{found}. Repeat its runs with "
            f"audit.extra_tests={{{name}: FILE}}, which trains nothing again"
        )
    results = []
    for result in page.results:
        runs = {seed: run.on(name) for seed, run in result.runs.items() if name in run.extra_tests}
        scored = result.with_runs(runs)
        results.append(on_other_data(scored, f"it is scored on {name}") if scored.comparable else scored)
    return replace(page, results=tuple(results))


def at_seeds(page: Page, seeds: Callable[[str], Collection[int]], why: str) -> Page:
    """The page with the runs of some seeds of each row alone.

    seeds: those of a row, by its label. why: a remark on a row with other seeds, such as `without {}, not registered`.
    """
    results = []
    for result in page.results:
        kept = result.at(seeds(result.row.label))
        if others := [seed for seed in result.runs if seed not in kept.runs]:
            kept = replace(kept, remark=why.format(named_seeds(others)))
        results.append(kept)
    return replace(page, results=tuple(results))


def named_seeds(seeds: Iterable[int]) -> str:
    """`seed 4`, or `seeds 4 and 5`."""
    names = [*map(str, seeds)]
    return f"seed{'s' * (len(names) > 1)} {listed(names)}"


def on_other_data(result: Result, remark: str) -> Result:
    """The row, which is not compared with the published number; remark: what its data are."""
    return replace(result, comparable=False, remark=f"not compared with the published number, as {remark}")


def groups(results: Sequence[Result]) -> list[list[Result]]:
    """The rows with runs, grouped by the test set they were scored on, as `Run.shares_test_set`."""
    found: list[list[Result]] = []
    for result in results:
        if not result.runs:
            continue
        group = next((it for it in found if it[0].run.shares_test_set(result.run)), None)
        if group is None:
            found.append([result])
        else:
            group.append(result)
    return found


def reference(group: Sequence[Result]) -> Result:
    """The row that the others on its data are compared with: the best published, or the first if none is."""
    numbers = [it.row.published if isinstance(it.row.published, int | float) else 0.0 for it in group]
    return group[numbers.index(max(numbers))]
