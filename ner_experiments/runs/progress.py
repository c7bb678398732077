"""What a run tells of itself while it runs: the names of its files, how much time is left, and where."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

NAME = "progress.json"
CHECKPOINT = "last.ckpt"
HEARTBEAT_SECONDS = 10.0
"""Seconds after which a run within an epoch gives a sign of life."""
SLURM_TASK = ("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID")


def eta(
    rows: Sequence[Mapping[str, Any]], primary_metric: str, limit: int, patience: int
) -> tuple[float, float] | None:
    """Seconds that training will take at least, if dev does not improve any more, and at most.

    By the median epoch so far; None before there is one. Patience begins with the first epoch that finds
    anything, as `DelayedEarlyStopping` has it.
    """
    if not rows:
        return None
    scores = [row[f"dev_{primary_metric}"] for row in rows]
    since = len(rows) - 1 - scores.index(max(scores))
    most = limit - len(rows)
    least = min(most, patience - since if max(scores) > 0 else patience + 1)
    seconds = statistics.median(row["seconds"] for row in rows)
    return max(0, least) * seconds, (most if least > 0 else 0) * seconds


def format_eta(seconds: Sequence[float] | None) -> str:
    """0:40 to 2:15 left."""
    if seconds is None:
        return "-"
    return f"{format_range(seconds)} left" if seconds[1] else "training is over"


def format_range(seconds: Sequence[float]) -> str:
    """0:40 to 2:15, or one of them where they are the same."""
    least, most = map(format_duration, seconds)
    return most if least == most else f"{least} to {most}"


def format_duration(seconds: float) -> str:
    """2:15, or 1:02:15."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def slurm_task(environment: Mapping[str, str]) -> str:
    """12_3 of an array, 12 of a single job, empty elsewhere."""
    array = [environment.get(name, "") for name in SLURM_TASK]
    return "_".join(array) if all(array) else environment.get("SLURM_JOB_ID", "")
