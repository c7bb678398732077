"""progress.json of a running experiment: ETA, heartbeat interval, SLURM task, and how they are printed."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

PROGRESS_FILE = "progress.json"
CHECKPOINT = "last.ckpt"
HEARTBEAT_SECONDS = 10.0
"""Seconds between updates of progress.json within an epoch."""
SEPARATOR, EPOCH = " | ", "epoch "
"""The separator of the parts of a line per epoch, and the word before the number of the epoch."""
SLURM_TASK = ("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID")


def eta(
    rows: Sequence[Mapping[str, Any]], primary_metric: str, limit: int, patience: int
) -> tuple[float, float] | None:
    """Seconds of training left, at least (if dev no longer improves) and at most; None until an epoch has ended.

    Estimated from the median epoch so far. Patience counts from the first epoch with a score above 0.
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
    """ETA as text: 0:40 to 2:15 left."""
    if seconds is None:
        return "-"
    return f"{format_range(seconds)} left" if seconds[1] else "training is over"


def format_range(seconds: Sequence[float]) -> str:
    """Range of durations as text: 0:40 to 2:15, or a single one if both are equal."""
    least, most = map(format_duration, seconds)
    return most if least == most else f"{least} to {most}"


def format_duration(seconds: float) -> str:
    """Duration as text: 2:15, or 1:02:15."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def row_and_seed(row: str, seed: int | str) -> str:
    """The name of a run in lines of progress: `layers=3 seed=2`, or its seed alone where nothing else varies."""
    return f"{row} seed={seed}" if row not in ("", "all") else f"seed={seed}"


def slurm_task(environment: Mapping[str, str]) -> str:
    """SLURM id: 12_3 for an array task, 12 for a single job, "" outside SLURM."""
    array = [environment.get(name, "") for name in SLURM_TASK]
    return "_".join(array) if all(array) else environment.get("SLURM_JOB_ID", "")
