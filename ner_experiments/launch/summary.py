"""The table at the end of a sweep: a line per row, seeds taken together, and what failed."""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.launch.worker import reason


def show(jobs: Sequence[JobReturn], console: Console | None = None) -> int:
    """Prints the finished rows and the failed jobs; returns how many failed."""
    console = console or make_console()
    failed = [job for job in jobs if job.status is not JobStatus.COMPLETED]
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for job, label in zip(jobs, labels([overrides(job) for job in jobs]), strict=True):
        if job.status is JobStatus.COMPLETED:
            rows[label].append(job.return_value)
    if rows:
        console.print(f"\n{common(jobs)}", markup=False, highlight=False, soft_wrap=True)
        console.print(results_table(rows))
        for name, runs in rows.items():
            console.print(f"{name}: {', '.join(run['folder'] for run in runs)}", markup=False, soft_wrap=True)
    if failed:
        console.print(f"\n{len(failed)} of {len(jobs)} jobs failed:")
    for job in failed:
        console.print(
            f"  {' '.join(overrides(job))}\n    {reason(job._return_value)}", markup=False, soft_wrap=True
        )
    return len(failed)


def show_run(result: dict[str, Any], console: Console | None = None) -> None:
    """The same for a single run."""
    console = console or make_console()
    console.print(results_table({"": [result]}))
    console.print(result["folder"], markup=False, soft_wrap=True)


def make_console() -> Console:
    """As wide as the terminal; in a file wide enough for long rows."""
    return Console() if sys.stdout.isatty() else Console(width=120)


def results_table(rows: dict[str, list[dict[str, Any]]]) -> Table:
    """One line per row of the sweep; over several seeds the means and, behind ±, the standard deviation.

    "epoch" is the one that dev chose.
    """
    names = sorted({PRIMARY_METRIC[run["task"]][1] for runs in rows.values() for run in runs})
    score = "/".join(names)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("", overflow="fold")
    for heading in ("runs", f"dev {score}", f"test {score}", "epoch", "parameters", "seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, runs in rows.items():
        key = PRIMARY_METRIC[runs[0]["task"]][0]
        table.add_row(
            escape(name),
            str(len(runs)),
            spread([100 * run["dev"][key] for run in runs]),
            spread([100 * run["test"][key] for run in runs]) if "test" in runs[0] else "-",
            f"{statistics.fmean(run['best_epoch'] for run in runs):.0f}",
            f"{runs[0]['parameters']:,}",
            f"{statistics.fmean(run['seconds'] for run in runs):.1f}",
        )
    return table


def spread(values: Sequence[float]) -> str:
    mean = f"{statistics.fmean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.2f}"


def labels(jobs: Sequence[Sequence[str]]) -> list[str]:
    """What sets each job apart from the others, but for the seed."""
    named = [[item for item in job if not is_seed(item)] for job in jobs]
    return [words or "all" for words in apart(named)]


def apart(jobs: Sequence[Sequence[str]]) -> list[str]:
    """Of each job the overrides that not all jobs have."""
    shared = set.intersection(*map(set, jobs))
    return [" ".join(item for item in job if item not in shared) for job in jobs]


def common(jobs: Sequence[JobReturn]) -> str:
    """What all jobs share."""
    first = overrides(jobs[0])
    return " ".join(item for item in first if all(item in overrides(job) for job in jobs))


def overrides(job: JobReturn) -> list[str]:
    return list(job.overrides or ())


def is_seed(item: str) -> bool:
    return item.startswith("seed=")
