"""Weights & Biases: one run per job, and a group of all seeds of an experiment.

Without an account or a network the run is kept in its folder, and `wandb sync` sends it later. W&B is given
the settings, the scores, and as many sentences as `logger.sentences` says. What it would collect itself stays
here: the variables that begin with SLURM_, a token among them, the address of the git repository and
uncommitted changes to it.
"""

from __future__ import annotations

import logging
import os
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ner_experiments.loggers.base import Rows, RunInfo
from ner_experiments.utils.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

BEGIN, END = 30.0, 60.0
"""Seconds that W&B may hold up a run, at its begin and at its end."""
FOLDER, EARLIER, ID = "wandb", "earlier", "id"
MODE = "WANDB_MODE"
STAGING = "WANDB_DATA_DIR"
"""Where W&B keeps tables that wait to be sent; by default in the home folder, of which nodes have others."""


class Run:
    """A run of W&B, whose step is the epoch."""

    def __init__(self, run: Any, sentences: int, staging: str | None) -> None:
        self.run, self.sentences, self.staging = run, sentences, staging
        self.epoch = 0
        run.define_metric("epoch")
        run.define_metric("*", step_metric="epoch")

    def scalars(self, values: Mapping[str, float], epoch: int) -> None:
        """Those that W&B has of a run that it goes on with are not sent again."""
        self.epoch = epoch
        if epoch >= self.run.step:
            self.run.log({**values, "epoch": epoch}, step=epoch, commit=True)

    def summary(self, values: Mapping[str, str | float]) -> None:
        self.run.summary.update(dict(values))

    def picture(self, name: str, draw: Callable[[], Figure]) -> None:
        from wandb import Image

        from ner_experiments.analysis.attention import as_image

        self.run.log({name: Image(as_image(draw())), "epoch": self.epoch})

    def table(self, name: str, columns: Sequence[str], rows: Callable[[], Rows]) -> None:
        from wandb import Table

        data = [list(row) for row in rows()]
        self.run.log({name: Table(columns=list(columns), data=data), "epoch": self.epoch})

    def close(self, *, failed: bool) -> None:
        """Else the next job of the sweep would go on in this run."""
        try:
            self.run.finish(exit_code=int(failed))
        finally:
            restore_staging(self.staging)


def begin(about: RunInfo, project: str, sentences: int) -> Run:
    """A new run, or the one of the folder.

    Every run has an id of its own, which lies in its folder: two people who make the same experiment do not
    write into one run. Where W&B answers, a run that goes on is resumed. Where it does not, what is kept here
    takes the place of what was sent or kept before: it has all epochs.
    """
    folder = about.folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    set_aside(folder)
    arguments = {
        **{"project": project, "dir": about.folder, "id": own_id(folder), "group": about.group},
        **{"job_type": about.name, "name": f"{about.group} {about.name}", "tags": about.tags},
        "config": dict(about.config),
    }
    before = os.environ.get(STAGING)
    os.environ[STAGING] = str((folder / "data").absolute())
    try:
        return Run(started(arguments, resumed=about.resumed), sentences, before)
    except BaseException:
        restore_staging(before)
        raise


def own_id(folder: Path) -> str:
    path = folder / ID
    if not path.exists():
        with atomic_write(path) as part:
            part.write_text(secrets.token_hex(8), encoding="utf-8")
    return path.read_text(encoding="utf-8")


def set_aside(folder: Path) -> None:
    """What was kept before is not for `wandb sync` to find: what is kept now has more of the run."""
    for path in sorted(folder.glob("offline-run-*")):
        (folder / EARLIER).mkdir(exist_ok=True)
        path.replace(folder / EARLIER / path.name)


def started(arguments: Mapping[str, Any], *, resumed: bool) -> Any:
    """W&B's own run; one without its server if that takes too long, or does not take it."""
    import wandb as client

    settings = client.Settings(
        init_timeout=BEGIN,
        finish_timeout=END,
        x_disable_meta=True,
        disable_git=True,
        disable_code=True,
    )
    mode: Any = os.environ.get(MODE, "offline")
    if is_reachable():
        resume: Literal["allow"] | None = "allow" if resumed else None
        try:
            return client.init(mode="online", settings=settings, resume=resume, **arguments)
        except client.Error as error:
            log.warning("W&B does not take the run (%s)", error)
            mode = "offline"
    if mode == "offline":
        log.info("the run is kept offline; `wandb sync` sends it later")
    return client.init(mode=mode, settings=settings, **arguments)


def is_reachable(seconds: float = 3.0) -> bool:
    """Whether there is a key, not tried here, and a server that answers; WANDB_MODE decides if it is set."""
    import wandb as client

    mode = os.environ.get(MODE)
    if mode is not None:
        return mode == "online"
    if not client.login(prompt=False, verify=False):
        return False
    try:
        urllib.request.urlopen(client.setup().settings.base_url, timeout=seconds).close()
    except urllib.error.HTTPError as answer:
        answer.close()
    except OSError as error:
        log.warning("W&B does not answer (%s)", error)
        return False
    return True


def restore_staging(value: str | None) -> None:
    """In the environment."""
    if value is None:
        os.environ.pop(STAGING, None)
    else:
        os.environ[STAGING] = value
