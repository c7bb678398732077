"""Lightning's trainer, as every run has it."""

from __future__ import annotations

import logging
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.strategies import DDPStrategy
from lightning.pytorch.strategies.launchers import _SubprocessScriptLauncher
from omegaconf import DictConfig

from ner_experiments.config.processes import num_processes
from ner_experiments.training.checkpoints import InPlace

GRACE = 5.0
"""Seconds after an error in which the other processes of a run may tell theirs."""


@contextmanager
def none_left(trainer: Trainer) -> Iterator[None]:
    """After an error the processes that Lightning started get seconds to end: one that hangs never would."""
    try:
        yield
    except Exception:
        launcher = trainer.strategy.launcher
        for process in launcher.procs if isinstance(launcher, _SubprocessScriptLauncher) else ():
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
        raise


def make_trainer(cfg: DictConfig, folder: Path, callbacks: list[Callback]) -> Trainer:
    """A trainer that says nothing itself: progress and results are ours to print."""
    quiet()
    settings = cfg.trainer
    for name, lowest in LOWEST.items():
        if settings[name] < lowest:
            raise ValueError(f"trainer.{name} must be at least {lowest}, got {settings[name]}")
    several = num_processes(cfg) > 1
    return Trainer(
        accelerator=cfg.runtime.accelerator,
        devices=settings.devices,
        num_nodes=settings.num_nodes,
        strategy=DDPStrategy(timeout=timedelta(seconds=cfg.runtime.ddp_seconds)) if several else "auto",
        plugins=[InPlace(), *environment(several)],
        use_distributed_sampler=False,  # the data module deals out the batches
        precision=settings.precision,
        max_epochs=settings.max_epochs,
        gradient_clip_val=settings.gradient_clip,
        logger=False,  # ours get what they show from callbacks
        callbacks=callbacks,
        default_root_dir=folder,
        reload_dataloaders_every_n_epochs=1,
        num_sanity_val_steps=0,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


LOWEST = {
    "max_epochs": 1,
    "patience": 1,
    "gradient_clip": 0,
    "train_batches": 0,
    "devices": 1,
    "num_nodes": 1,
}


def environment(several: bool) -> list[Any]:
    """Who starts the processes: nobody, where there is one; else whom Lightning finds, such as torchrun."""
    if not several:
        return [LightningEnvironment()]
    return [SLURMEnvironment(auto_requeue=False)] if SLURMEnvironment.detect() else []


def quiet() -> None:
    """Lightning's hints are about settings that are ours."""
    for library in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(library).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
