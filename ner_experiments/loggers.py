"""Loggers besides log.csv, each made by a function with the same arguments and closed when the run ends."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger


@contextmanager
def csv(*, folder: Path, group: str, name: str, config: dict[str, Any]) -> Iterator[None]:
    """None: every run writes log.csv."""
    yield None


@contextmanager
def tensorboard(*, folder: Path, group: str, name: str, config: dict[str, Any]) -> Iterator[Logger]:
    """Event files in the run's folder; `tensorboard --logdir outputs` shows them."""
    yield TensorBoardLogger(save_dir=folder, name="", version="tensorboard")


@contextmanager
def wandb(*, folder: Path, group: str, name: str, config: dict[str, Any], project: str) -> Iterator[Logger]:
    """One W&B run per job; runs that differ only in the seed share a group.

    Without an account or a network the run is kept in the folder, and `wandb sync` sends it later. W&B is
    given the settings and the scores. What it would collect itself stays here: the variables that begin with
    SLURM_, a token among them, the address of the git repository and uncommitted changes to it.
    """
    from wandb import Settings

    logger = WandbLogger(
        save_dir=folder,
        project=project,
        group=group,
        job_type=name,
        name=f"{group} {name}",
        mode="online" if wandb_is_reachable() else "offline",
        config=config,
        settings=Settings(x_disable_meta=True, disable_git=True, disable_code=True),
    )
    run = logger.experiment
    try:
        yield logger
    finally:
        run.finish()  # else the next job of the sweep would go on in this run


def wandb_is_reachable(seconds: float = 3.0) -> bool:
    """Whether there is a key, and a server that answers; WANDB_MODE decides where it is set."""
    import wandb as client

    mode = os.environ.get("WANDB_MODE")
    if mode is not None:
        return mode == "online"
    if not client.login(prompt=False, verify=False):
        return False
    server = urlsplit(client.setup().settings.base_url)
    try:
        socket.create_connection((server.hostname, server.port or 443), timeout=seconds).close()
    except OSError:
        return False
    return True
