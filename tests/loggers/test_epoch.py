"""Epochs as loggers get them: numbered from 1, and all of them again when a run resumes."""

from types import SimpleNamespace
from typing import Any

from ner_experiments.loggers.base import Logger
from ner_experiments.loggers.epoch import LogEpochs

REPORT = {
    "f1": 0.5,
    "of_ones_own": 0.75,
    "illegal_tags": 3,
    "types": {"PER": {"f1": 0.25, "gold": 4}},
    "gold": 4,
}
ROW = {"train_loss": 2.0, "learning_rate": 0.1, "tokens": 30, "train_seconds": 2.0, "seconds": 3.0}


class Kept(Logger):
    """A logger that keeps what it gets."""

    def __init__(self) -> None:
        self.epochs: list[tuple[int, dict[str, float]]] = []

    def scalars(self, values: Any, epoch: int) -> None:
        self.epochs.append((epoch, dict(values)))


def test_a_resumed_run_logs_its_earlier_epochs_again_under_their_numbers() -> None:
    trainer: Any = SimpleNamespace(current_epoch=0)
    module: Any = SimpleNamespace(report=REPORT, penalty=None)
    epochs: Any = SimpleNamespace(rows=[])
    first, resumed = Kept(), Kept()
    callback = LogEpochs(first, epochs)
    callback.on_fit_start(trainer, module)
    for _ in range(2):
        epochs.rows.append(ROW)
        callback.on_train_epoch_end(trainer, module)
    values = {"train/loss": 2.0, "train/learning_rate": 0.1, "train/tokens_per_second": 15.0}
    values |= {"dev/f1": 50.0, "dev/of_ones_own": 75.0, "dev/illegal_tags": 3.0, "dev_types/PER": 25.0}
    assert first.epochs == [(1, {**values, "seconds": 3.0}), (2, {**values, "seconds": 6.0})]
    again = LogEpochs(resumed, epochs)
    again.load_state_dict(callback.state_dict())
    again.on_fit_start(trainer, module)
    assert resumed.epochs == first.epochs
    epochs.rows.append(ROW)
    again.on_train_epoch_end(trainer, module)
    assert resumed.epochs[2] == (3, {**values, "seconds": 9.0})
