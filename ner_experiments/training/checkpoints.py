"""Checkpoints: the last state of a run, from which it can be resumed, and the best weights so far."""

from __future__ import annotations

import io
import logging
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, Checkpoint
from lightning.pytorch.plugins import TorchCheckpointIO
from torch import nn

from ner_experiments.runs.progress import CHECKPOINT, PROGRESS_FILE
from ner_experiments.runs.provenance import made_by
from ner_experiments.training.preemption import Sigterm
from ner_experiments.utils.files import atomic_write

log = logging.getLogger(__name__)

STEPS = 50
"""Number of steps between two checks that wait for the device or for other processes."""
SHARE = 0.05
"""Maximum share of the time that is spent on writing checkpoints, unless `checkpoint_seconds` is 0."""


class LastCheckpoint(Checkpoint):
    """Write last.ckpt within and after epochs, at least `seconds` apart, on SIGTERM, and when training is over.

    Lightning calls a `Checkpoint` after all other callbacks.
    """

    def __init__(self, folder: Path, *, seconds: float, sigterm: Sigterm) -> None:
        self.path = folder / CHECKPOINT
        self.pause = self.seconds = seconds
        self.sigterm = sigterm
        self.made_by, self.threads = made_by(), torch.get_num_threads()
        self.saved = time.monotonic()

    def state_dict(self) -> dict[str, Any]:
        return {"made_by": self.made_by, "threads": self.threads}

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Replace Lightning's SIGTERM handler, with which several processes can deadlock."""
        self.sigterm.install()

    def on_validation_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.sigterm.install()

    def on_test_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.sigterm.install()

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Poll, except after an epoch's last batch, from where Lightning could not resume with the validation."""
        self.sigterm.at_once = False
        within = not trainer.fit_loop.epoch_loop.batch_progress.is_last_batch
        if within and (trainer.world_size == 1 or trainer.global_step % STEPS == 0):
            self.poll(trainer)

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Poll, or save after the last epoch: what follows scores other weights, from which training cannot resume."""
        saved = self.saved
        self.poll(trainer)
        is_last = trainer.should_stop or trainer.current_epoch + 1 == trainer.max_epochs
        if is_last and self.saved == saved:
            self.save(trainer)

    def poll(self, trainer: Trainer) -> None:
        """Save if it is time, or if any process received SIGTERM: then all of them save and exit."""
        if trainer.strategy.reduce_boolean_decision(self.sigterm.received, all=False):
            self.save(trainer)
            self.sigterm.received = True
            self.sigterm.exit_if_requested()
        if trainer.strategy.broadcast(time.monotonic() - self.saved >= self.pause):
            self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        began = time.monotonic()
        trainer.save_checkpoint(self.path)  # all processes take part, rank 0 writes
        self.saved = time.monotonic()
        self.pause = self.seconds and max(self.seconds, (self.saved - began) / SHARE)


class AtomicCheckpointIO(TorchCheckpointIO):
    """Atomic writing of checkpoint files, each with its SHA-256 at the end.

    Lightning's own implementation writes through /tmp, which may be small and where a killed process leaves its file.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        content = io.BytesIO()  # on a full disk torch.save raises an error that names neither disk nor file
        torch.save(checkpoint, content)
        content.write(sha256(content.getbuffer()).digest())  # readers of zip files ignore trailing bytes
        with atomic_write(Path(path)) as part:
            part.write_bytes(content.getbuffer())


def resumable_checkpoint(folder: Path) -> Path | None:
    """The folder's checkpoint if it is intact and was made by these versions of the libraries, else None.

    Raises ValueError if it was made by another number of threads: neither number reproduces the weights of a run that
    was trained by both.
    """
    path = folder / CHECKPOINT
    if not path.exists():
        if (folder / PROGRESS_FILE).exists():
            log.info("%s: stopped before its first checkpoint; the run starts over", folder)
        return None
    try:
        state = own_state(path)
    except ValueError as error:
        log.warning("%s %s; the run starts over", path, error)
        return None
    threads = torch.get_num_threads()
    if state.get("threads", threads) != threads:
        raise ValueError(
            f"{path} was written with runtime.threads={state['threads']}, on which the weights depend through "
            f"rounding: resume with that, or delete the file to start over with {threads}"
        )
    log.info("%s: resuming from %s", folder, CHECKPOINT)
    return path


def own_state(path: Path) -> dict[str, Any]:
    """The state of `LastCheckpoint` in a checkpoint. ValueError with the reason why the checkpoint cannot be used."""
    if not is_intact(path):
        raise ValueError("is damaged (SHA-256)")
    try:
        callbacks = torch.load(path, weights_only=True, map_location="cpu")["callbacks"]  # noqa: TID251
        state = dict(callbacks[LastCheckpoint.__qualname__])
        maker = state["made_by"]
    except Exception as error:  # reading a file that is not a checkpoint can raise anything
        raise ValueError(f"is damaged ({type(error).__name__})") from error
    if maker != made_by():
        raise ValueError(f"was written by different library versions ({maker}, not {made_by()})")
    return state


def is_intact(path: Path) -> bool:
    """Whether the file ends with the SHA-256 of what precedes it.

    The checksums inside a zip file do not cover its directory, where one flipped bit makes torch.load read garbage.
    """
    content = path.read_bytes()
    size = len(content) - sha256().digest_size
    return size > 0 and sha256(memoryview(content)[:size]).digest() == content[size:]


class Start(Callback):
    """The commit that started a run, and the claims and the registration that it was started for.

    Checkpoints keep them: a run that is resumed for a registration may have shown its dev scores before.
    """

    def __init__(self, **values: Any) -> None:
        self.values = values

    def state_dict(self) -> dict[str, Any]:
        return self.values

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.values = state

    @property
    def recorded(self) -> dict[str, Any]:
        """Its entries in metrics.json: always the commit, and what the run was started for."""
        return {name: value for name, value in self.values.items() if value or name == "commit"}


class BestWeights(Callback):
    """Weights of the epoch with the highest dev score, the first one if several tie, held in main memory."""

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


def refuse_infinite(module: nn.Module, epoch: int) -> None:
    """Raise ValueError if a weight is not finite, which a step with a finite loss can cause."""
    for name, weight in module.named_parameters():
        if not torch.isfinite(weight).all():
            raise ValueError(f"after epoch {epoch} some weights are not finite: {name}")
