"""Callbacks around the training steps: log.csv, loss checks, random seeds, learning rates, predictions, test scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from ner_experiments.build import with_probabilities
from ner_experiments.data.encoder import Batch, Encoder
from ner_experiments.runs.artifacts import LOG, TEST_LOG
from ner_experiments.training.checkpoints import BestWeights
from ner_experiments.training.schedule import Schedule
from ner_experiments.utils import clock
from ner_experiments.utils.files import write_csv


class EpochLog(Callback):
    """One row per epoch in log.csv, rewritten after every epoch.

    With several processes rank 0 writes it, and `train_loss` is the loss on the share of the batches of rank 0.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOG
        self.rows: list[dict[str, Any]] = []
        self.loss: torch.Tensor | float = 0.0
        self.penalty: torch.Tensor | float = 0.0
        self.sentences = 0
        self.before = {"seconds": 0.0, "train_seconds": 0.0}

    def state_dict(self) -> dict[str, Any]:
        spent = {"seconds": clock.now() - self.started, "train_seconds": self.trained - self.started}
        return {
            "rows": self.rows,
            "loss": float(self.loss),
            "penalty": float(self.penalty),
            "sentences": self.sentences,
            "before": {name: self.before[name] + spent[name] for name in spent},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows, self.before = list(state["rows"]), state["before"]
        self.loss, self.penalty, self.sentences = state["loss"], state["penalty"], state["sentences"]

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Start the clock. A resumed epoch does not fire `on_train_epoch_start`."""
        self.started = self.trained = clock.now()

    def on_train_epoch_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.started = self.trained = clock.now()
        self.before = dict.fromkeys(self.before, 0.0)
        self.loss, self.penalty, self.sentences = 0.0, 0.0, 0

    def on_train_batch_end(
        self, trainer: Trainer, module: Any, outputs: Any, batch: Batch, number: int
    ) -> None:
        self.loss = self.loss + outputs["loss"].double() * len(batch.sentences)
        if "penalty" in outputs:
            self.penalty = self.penalty + outputs["penalty"].double() * len(batch.sentences)
        self.sentences += len(batch.sentences)
        self.trained = clock.now()

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        """Add the epoch's row. Lightning calls this after the epoch's validation."""
        row = {
            "epoch": trainer.current_epoch + 1,
            "train_loss": float(self.loss) / self.sentences,
            **{f"dev_{name}": value for name, value in module.report.items() if name != "types"},
            "learning_rate": parameter_groups(trainer)[0]["lr"],
            "tokens": trainer.train_dataloader.tokens,
            "train_seconds": self.before["train_seconds"] + self.trained - self.started,
            "seconds": self.before["seconds"] + clock.now() - self.started,
        }
        self.rows.append(row)
        if trainer.is_global_zero:
            self._write()

    @property
    def tokens_per_second(self) -> float:
        """Training speed over all epochs, without validation."""
        return sum(row["tokens"] for row in self.rows) / sum(row["train_seconds"] for row in self.rows)

    def best_epoch(self, primary_metric: str) -> int:
        """1-based epoch with the highest dev score; the first one if several tie, as in `BestWeights`."""
        return max(self.rows, key=lambda row: (row[f"dev_{primary_metric}"], -row["epoch"]))["epoch"]

    def on_fit_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Write once more: a file written before a crash may not have reached the disk."""
        if trainer.is_global_zero:
            self._write()

    def _write(self) -> None:
        write_csv(self.path, list(self.rows[0]), self.rows)


class FiniteLoss(Callback):
    """Stop a run whose loss is NaN or infinite, before a checkpoint or a score is made from it.

    The losses are checked every `steps` steps, because each check waits for the device.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.unchecked: list[tuple[str, torch.Tensor, np.ndarray]] = []

    def on_train_batch_start(self, trainer: Trainer, module: Any, batch: Batch, number: int) -> None:
        self.batch = batch

    def on_before_backward(self, trainer: Trainer, module: Any, loss: torch.Tensor) -> None:
        place = f"epoch {trainer.current_epoch + 1}, step {trainer.global_step + 1}"
        self.unchecked.append((place, loss.detach(), self.batch.sentences))
        if len(self.unchecked) >= self.steps:
            self.check()

    def on_validation_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.check()

    def on_save_checkpoint(self, trainer: Trainer, module: LightningModule, checkpoint: Any) -> None:
        self.check()

    def check(self) -> None:
        """Raise ValueError for the first loss that is not finite, with its sentences' 1-based numbers in train."""
        losses, self.unchecked = self.unchecked, []
        if losses and not torch.stack([loss for _, loss, _ in losses]).isfinite().all():
            place, loss, sentences = next(item for item in losses if not item[1].isfinite())
            numbers = ", ".join(str(number) for number in sorted((sentences + 1).tolist()))
            raise ValueError(f"the loss is {loss.item()} in {place}, on sentences {numbers} of train")


class StepSeeds(Callback):
    """Seed every step from the run's seed, the rank of the process and the number of the step alone.

    A resumed run draws the random numbers that it would have drawn without the interruption, and no two processes of
    a run drop out the same units.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(self, trainer: Trainer, module: Any, batch: Batch, number: int) -> None:
        mixed = np.random.SeedSequence((self.seed, trainer.global_rank, trainer.global_step))
        seed = int(mixed.generate_state(1, np.uint64)[0])
        if module.device.type == "cpu":
            torch.default_generator.manual_seed(seed)  # torch.manual_seed takes 0.1 ms to look for GPUs
        else:
            torch.manual_seed(seed)


class LearningRate(Callback):
    """Set the learning rate of every step by a schedule, as a factor of the optimizer's own rate.

    The share of training that is done counts by epochs, since epochs may differ in their number of batches. It follows
    from the step's place alone, so that a resumed run has the rates that it would have had without the interruption.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Keep the optimizer's own rates; those of a resumed run are in the optimizer's state."""
        for group in parameter_groups(trainer):
            group.setdefault("initial_lr", group["lr"])

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Batch, number: int) -> None:
        done = (trainer.current_epoch + number / trainer.num_training_batches) / trainer.max_epochs
        for group in parameter_groups(trainer):
            group["lr"] = group["initial_lr"] * self.schedule(done)


def parameter_groups(trainer: Trainer) -> list[dict[str, Any]]:
    """The groups of parameters of the only optimizer."""
    (optimizer,) = trainer.optimizers
    return optimizer.param_groups


class Predictions(Callback):
    """Ids of the predicted tags of the split evaluated last; on test, the probabilities of the mentions too.

    The ids of dev in the best epoch are held in main memory, with the report of the metric, so that the selected
    weights are not evaluated on dev again. A run that was resumed after its best epoch has none.
    """

    def __init__(self, encoder: Encoder, best: BestWeights | None = None) -> None:
        self.encoder = encoder
        self.best = best
        self.by_sentence: dict[int, tuple[list[int], list[float]]] = {}
        self.on_dev: tuple[dict[int, tuple[list[int], list[float]]], dict[str, Any]] | None = None

    def on_train_epoch_end(self, trainer: Trainer, module: Any) -> None:
        """Keep the predictions and the report of dev if `best`, which was called before, chose this epoch."""
        if self.best is not None and self.best.epoch == trainer.current_epoch + 1:
            self.on_dev = dict(self.by_sentence), module.report

    def restore_dev(self, module: Any) -> bool:
        """Restore what an evaluation of the best weights on dev would find; return whether it is known."""
        if self.on_dev is None:
            return False
        self.by_sentence, module.report = self.on_dev
        return True

    def gather(self, trainer: Trainer) -> list[tuple[list[int], list[float]]]:
        """Ids and probabilities of each sentence, from all processes; every process must call this."""
        shares: list[Any] = [self.by_sentence]
        if trainer.world_size > 1:
            shares = [None] * trainer.world_size
            torch.distributed.all_gather_object(shares, self.by_sentence)
        return [found for _, found in sorted(item for share in shares for item in share.items())]

    def on_validation_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.by_sentence.clear()

    def on_test_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.by_sentence.clear()

    def on_validation_batch_end(
        self, trainer: Trainer, module: Any, outputs: Any, batch: Batch, number: int, loader: int = 0
    ) -> None:
        rows = zip(batch.sentences.tolist(), batch.lengths.tolist(), outputs["ids"].tolist(), strict=True)
        for sentence, length, ids in rows:
            self.by_sentence[sentence] = ids[:length], []

    def on_test_batch_end(
        self, trainer: Trainer, module: Any, outputs: Any, batch: Batch, number: int, loader: int = 0
    ) -> None:
        self.on_validation_batch_end(trainer, module, outputs, batch, number, loader)
        found = with_probabilities(module.decoder, self.encoder, batch, **outputs)
        for sentence, (_, _, probabilities) in zip(batch.sentences.tolist(), found, strict=True):
            self.by_sentence[sentence][1].extend(probabilities)


class TestEveryEpoch(Callback):
    """Write the test score of every epoch to test_every_epoch.csv, which nothing reads during training.

    The file shows the gain of an oracle epoch, selected on test. It lacks the epochs before an interruption after which
    the setting was turned on. The weights, the selected epoch and the scores are those of a run without this callback.
    """

    __test__ = False  # not a test case of pytest

    def __init__(self, folder: Path) -> None:
        self.path = folder / TEST_LOG
        self.rows: list[dict[str, float]] = []

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = list(state["rows"])

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        primary_metric = module.metric.primary_metric
        score = self.evaluate(trainer, module)[primary_metric]
        self.rows.append({"epoch": trainer.current_epoch + 1, f"test_{primary_metric}": score})
        if trainer.is_global_zero:
            write_csv(self.path, list(self.rows[0]), self.rows)

    @staticmethod
    def evaluate(trainer: Any, module: Any) -> dict[str, Any]:
        """Metrics on test. Restores the training mode of every module.

        Lightning runs one loop at a time, so `trainer.test` would end `trainer.fit`. As a second dataloader of
        validation, test would add to the seconds of the epoch.
        """
        training = {part: part.training for part in module.modules()}
        module.eval()
        module.start_evaluation()
        with torch.no_grad(), trainer.precision_plugin.forward_context():
            for batch in trainer.datamodule.test_dataloader():
                module.evaluate_batch(batch)
        for part, mode in training.items():
            part.training = mode
        return module.finish_evaluation()
