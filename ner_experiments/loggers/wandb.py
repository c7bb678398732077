"""Weights & Biases: one run per job, a group for the seeds of an experiment, and the sweep as job type.

Without an account or a network, the run is stored in its folder, and `wandb sync` uploads it later. W&B gets the
settings, the scores, and the number of sentences in `logger.sentences`. It does not get what it would collect by
itself: environment variables that begin with SLURM_, which include a token, the address of the git repository, and
uncommitted changes.

The package wandb takes a second to import, and an exception in it must not end a run. So it is imported where a
`SafeLogger` catches what it raises.
"""

from __future__ import annotations

import io
import logging
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from ner_experiments.loggers.base import NOTHING, Logger, Rows, RunInfo, safe_logger
from ner_experiments.utils.files import atomic_write

log = logging.getLogger(__name__)

BEGIN, END = 30.0, 60.0
"""Seconds that W&B may delay a run at its start and at its end."""
MAX_TAG = 64
"""Characters of a tag that W&B accepts."""
FOLDER, EARLIER, ID = "wandb", "earlier", "id"
MODE = "WANDB_MODE"
STAGING = "WANDB_DATA_DIR"
"""Folder of tables that wait for upload; W&B's default is the home folder, which may differ between nodes."""


@contextmanager
def wandb(about: RunInfo, *, project: str, sentences: int) -> Iterator[Logger]:
    """One W&B run per job."""
    if about.finished and not about.resumed and (about.folder / FOLDER / ID).exists():
        yield NOTHING
        return
    with safe_logger("W&B", lambda: begin(about, project, sentences)) as logger:
        yield logger


class WandbLogger(Logger):
    """Logs to a W&B run, with the epoch as step. offline: the path of offline runs in the message on how to upload."""

    def __init__(self, run: Any, sentences: int, staging: str | None, offline: str) -> None:
        self.run, self.sentences, self.staging, self.offline = run, sentences, staging, offline
        self.epoch = 0
        run.define_metric("epoch")
        self.defined: set[str] = set()

    def scalars(self, values: Mapping[str, float], epoch: int) -> None:
        """Log an epoch, unless W&B already has it from before the run was resumed."""
        self.epoch = epoch
        for name in sorted(values.keys() - self.defined):
            self.run.define_metric(name, step_metric="epoch")
        self.defined |= values.keys()
        if epoch >= self.run.step:
            self.run.log({**values, "epoch": epoch}, step=epoch, commit=True)

    def summary(self, values: Mapping[str, str | float]) -> None:
        self.run.summary.update(dict(values))

    def picture(self, name: str, draw: Callable[[], bytes]) -> None:
        from PIL import Image as Pixels
        from wandb import Image  # see above

        self.run.log({name: Image(Pixels.open(io.BytesIO(draw()))), "epoch": self.epoch})

    def table(self, name: str, columns: Sequence[str], rows: Callable[[], Rows]) -> None:
        from wandb import Table  # see above

        data = [list(row) for row in rows()]
        # not in the history, whose viewers draw the numbers of rows and columns as curves
        self.run.summary[name] = Table(columns=list(columns), data=data)

    def close(self, *, failed: bool) -> None:
        """Finish the W&B run; otherwise the next job of the sweep would log to it.

        Tables that were uploaded are removed from the staging folder. Those of an offline run stay if `wandb sync`
        needs them.
        """
        try:
            self.run.finish(exit_code=int(failed))
        finally:
            staging = Path(os.environ[STAGING])
            restore_staging(self.staging)
        if self.run.offline:
            remove_unneeded(staging)
            log.info("W&B: stored offline; upload with `wandb sync %s`", self.offline)
        else:
            shutil.rmtree(staging, ignore_errors=True)
            if self.run.url:  # none where WANDB_MODE is "disabled"
                log.info("W&B: %s", self.run.url)


def begin(about: RunInfo, project: str, sentences: int) -> WandbLogger:
    """Logger of a new W&B run, or of the one whose id is in the folder.

    Each run has its own id, stored in its folder, so that two people with the same experiment do not write to one
    W&B run. If W&B answers, the run is resumed there. Otherwise the offline run replaces everything uploaded or stored
    before, since it has all epochs.
    """
    folder = about.folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    set_aside(folder)
    arguments = {
        **{"project": str(project), "dir": about.folder, "id": own_id(folder), "group": about.group},
        **{"job_type": about.sweep or None, "name": about.name},
        "tags": [tag[:MAX_TAG] for tag in about.tags],
        "config": dict(about.config),
    }
    before = os.environ.get(STAGING)
    os.environ[STAGING] = str((folder / "data").absolute())
    try:
        run = start(arguments, resumed=about.resumed)
        remove_import_hooks()
        name = Path(run.dir).parent.name if run.offline else ""
        if about.sweep:  # the same for all runs, so that a sweep says it once
            output = shlex.quote(str(about.folder.parents[1]))
            return WandbLogger(run, sentences, before, f"{output}/*/seed-*/{FOLDER}/offline-run-*")
        return WandbLogger(run, sentences, before, shlex.quote(str(about.folder / FOLDER / name)))
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
    """Hide earlier offline runs from `wandb sync`; the new one has all their epochs."""
    for path in sorted(folder.glob("offline-run-*")):
        (folder / EARLIER).mkdir(exist_ok=True)
        path.replace(folder / EARLIER / path.name)


def start(arguments: Mapping[str, Any], *, resumed: bool) -> Any:
    """W&B's run object; offline if the server is too slow or rejects the run."""
    import wandb as client  # see above

    mode: Any = chosen_mode() or "offline"
    settings = client.Settings(
        silent=True,
        init_timeout=BEGIN,
        finish_timeout=END,
        x_disable_meta=True,
        disable_git=True,
        disable_code=True,
    )
    if is_reachable():
        resume: Literal["allow"] | None = "allow" if resumed else None
        try:
            return client.init(mode="online", settings=settings, resume=resume, **arguments)
        except client.Error as error:
            log.warning("W&B rejected the run (%s)", error)
            mode = "offline"
    return client.init(mode=mode, settings=settings, **arguments)


def chosen_mode() -> str | None:
    """WANDB_MODE. If it is empty, it is removed, since W&B's client rejects it."""
    if not os.environ.get(MODE):
        os.environ.pop(MODE, None)
    return os.environ.get(MODE)


def remove_import_hooks() -> None:
    """Keep W&B from reporting imports: if its process has died, the report fails, and so would the import."""
    with suppress(ImportError):  # the module is not part of W&B's public interface
        from wandb.sdk.lib.import_hooks import unregister_all_post_import_hooks

        unregister_all_post_import_hooks()


def is_reachable(seconds: float = 3.0) -> bool:
    """Whether WANDB_MODE is "online" or, if it is unset, whether there is a key and a server that answers."""
    import wandb as client  # see above

    if mode := chosen_mode():
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


def remove_unneeded(staging: Path) -> None:
    """Remove the staged files that no offline run beside the folder names: W&B stages each table twice.

    If a record cannot be read, all files stay.
    """
    files = [path for path in staging.rglob("*") if path.is_file()]
    try:
        named = "".join(map(inspected, staging.parent.rglob("*.wandb")))
    except OSError as error:
        kept = "keeps files that may not be needed; nothing of the run is lost"
        log.warning("W&B: %s, so %s %s", error, staging, kept)
        return
    for path in files:
        if path.name not in named:
            path.unlink(missing_ok=True)


def inspected(record: Path) -> str:
    """The content of a .wandb file as JSON, read by W&B's own program. Raises OSError if it reads nothing.

    The program has a session of its own, where the signal that stops this process and its group does not reach it.
    """
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(record)]
    try:
        found = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=END, start_new_session=True
        ).stdout
    except subprocess.SubprocessError:
        found = ""
    if not found:  # such as the record of a run that was killed
        raise OSError(f"{record} cannot be read")
    return found


def restore_staging(value: str | None) -> None:
    """Reset the environment variable `STAGING` to its earlier value; None if it was unset."""
    if value is None:
        os.environ.pop(STAGING, None)
    else:
        os.environ[STAGING] = value
