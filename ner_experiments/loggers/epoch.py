"""What a logger is given of each epoch: losses, scores on dev overall and by type, speed, gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.loggers.base import Logger
from ner_experiments.training.callbacks import EpochLog
from ner_experiments.training.gradients import Gradients

COUNTS = ("correct", "predicted", "gold")


class LogEpochs(Callback):
    """Gives the logger each epoch when it is over; of a run that goes on, first all those before, once more.

    So a logger that was cut off together with the run has the whole curve again. Whatever logger a run began
    with, it may go on with another.
    """

    def __init__(self, logger: Logger, epochs: EpochLog, gradients: Sequence[Gradients] = ()) -> None:
        self.logger, self.epochs, self.gradients = logger, epochs, gradients
        self.rows: list[dict[str, float]] = []

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = list(state["rows"])

    def on_fit_start(self, trainer: Trainer, module: LightningModule) -> None:
        """A run whose last epoch was over when it was cut off begins none."""
        for epoch, row in enumerate(self.rows, start=1):
            self.logger.scalars(row, epoch)

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        row = scalars(self.epochs.rows, module.report)
        if module.penalty is not None:
            row["train/penalty"] = float(self.epochs.penalty) / self.epochs.sentences
        for each in self.gradients:
            row |= each.scalars(trainer.current_epoch + 1)
        self.rows.append(row)
        self.logger.scalars(row, len(self.rows))


def scalars(rows: Sequence[Mapping[str, float]], report: Mapping[str, Any]) -> dict[str, float]:
    """Of the last epoch: its row of log.csv and the report of dev, as `SpanF1.compute` makes it.

    seconds: of all epochs so far, dev included.
    """
    row = rows[-1]
    return {
        "train/loss": row["train_loss"],
        "train/learning_rate": row["learning_rate"],
        "train/tokens_per_second": row["tokens"] / row["train_seconds"],
        "seconds": sum(each["seconds"] for each in rows),
        **scores("dev", report),
    }


def scores(prefix: str, report: Mapping[str, Any]) -> dict[str, float]:
    """dev/f1, dev/precision, ..., and of each type of mention, or tag, its own: dev_types/PER."""
    primary_metric = next(name for name, _ in PRIMARY_METRIC.values() if name in report)
    overall = {name: value for name, value in report.items() if name not in ("types", *COUNTS)}
    by_type = {kind: of_type[primary_metric] for kind, of_type in report["types"].items()}
    return {
        **{f"{prefix}/{name}": float(value) for name, value in overall.items()},
        **{f"{prefix}_types/{kind}": float(value) for kind, value in by_type.items()},
    }
