"""Log each epoch: losses, dev scores overall and by type, speed and gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from ner_experiments.data.sentence import PRIMARY_METRIC
from ner_experiments.loggers.base import Logger
from ner_experiments.runs.artifacts import COUNTS, NO_SCORES
from ner_experiments.training.callbacks import EpochLog
from ner_experiments.training.gradients import Gradients


class LogEpochs(Callback):
    """Log each epoch at its end; a resumed run first logs all earlier epochs again.

    A logger that was interrupted together with the run thus gets the whole curve, and a run may resume with another
    logger than it began with.
    """

    def __init__(self, logger: Logger, epochs: EpochLog, gradients: Sequence[Gradients] = ()) -> None:
        self.logger, self.epochs, self.gradients = logger, epochs, gradients
        self.rows: list[dict[str, float]] = []

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = list(state["rows"])

    def on_fit_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Log earlier epochs here, because a run that was interrupted after its last epoch starts no further epoch."""
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
    """Values of the last epoch, from its row of log.csv and the report of `SpanF1.compute` on dev.

    seconds: total time of all epochs so far, including dev.
    """
    row = rows[-1]
    return {
        "train/loss": row["train_loss"],
        "train/learning_rate": row["learning_rate"],
        "train/tokens_per_second": row["tokens"] / row["train_seconds"],
        "seconds": sum(each["seconds"] for each in rows),
        **scores("dev", report),
    }


def scalars_of_log(rows: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """`scalars` of each row of log.csv, which has no scores by type."""
    reports = [
        {name.removeprefix("dev_"): value for name, value in row.items() if name.startswith("dev_")}
        for row in rows
    ]
    return [scalars(rows[: n + 1], report | {"types": {}}) for n, report in enumerate(reports)]


def scores(prefix: str, report: Mapping[str, Any]) -> dict[str, float]:
    """Scores by name: dev/f1, dev/precision, ..., and the primary metric of each type, such as dev_types/PER.

    In percent, as everywhere but in log.csv and metrics.json.
    """
    primary_metric = next(name for name, _ in PRIMARY_METRIC.values() if name in report)
    overall = {name: value for name, value in report.items() if name not in ("types", *COUNTS)}
    by_type = {kind: of_type[primary_metric] for kind, of_type in report["types"].items()}
    return {
        **{f"{prefix}/{name}": percent(name, value) for name, value in overall.items()},
        **{f"{prefix}_types/{kind}": percent(primary_metric, value) for kind, value in by_type.items()},
    }


def percent(name: str, value: float) -> float:
    """A score in percent; a count, such as that of illegal tags, as it is."""
    return float(value) if name in NO_SCORES else 100 * float(value)
