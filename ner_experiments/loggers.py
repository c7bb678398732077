"""Loggers besides log.csv, each made by a function with the same arguments and closed when the run ends."""

from __future__ import annotations

import logging
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger

log = logging.getLogger(__name__)

BEGIN, END = 30.0, 60.0
"""Seconds that W&B may hold up a run, at its begin and at its end."""


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

    Without an account or a network the run is kept in the folder, and `wandb sync` sends it later; as much
    as there is of it where W&B fails on the way. That is said, and changes nothing for the run of ours. W&B
    is given the settings and the scores. What it would collect itself stays here: the variables that begin
    with SLURM_, a token among them, the address of the git repository and uncommitted changes to it.
    """
    about = {"group": group, "job_type": name, "name": f"{group} {name}", "config": config}
    run = begin_wandb({"project": project, "dir": folder, **about}, online=wandb_is_reachable())
    logger = Unfailing(save_dir=folder, project=project, experiment=run)
    try:
        yield logger
    finally:
        logger.close()  # else the next job of the sweep would go on in this run


class Unfailing(WandbLogger):
    """W&B's errors are told once, and end no run; nor does a server that does not answer."""

    failed = False

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        if not self.failed:
            with self.said():
                super().log_metrics(metrics, step)

    def close(self) -> None:
        with self.said():
            self.experiment.finish()

    @contextmanager
    def said(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # of its service, of the network, of its own
            self.failed = True
            log.warning("W&B failed (%s); the run goes on without", error)


def begin_wandb(arguments: Mapping[str, Any], *, online: bool) -> Any:
    """A run of W&B; one without its server if that takes too long, or does not take it."""
    import wandb as client

    settings = client.Settings(
        init_timeout=BEGIN,
        finish_timeout=END,
        x_disable_meta=True,
        disable_git=True,
        disable_code=True,
    )
    if online:
        try:
            return client.init(mode="online", settings=settings, **arguments)
        except client.Error as error:
            log.warning("W&B cannot be reached (%s); the run is kept offline", error)
    return client.init(mode="offline", settings=settings, **arguments)


def wandb_is_reachable(seconds: float = 3.0) -> bool:
    """Whether there is a key, and a server that answers; WANDB_MODE decides where it is set."""
    import wandb as client

    mode = os.environ.get("WANDB_MODE")
    if mode is not None:
        return mode == "online"
    if not client.login(prompt=False, verify=False):
        return False
    try:
        urllib.request.urlopen(client.setup().settings.base_url, timeout=seconds).close()
    except urllib.error.HTTPError as answer:
        answer.close()
    except OSError as error:
        log.warning("W&B does not answer (%s); the run is kept offline", error)
        return False
    return True
