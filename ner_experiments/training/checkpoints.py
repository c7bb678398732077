"""Going on after a break: the checkpoint, and in it the best weights so far and the patience that is left."""

from __future__ import annotations

import io
import logging
import time
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, Checkpoint, EarlyStopping
from lightning.pytorch.plugins import TorchCheckpointIO

from ner_experiments.runs.progress import CHECKPOINT
from ner_experiments.runs.provenance import made_by
from ner_experiments.training.preemption import Sigterm
from ner_experiments.utils.files import replacing

log = logging.getLogger(__name__)

STEPS = 50
"""So often within an epoch what has to wait is done: a look at the losses, and for other processes."""
SHARE = 0.05
"""Of the time, what writing checkpoints may take, unless they are asked for at every occasion."""


class InPlace(TorchCheckpointIO):
    """Not by way of /tmp, which may be small, and where a process that is killed leaves what it wrote."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        content = io.BytesIO()  # onto a full disk torch.save writes with an error that names neither
        torch.save(checkpoint, content)
        content.write(sha256(content.getbuffer()).digest())  # behind the archive, whose readers pass over it
        Path(path).write_bytes(content.getbuffer())


class BestWeights(Callback):
    """The weights of the epoch with the highest dev score, of equals the first, kept in main memory."""

    def __init__(self, monitor: str) -> None:
        self.monitor = monitor
        self.score, self.epoch = -1.0, 0
        self.weights: dict[str, torch.Tensor] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"score": self.score, "epoch": self.epoch, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.score, self.epoch, self.weights = state["score"], state["epoch"], state["weights"]

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        score = float(trainer.callback_metrics[self.monitor])
        if score > self.score:
            refuse_infinite(module, trainer.current_epoch + 1)
            self.score, self.epoch = score, trainer.current_epoch + 1
            self.weights = {name: weight.cpu().clone() for name, weight in module.state_dict().items()}


def refuse_infinite(module: LightningModule, epoch: int) -> None:
    """ValueError for what a step can make of a loss that was still a number."""
    for name, weight in module.named_parameters():
        if not torch.isfinite(weight).all():
            raise ValueError(f"after epoch {epoch} not all weights are finite numbers: {name}")


class Patience(EarlyStopping):
    """Stops when dev has not improved for `patience` epochs, counted from the first one that finds anything.

    A tagger's first epochs may find no mention at all, and be well on the way.
    """

    def __init__(self, monitor: str, patience: int) -> None:
        super().__init__(monitor, mode="max", patience=patience, check_on_train_epoch_end=False)

    def on_fit_start(self, trainer: Trainer, module: LightningModule) -> None:
        """A run that had stopped before it was cut off has nothing left to train."""
        if self.wait_count >= self.patience:
            trainer.should_stop = True

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        if self.best_score > 0 or trainer.callback_metrics[self.monitor] > 0:
            super().on_validation_end(trainer, module)


class LastCheckpoint(Checkpoint):
    """Writes last.ckpt at the end of an epoch or in its midst, `seconds` apart at least, and on SIGTERM.

    As a `Checkpoint` it is called after all other callbacks.
    """

    def __init__(self, folder: Path, *, seconds: float, sigterm: Sigterm) -> None:
        self.path = folder / CHECKPOINT
        self.pause = self.seconds = seconds
        self.sigterm = sigterm
        self.made_by = made_by()
        self.saved = time.monotonic()

    def state_dict(self) -> dict[str, Any]:
        return {"made_by": self.made_by}

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """In place of Lightning's handler, in which processes may wait for each other for ever."""
        self.sigterm.listen()

    def on_validation_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.sigterm.listen()

    def on_test_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.sigterm.listen()

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Not after an epoch's last batch: Lightning could not go on from there with the validation."""
        within = not trainer.fit_loop.epoch_loop.batch_progress.is_last_batch
        if within and (trainer.world_size == 1 or trainer.global_step % STEPS == 0):
            self.look(trainer)

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        self.look(trainer)

    def look(self, trainer: Trainer) -> None:
        """All processes decide alike: it is enough that one was told to end."""
        if any_process(trainer, self.sigterm.came):
            self.save(trainer)
            self.sigterm.came = True
            self.sigterm.obey()
        if trainer.strategy.broadcast(time.monotonic() - self.saved >= self.pause):
            self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        began = time.monotonic()
        with replacing(self.path) if trainer.is_global_zero else nullcontext(self.path) as part:
            trainer.save_checkpoint(part)  # all processes take part, the first one writes
        self.saved = time.monotonic()
        self.pause = self.seconds and max(self.seconds, (self.saved - began) / SHARE)


def any_process(trainer: Trainer, decision: bool) -> bool:
    return bool(trainer.strategy.reduce_boolean_decision(decision, all=False))


def is_whole(path: Path) -> bool:
    """The archive's own checksums are not of its directory, where one bit makes torch.load read rubbish."""
    content = path.read_bytes()
    size = len(content) - sha256().digest_size
    return size > 0 and sha256(memoryview(content)[:size]).digest() == content[size:]


def resumable(folder: Path) -> Path | None:
    """The folder's checkpoint, if there is one to go on from: whole, and by this code and these libraries."""
    path = folder / CHECKPOINT
    if not path.exists():
        return None
    if fault := fault_of(path):
        log.warning("%s %s; the run starts anew", path, fault)
        return None
    log.info("%s: goes on from %s", folder, CHECKPOINT)
    return path


def fault_of(path: Path) -> str:
    """What keeps a checkpoint from being used; empty if nothing."""
    if not is_whole(path):
        return "is damaged (SHA-256)"
    try:
        callbacks = torch.load(path, weights_only=True, map_location="cpu")["callbacks"]
        maker = callbacks[LastCheckpoint.__qualname__]["made_by"]
    except Exception as error:  # whatever a file that is no checkpoint makes of its readers
        return f"is damaged ({type(error).__name__})"
    return "" if maker == made_by() else f"was made by other code ({maker}, not {made_by()})"
