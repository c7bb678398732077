"""What happens around training: log.csv and a line of progress per epoch, and predictions kept for files."""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping

from ner_experiments.data.encoder import Batch


class EpochLog(Callback):
    """One row per epoch into log.csv, written as training goes, and one line on stderr if `progress`."""

    def __init__(self, folder: Path, *, title: str, progress: bool) -> None:
        self.path = folder / "log.csv"
        self.title, self.progress = title, progress
        self.rows: list[dict[str, Any]] = []

    def on_train_epoch_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.started = time.perf_counter()
        self.tokens = 0

    def on_train_batch_end(self, trainer: Trainer, module: Any, outputs: Any, batch: Batch, _: int) -> None:
        self.tokens += int(batch.lengths.sum())
        self.trained = time.perf_counter()

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        """Lightning calls this after the epoch's validation."""
        now = time.perf_counter()
        headline = module.metric.headline
        row = {
            "epoch": trainer.current_epoch + 1,
            "train_loss": float(trainer.callback_metrics["train/loss"]),
            **{f"dev_{name}": value for name, value in module.report.items() if name != "types"},
            "learning_rate": trainer.optimizers[0].param_groups[0]["lr"],
            "tokens": self.tokens,
            "train_seconds": self.trained - self.started,
            "seconds": now - self.started,
        }
        self.rows.append(row)
        self._write(row)
        if self.progress:
            self._show(row, headline, trainer.max_epochs)

    @property
    def tokens_per_second(self) -> float:
        """Training only: without validation."""
        return sum(row["tokens"] for row in self.rows) / sum(row["train_seconds"] for row in self.rows)

    def best_epoch(self, headline: str) -> int:
        """Counted from 1; the first of equals, as the checkpoint is."""
        return max(self.rows, key=lambda row: (row[f"dev_{headline}"], -row["epoch"]))["epoch"]

    def _write(self, row: dict[str, Any]) -> None:
        with self.path.open("w" if len(self.rows) == 1 else "a", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(row))
            if len(self.rows) == 1:
                writer.writeheader()
            writer.writerow(row)

    def _show(self, row: dict[str, Any], headline: str, max_epochs: int | None) -> None:
        best = self.best_epoch(headline)
        score, top = row[f"dev_{headline}"], self.rows[best - 1][f"dev_{headline}"]
        name = {"f1": "F1"}.get(headline, headline)
        print(
            f"{self.title} | epoch {row['epoch']:>3}/{max_epochs} | loss {row['train_loss']:8.4f}"
            f" | dev {name} {100 * score:5.2f} (best {100 * top:5.2f} in {best})"
            f" | {row['seconds']:.1f} s, {row['tokens'] / row['train_seconds']:,.0f} tokens/s",
            file=sys.stderr,
            flush=True,
        )


class Patience(EarlyStopping):
    """Stops when dev has not improved for `patience` epochs, counted from the first one that finds anything.

    A tagger's first epochs may find no mention at all, and be well on the way.
    """

    def __init__(self, monitor: str, patience: int) -> None:
        super().__init__(monitor, mode="max", patience=patience, check_on_train_epoch_end=False)

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        if trainer.callback_metrics[self.monitor] > 0:
            super().on_validation_end(trainer, module)


class Predictions(Callback):
    """Keeps the predicted tag ids of the split that is being evaluated, by sentence number."""

    def __init__(self) -> None:
        self.tags: dict[int, list[int]] = {}

    def on_validation_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.tags.clear()

    def on_test_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.tags.clear()

    def on_validation_batch_end(
        self, trainer: Trainer, module: Any, outputs: Any, batch: Batch, number: int, loader: int = 0
    ) -> None:
        rows = zip(batch.sentences.tolist(), batch.lengths.tolist(), outputs.tolist(), strict=True)
        self.tags.update({sentence: tags[:length] for sentence, length, tags in rows})

    def on_test_batch_end(
        self, trainer: Trainer, module: Any, outputs: Any, batch: Batch, number: int, loader: int = 0
    ) -> None:
        self.on_validation_batch_end(trainer, module, outputs, batch, number, loader)
