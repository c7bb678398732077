"""Progress of a run: a line per epoch on stderr, and progress.json in the run's folder, which `watch` reads."""

from __future__ import annotations

import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.runs.progress import HEARTBEAT_SECONDS, PROGRESS_FILE, eta, format_eta, slurm_task
from ner_experiments.training.callbacks import EpochLog
from ner_experiments.utils.files import write_json


class Progress(Callback):
    """Write progress.json and print a line per epoch, on rank 0 only. Training never reads the file."""

    def __init__(self, folder: Path, epochs: EpochLog, *, patience: int, show: bool) -> None:
        self.path, self.epochs, self.patience, self.show = folder / PROGRESS_FILE, epochs, patience, show
        self.title = f"{folder.parent.name} {folder.name}"
        self.primary_metric = ""
        self.written = 0.0

    def on_fit_start(self, trainer: Trainer, module: Any) -> None:
        self.primary_metric = module.metric.primary_metric
        self.write(trainer, "training")

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
        name = dict(PRIMARY_METRIC.values())[self.primary_metric]
        remaining = eta(rows, self.primary_metric, limit, self.patience)
        print(
            f"{self.title} | epoch {row['epoch']:>3}/{limit} | loss {row['train_loss']:8.4f}"
            f" | dev {name} {100 * score:5.2f} (best {100 * top:5.2f} in {best})"
            f" | {row['seconds']:.1f} s, {row['tokens'] / row['train_seconds']:,.0f} tokens/s"
            f" | {format_eta(remaining)}",
            file=sys.stderr,
            flush=True,
        )
