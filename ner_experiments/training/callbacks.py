"""What happens around training: log.csv, a look at the losses, random numbers, predictions kept, peek.csv."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from ner_experiments.data.encoder import Batch
from ner_experiments.runs.artifacts import LOG, TEST_LOG
from ner_experiments.utils.files import write_csv


class EpochLog(Callback):
    """One row per epoch into log.csv, written as training goes.

    Of several processes the first one writes; `train_loss` is then that of its share of the batches.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOG
        self.rows: list[dict[str, Any]] = []
        self.loss: torch.Tensor | float = 0.0
        self.penalty: torch.Tensor | float = 0.0
        self.sentences = 0
        self.before = {"seconds": 0.0, "train_seconds": 0.0}

    def state_dict(self) -> dict[str, Any]:
        spent = {"seconds": time.perf_counter() - self.started, "train_seconds": self.trained - self.started}
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
        """Of an epoch that goes on there is no other start."""
        self.started = self.trained = time.perf_counter()

    def on_train_epoch_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.started = self.trained = time.perf_counter()
        self.before = dict.fromkeys(self.before, 0.0)
        self.loss, self.penalty, self.sentences = 0.0, 0.0, 0

    def on_train_batch_end(
        self, trainer: Trainer, module: Any, outputs: Any, batch: Batch, number: int
    ) -> None:
        self.loss = self.loss + outputs["loss"].double() * len(batch.lengths)
        if module.penalty is not None:
            self.penalty = self.penalty + module.last_penalty.double() * len(batch.lengths)
        self.sentences += len(batch.lengths)
        self.trained = time.perf_counter()

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        """Lightning calls this after the epoch's validation."""
        row = {
            "epoch": trainer.current_epoch + 1,
            "train_loss": float(self.loss) / self.sentences,
            **{f"dev_{name}": value for name, value in module.report.items() if name != "types"},
            "learning_rate": trainer.optimizers[0].param_groups[0]["lr"],
            "tokens": trainer.train_dataloader.tokens,
            "train_seconds": self.before["train_seconds"] + self.trained - self.started,
            "seconds": self.before["seconds"] + time.perf_counter() - self.started,
        }
        self.rows.append(row)
        if trainer.is_global_zero:
            self._write()

    @property
    def tokens_per_second(self) -> float:
        """Training only: without validation."""
        return sum(row["tokens"] for row in self.rows) / sum(row["train_seconds"] for row in self.rows)

    def best_epoch(self, headline: str) -> int:
        """Counted from 1; the first of equals, as the weights that are kept are."""
        return max(self.rows, key=lambda row: (row[f"dev_{headline}"], -row["epoch"]))["epoch"]

    def on_fit_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Once more: what was written before a break may not have reached the disk."""
        if trainer.is_global_zero:
            self._write()

    def _write(self) -> None:
        write_csv(self.path, list(self.rows[0]), self.rows)


class FiniteLoss(Callback):
    """Stops a run whose loss is no number, or infinite, before a checkpoint or a score is made of that.

    It looks every `steps` steps, as a look waits for the device.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.seen: list[tuple[str, torch.Tensor, torch.Tensor]] = []

    def on_train_batch_start(self, trainer: Trainer, module: Any, batch: Batch, number: int) -> None:
        self.batch = batch

    def on_before_backward(self, trainer: Trainer, module: Any, loss: torch.Tensor) -> None:
        place = f"epoch {trainer.current_epoch + 1}, step {trainer.global_step + 1}"
        self.seen.append((place, loss.detach(), self.batch.sentences))
        if len(self.seen) >= self.steps:
            self.look()

    def on_validation_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.look()

    def on_save_checkpoint(self, trainer: Trainer, module: LightningModule, checkpoint: Any) -> None:
        self.look()

    def look(self) -> None:
        """ValueError, with the sentences by their numbers in train, which count from 1."""
        seen, self.seen = self.seen, []
        if seen and not torch.stack([loss for _, loss, _ in seen]).isfinite().all():
            place, loss, sentences = next(item for item in seen if not item[1].isfinite())
            numbers = ", ".join(str(number) for number in sorted((sentences + 1).tolist()))
            raise ValueError(f"the loss is {loss.item()} in {place}, on the sentences {numbers} of train")


class StepSeeds(Callback):
    """The random numbers of a step are a function of the seed, the process and the step, and of nothing else.

    A run that is continued draws in each step what it would have drawn without the break, and no two
    processes of a run drop the same units.
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


class Predictions(Callback):
    """Keeps the predicted tag ids of the split that is being evaluated, by sentence number."""

    def __init__(self) -> None:
        self.tags: dict[int, list[int]] = {}

    def of_all_processes(self, trainer: Trainer) -> list[list[int]]:
        """In the order of the sentences; every process must call this."""
        shares: list[Any] = [self.tags]
        if trainer.world_size > 1:
            shares = [None] * trainer.world_size
            torch.distributed.all_gather_object(shares, self.tags)
        return [tags for _, tags in sorted(item for share in shares for item in share.items())]

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


class Peek(Callback):
    """Scores test after every epoch into peek.csv, which nothing reads while training.

    What a paper would have gained that had chosen its epoch on test. The weights, the epoch that dev chooses
    and its scores are those of a run that does not peek.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / TEST_LOG
        self.scores: list[float] = []

    def state_dict(self) -> dict[str, Any]:
        return {"scores": self.scores}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.scores = list(state["scores"])

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        """Leaves the modules in the modes in which they were."""
        modes = {part: part.training for part in module.modules()}
        module.eval()
        module.on_test_epoch_start()
        with torch.no_grad(), trainer.precision_plugin.forward_context():
            for batch in trainer.datamodule.test_dataloader():
                module.test_step(batch, 0)
        module.shared.clear()
        headline = module.metric.headline
        self.scores.append(module.metric.compute()[headline])
        for part, training in modes.items():
            part.training = training
        if trainer.is_global_zero:
            scores = enumerate(self.scores, start=1)
            rows = [{"epoch": epoch, f"test_{headline}": score} for epoch, score in scores]
            write_csv(self.path, list(rows[0]), rows)
