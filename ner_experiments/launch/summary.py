"""The table at the end of a sweep: one line per row with its seeds taken together, and the failed jobs."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ner_experiments.config.row_settings import labels, shared
from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.launch.worker import Outcome
from ner_experiments.tables.experiments import counts, experiments
from ner_experiments.tables.short_runs import Rows, hints
from ner_experiments.utils.terminal import draw, make_console
from ner_experiments.view.table import Grid

if TYPE_CHECKING:
    from ner_experiments.tables.scores import Page
    from ner_experiments.tables.spec import Table


def finished_runs(page: Page) -> Rows:
    """The finished runs of a table, those of earlier commands included."""
    return {
        result.row.label: [{**run.metrics, "folder": str(run.folder)} for run in result.runs.values()]
        for result in page.results
        if result.runs
    }


def shared_settings(table: Table, extra_overrides: Sequence[str]) -> list[str]:
    """The settings that all rows of a table have."""
    return [*filter(counts, shared([row.overrides for row in experiments(table, extra_overrides)]))]


def show(
    jobs: Sequence[Outcome],
    finished: Rows | None = None,
    settings: Sequence[str] = (),
    *,
    left_out: str = "",
    with_hints: bool = True,
) -> int:
    """Print the finished rows and the failed jobs; return how many failed.

    finished: all finished runs of the sweep, shown in place of this command's if they include them, below the
        `settings` of all of them. left_out: why they may not. with_hints: if no table follows, whose notes have them.
    """
    console = make_console()
    overrides = [list(job.overrides) for job in jobs]
    rows: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for job, label in zip(jobs, labels(overrides), strict=True):
        if not job.failed:
            rows[label].append(job.result)
    known = {run["folder"] for runs in (finished or {}).values() for run in runs}
    recorded = known and known.issuperset(run["folder"] for runs in rows.values() for run in runs)
    if finished and recorded:
        rows = {label: [*runs] for label, runs in finished.items()}
    if rows:
        own = [item for item in shared(overrides) if counts(item) or item.startswith("seed=")]
        heading = " ".join(settings if recorded else own)
        if finished and not recorded and left_out:
            heading += f" (below: {left_out})"
        console.print(f"\n{heading}", markup=False, highlight=False, soft_wrap=True)
        draw(results_table(rows).with_rules, console)
        for hint in hints(rows) if with_hints else ():
            console.print(hint, markup=False, soft_wrap=not console.is_terminal)
        for name, runs in rows.items() if not recorded else ():
            console.print(f"{name}: {', '.join(run['folder'] for run in runs)}", markup=False, soft_wrap=True)
    if failed := [job for job in jobs if job.failed]:
        console.print(
            f"\n{len(failed)} of {len(jobs)} jobs failed; repeat the command to retry (interrupted runs resume):"
        )
    for job, label in zip(jobs, labels(overrides), strict=True):
        if job.failed:  # named as its lines of progress are
            seed = next((item for item in job.overrides if item.startswith("seed=")), "")
            name = f"{label} {seed}".removeprefix("all ") if len(jobs) > 1 else " ".join(job.overrides)
            console.print(f"  {name.rstrip()}\n    {job.failed}", markup=False, soft_wrap=True)
    return len(failed)


def show_run(result: dict[str, Any]) -> None:
    """Print the table of a single run, and its folder."""
    console = make_console()
    draw(results_table({"": [result]}).with_rules, console)
    for hint in hints({"the run": [result]}):
        console.print(hint, markup=False, soft_wrap=not console.is_terminal)
    console.print(result["folder"], markup=False, soft_wrap=True)


def results_table(rows: Rows) -> Grid:
    """One line per row: the means over its seeds and, behind ±, the standard deviations.

    "epoch" is the one that dev chose.
    """
    score = "/".join(sorted({PRIMARY_METRIC[run["task"]][1] for runs in rows.values() for run in runs}))
    headings = ("", "runs", f"dev {score}", f"test {score}", "epoch", "parameters", "seconds")
    lines = []
    for name, runs in rows.items():
        metric = PRIMARY_METRIC[runs[0]["task"]][0]
        lines.append(
            (
                name,
                str(len(runs)),
                mean_and_deviation([100 * run["dev"][metric] for run in runs]),
                mean_and_deviation([100 * run["test"][metric] for run in runs]) if "test" in runs[0] else "-",
                f"{statistics.fmean(run['best_epoch'] for run in runs):.0f}",
                f"{runs[0]['parameters']:,}",
                f"{statistics.fmean(run['seconds'] for run in runs):.1f}",
            )
        )
    return Grid(headings, lines)


def mean_and_deviation(values: Sequence[float]) -> str:
    mean = f"{statistics.fmean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.2f}"
