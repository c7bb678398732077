"""The interface of loggers, and the loggers that conf/logger chooses from; every run also writes log.csv.

Every logger gets the same content: scalars of each epoch (epoch.py), and a summary, pictures (PNG) and tables at the
end (final.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

Rows = Iterable[Sequence[str | float]]


@dataclass(frozen=True)
class RunInfo:
    """Description of a run at its start.

    group: name of the experiment, shared by its seeds: what varies in a sweep, else the folder. name: the group and the
    seed. sweep: name of the sweep, or empty. tags: see identity.py. config: the content of config.yaml. resumed:
    whether the run resumes from a checkpoint; its earlier epochs are logged again. finished: whether the run was
    finished before; it is logged from its files, and a logger that has it logs nothing unless it is resumed, to score
    test.
    """

    folder: Path
    group: str
    name: str
    sweep: str = ""
    tags: Sequence[str] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    resumed: bool = False
    finished: bool = False

    @classmethod
    def of_run(
        cls, folder: Path, settings: dict[str, Any], tags: Sequence[str], *, resumed: bool, finished: bool
    ) -> RunInfo:
        """The description of a run with these settings: its group is the row of its sweep, or else its folder."""
        config = {name: value for name, value in settings.items() if name != "sweep"}
        sweep = settings["sweep"]
        group = sweep["row"] or folder.parent.name
        name = f"{group} seed={settings['seed']}"
        return cls(folder, group, name, sweep["name"], tags, config, resumed, finished)


class Logger:
    """The interface of loggers; by itself it logs nothing. Expensive content is a function, which need not be called.

    sentences: number of sentences of each of dev and test whose words may be logged.
    """

    sentences = 0

    def scalars(self, values: Mapping[str, float], epoch: int) -> None:
        """Log the scalars of an epoch. Epochs are numbered from 1, and each is logged once, in order."""

    def summary(self, values: Mapping[str, str | float]) -> None:
        """Log the summary of the finished run."""

    def picture(self, name: str, draw: Callable[[], bytes]) -> None:
        """Log a picture, as PNG."""

    def table(self, name: str, columns: Sequence[str], rows: Callable[[], Rows]) -> None:
        """Log a table."""

    def close(self, *, failed: bool) -> None:
        """End the log of the run."""


NOTHING = Logger()
"""The logger of a run that is logged nowhere but in log.csv."""


class SafeLogger(Logger):
    """Wraps a logger; its first exception is logged and disables it.

    So a failing service, network or picture neither ends nor changes a run.
    """

    def __init__(self, name: str, begin: Callable[[], Logger]) -> None:
        self.name = name
        self.logger = NOTHING
        with self.guarded():
            self.logger = begin()
            self.sentences = self.logger.sentences

    @contextmanager
    def guarded(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            log.warning(
                "%s failed (%s: %s); the run continues without it", self.name, type(error).__name__, error
            )
            failed, self.logger = self.logger, NOTHING
            self.sentences = 0
            try:
                failed.close(failed=True)
            except Exception as again:
                log.warning("%s cannot be closed either (%s)", self.name, again)

    def scalars(self, values: Mapping[str, float], epoch: int) -> None:
        with self.guarded():
            self.logger.scalars(values, epoch)

    def summary(self, values: Mapping[str, str | float]) -> None:
        with self.guarded():
            self.logger.summary(values)

    def picture(self, name: str, draw: Callable[[], bytes]) -> None:
        with self.guarded():
            self.logger.picture(name, draw)

    def table(self, name: str, columns: Sequence[str], rows: Callable[[], Rows]) -> None:
        with self.guarded():
            self.logger.table(name, columns, rows)

    def close(self, *, failed: bool) -> None:
        with self.guarded():
            self.logger.close(failed=failed)


def safe_logger(name: str, begin: Callable[[], Logger]) -> AbstractContextManager[Logger]:
    """A `SafeLogger` that is closed when the run ends or fails."""
    return closing(SafeLogger(name, begin))


@contextmanager
def closing(logger: Logger) -> Iterator[Logger]:
    """The logger, which is closed at the end, as failed after an exception."""
    failed = True
    try:
        yield logger
        failed = False
    finally:
        logger.close(failed=failed)


@contextmanager
def csv(about: RunInfo) -> Iterator[Logger]:
    """No logger besides log.csv, which every run writes."""
    yield NOTHING
