"""Early stopping, by the score on dev."""

from __future__ import annotations

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping


class DelayedEarlyStopping(EarlyStopping):
    """Stop when dev has not improved for `patience` epochs, counted from the first epoch with a score above 0.

    In its first epochs a tagger may predict no mention at all and still make progress.
    """

    def __init__(self, monitor: str, patience: int) -> None:
        super().__init__(monitor, mode="max", patience=patience, check_on_train_epoch_end=False)

    def on_fit_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Stop at once if the run had already stopped early when it was interrupted."""
        if self.wait_count >= self.patience:
            trainer.should_stop = True

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        if self.best_score > 0 or trainer.callback_metrics[self.monitor] > 0:
            super().on_validation_end(trainer, module)
