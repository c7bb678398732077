"""The Lightning trainer of every run."""

from __future__ import annotations

import logging
import re
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.strategies import DDPStrategy
from torch.distributed import DistStoreError

from ner_experiments.config.processes import num_processes
from ner_experiments.training.checkpoints import AtomicCheckpointIO
from ner_experiments.utils.text import printable

if TYPE_CHECKING:
    from omegaconf import DictConfig

LOST = re.compile("Connection (reset|closed)|Broken pipe|timed out", re.IGNORECASE)
"""PyTorch's messages when another process of a run no longer answers."""
GRACE = 5.0
"""Seconds after an error in which the other processes of the run can report their own errors."""


def make_trainer(cfg: DictConfig, folder: Path, callbacks: list[Callback]) -> Trainer:
    """Lightning trainer of a run. It prints nothing itself: the suite prints progress and results."""
    silence_lightning()
    settings = cfg.trainer
    several = num_processes(cfg) > 1
    return Trainer(
        accelerator=cfg.runtime.accelerator,
        devices=settings.devices,
        num_nodes=settings.num_nodes,
        strategy=DDPStrategy(timeout=timedelta(seconds=cfg.runtime.ddp_seconds)) if several else "auto",
        plugins=[AtomicCheckpointIO(), *cluster_environment(several)],
        use_distributed_sampler=False,  # the data module distributes the batches
        precision=settings.precision,
        deterministic=cfg.runtime.deterministic,
        max_epochs=settings.max_epochs,
        gradient_clip_val=settings.gradient_clip,
        logger=False,  # the suite's loggers are fed by callbacks
        callbacks=callbacks,
        default_root_dir=folder,
        reload_dataloaders_every_n_epochs=1,
        num_sanity_val_steps=0,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def cluster_environment(several: bool) -> list[Any]:
    """Environment plugin: Lightning's for one process, SLURM's in its jobs, else none, so that torchrun is detected."""
    if not several:
        return [LightningEnvironment()]
    return [SLURMEnvironment(auto_requeue=False)] if SLURMEnvironment.detect() else []


def silence_lightning() -> None:
    """Hide Lightning's hints, which concern settings that the suite chooses."""
    for library in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(library).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")


@contextmanager
def killing_stragglers(trainer: Trainer) -> Iterator[None]:
    """After an error in the block, kill processes started by Lightning that do not exit within `GRACE` seconds.

    Raises ConnectionError if another process of the run was lost.
    """
    try:
        yield
    except Exception as error:
        # SLURM and torchrun start the processes themselves, and leave Lightning no launcher
        for process in getattr(trainer.strategy.launcher, "procs", ()):
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
        if (
            trainer.world_size > 1
            and type(error) in (RuntimeError, DistStoreError)
            and LOST.search(str(error))
        ):
            raise ConnectionError(
                f"another of the {trainer.world_size} processes of this run has ended, or does not answer "
                f"({printable(str(error), 200)}); if it printed no error, it was killed, possibly out of memory; "
                "repeat the command to resume"
            ) from error
        raise
