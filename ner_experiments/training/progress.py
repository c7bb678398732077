"""Progress of a run: a line per epoch on stderr, and progress.json in the run's folder, which `watch` reads."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.runs.progress import (
    EPOCH,
    HEARTBEAT_SECONDS,
    PROGRESS_FILE,
    SEPARATOR,
    eta,
    format_eta,
    slurm_task,
)
from ner_experiments.training.callbacks import EpochLog
from ner_experiments.utils.files import write_json

FEW_UPDATES = 1000
"""Number of updates of the weights below which a run whose last epoch is its best is said to be short."""
NOTHING = 0.1
"""Score on dev below which a run is said to be short, whichever epoch is its best: one may be so by luck."""


class Progress(Callback):
    """Write progress.json and print a line per epoch, on rank 0 only. Training never reads the file."""

    def __init__(self, folder: Path, epochs: EpochLog, name: str, *, patience: int, show: bool) -> None:
        self.path, self.epochs, self.patience, self.show = folder / PROGRESS_FILE, epochs, patience, show
        self.name = name
        self.primary_metric = ""
        self.written = 0.0

    def on_fit_start(self, trainer: Trainer, module: Any) -> None:
        self.primary_metric = module.metric.primary_metric
        self.write(trainer, "starting")
        self.written = 0.0  # so that the end of the first batch is written

    def on_train_batch_end(
        self, trainer: Trainer, module: Any, outputs: Any, batch: Any, number: int
    ) -> None:
        if time.monotonic() - self.written >= HEARTBEAT_SECONDS:
            self.write(trainer, "training", (number + 1) / float(trainer.num_training_batches))

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        self.write(trainer, "training")
        if self.show and trainer.is_global_zero:
            self.print(trainer.max_epochs or 0)

    def on_fit_end(self, trainer: Trainer, module: LightningModule) -> None:
        self.write(trainer, "scoring")

    def write(self, trainer: Trainer, stage: str, part: float = 0.0) -> None:
        """Write progress.json. `part` is the finished share of the current epoch."""
        self.written = time.monotonic()
        if not trainer.is_global_zero:
            return
        rows, limit = self.epochs.rows, trainer.max_epochs or 0
        content: dict[str, Any] = {
            **{"stage": stage, "epoch": len(rows), "part": round(part, 4), "max_epochs": limit},
            "trained": sum(row["seconds"] for row in rows),
            "seconds_left": eta(rows, self.primary_metric, limit, self.patience),
            **{"host": platform.node(), "slurm": slurm_task(os.environ)},
        }
        if rows:
            best = self.epochs.best_epoch(self.primary_metric)
            content |= {"dev": rows[-1][f"dev_{self.primary_metric}"], "best_epoch": best}
            content |= {"best": rows[best - 1][f"dev_{self.primary_metric}"]}
        write_json(self.path, content)

    def print(self, limit: int) -> None:
        rows = self.epochs.rows
        row, best = rows[-1], self.epochs.best_epoch(self.primary_metric)
        score, top = row[f"dev_{self.primary_metric}"], rows[best - 1][f"dev_{self.primary_metric}"]
        metric = dict(PRIMARY_METRIC.values())[self.primary_metric]
        remaining = eta(rows, self.primary_metric, limit, self.patience)
        of_best = "best" if best == len(rows) else f"best {100 * top:.2f} in {best}"
        speed = row["tokens"] / row["train_seconds"]
        parts = [
            f"{EPOCH}{row['epoch']:>{len(str(limit))}}/{limit}",
            f"dev {metric} {100 * score:.2f} ({of_best})",
            format_eta(remaining),
            f"loss {row['train_loss']:.4f}",
            f"{row['seconds']:.1f} s",
            f"{speed:,.0f} tokens/s",
        ]
        print(one_line(self.name, parts), file=sys.stderr, flush=True)


def one_line(name: str, parts: Sequence[str], *, needed: int = 2, width: int = 80) -> str:
    """The parts behind the name, as many as fit, at least `needed`. The name is whole: logs are searched for it."""
    while len(line := SEPARATOR.join([name, *parts])) > width and len(parts) > needed:
        parts = parts[:-1]
    return line


def hint_of_few_updates(
    batches: Mapping[str, Any],
    best_epoch: int,
    scores: Sequence[float],
    updates: int,
    *,
    decays: bool,
    score: str,
    sentence: float,
) -> str:
    """A hint for a corpus so small that training ended before it found anything or stopped improving, or "".

    scores: that of dev after each epoch, at most 1. decays: whether the learning rate falls towards the last epoch, so
    that dev is expected to be best there. score: the name of the score. sentence: mean number of tokens of a sentence
    in train, below which no batch is proposed. On 60 sentences of the toy corpus, 30 epochs are 90 updates of the
    weights by default, and dev F1 is 7.1; with 100 epochs it is 44.4, and with batches of 64 tokens 47.2. The hint
    names as many epochs, or as small batches, as `FEW_UPDATES` updates take.
    """
    epochs = len(scores)
    improved_last = best_epoch == epochs and not decays and max(scores) < 1
    if updates >= FEW_UPDATES or not (improved_last or max(scores) < NOTHING):
        return ""
    # to one digit, so that the hints of rows and seeds are one, mostly
    updates = min(round(updates, 1 - len(str(updates))), 9 * FEW_UPDATES // 10)
    size = next((name for name in ("tokens", "sentences") if name in batches), None)
    fewer = batches[size] * updates // FEW_UPDATES if size else 0
    possible = fewer >= (sentence if size == "tokens" else 1)
    smaller = f", or smaller batches, such as batches.{size}={fewer}" if possible else ""
    more = ceil(epochs * FEW_UPDATES / updates)
    return (
        f"only about {updates:,} weight updates, and dev {score} is best at the last epoch or below "
        f"{100 * NOTHING:g} %: set more epochs, such as trainer.max_epochs={more}{smaller}"
    )
