"""Where a run is shown besides log.csv: what a logger takes, and those there are, which conf/logger chooses.

A logger is given the same by whatever run: figures of each epoch, a summary at the end, pictures and tables.
What these are is said once, in curves.py and shown.py; each logger puts them into its own words.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

Rows = Iterable[Sequence[str | float]]


@dataclass(frozen=True)
class RunInfo:
    """What a logger knows of a run when it begins.

    group: of all seeds of an experiment; name: of the seed; tags: see identity.py; config: as config.yaml.
    resumed: whether the run goes on from a checkpoint. Its epochs so far are given once more, all of them.
    """

    folder: Path
    group: str
    name: str
    tags: Sequence[str] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    resumed: bool = False


class Logger(Protocol):
    """What is expensive comes as a function, which a logger that has no use for it does not call.

    sentences: of how many sentences of dev, and of test, it may have the words.
    """

    @property
    def sentences(self) -> int: ...

    def scalars(self, values: Mapping[str, float], epoch: int) -> None:
        """Of an epoch, counted from 1; each epoch once, in order."""

    def summary(self, values: Mapping[str, str | float]) -> None:
        """Of the finished run."""

    def picture(self, name: str, draw: Callable[[], Figure]) -> None: ...

    def table(self, name: str, columns: Sequence[str], rows: Callable[[], Rows]) -> None: ...

    def close(self, *, failed: bool) -> None: ...


class NullLogger:
    """Shows nothing."""

    sentences = 0

    def scalars(self, values: Mapping[str, float], epoch: int) -> None: ...

    def summary(self, values: Mapping[str, str | float]) -> None: ...

    def picture(self, name: str, draw: Callable[[], Figure]) -> None: ...

    def table(self, name: str, columns: Sequence[str], rows: Callable[[], Rows]) -> None: ...

    def close(self, *, failed: bool) -> None: ...


class SafeLogger:
    """Hands all on to another logger; that one's first error is told, after which it gets nothing more.

    An error of a service, of the network or in a picture ends no run, and changes none.
    """

    def __init__(self, name: str, begin: Callable[[], Logger]) -> None:
        self.name = name
        self.logger: Logger = NullLogger()
        with self.guarded():
            self.logger = begin()

    @property
    def sentences(self) -> int:
        return self.logger.sentences

    @contextmanager
    def guarded(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            log.warning("%s failed (%s: %s); the run goes on without", self.name, type(error).__name__, error)
            failed, self.logger = self.logger, NullLogger()
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

    def picture(self, name: str, draw: Callable[[], Figure]) -> None:
        with self.guarded():
            self.logger.picture(name, draw)

    def table(self, name: str, columns: Sequence[str], rows: Callable[[], Rows]) -> None:
        with self.guarded():
            self.logger.table(name, columns, rows)

    def close(self, *, failed: bool) -> None:
        with self.guarded():
            self.logger.close(failed=failed)


@contextmanager
def safe_logger(name: str, begin: Callable[[], Logger], sentences: int) -> Iterator[Logger]:
    """Closed when the run ends, however that is."""
    if sentences < 0:
        raise ValueError(f"logger.sentences must be at least 0, got {sentences}")
    logger = SafeLogger(name, begin)
    failed = True
    try:
        yield logger
        failed = False
    finally:
        logger.close(failed=failed)


@contextmanager
def csv(about: RunInfo) -> Iterator[Logger]:
    """Nothing more: every run writes log.csv."""
    yield NullLogger()


@contextmanager
def tensorboard(about: RunInfo, *, sentences: int) -> Iterator[Logger]:
    """Event files in the run's folder; `tensorboard --logdir outputs` shows them."""

    def begin() -> Logger:
        from ner_experiments.loggers.tensorboard import TensorBoardLogger

        return TensorBoardLogger(about, sentences)

    with safe_logger("TensorBoard", begin, sentences) as logger:
        yield logger


@contextmanager
def wandb(about: RunInfo, *, project: str, sentences: int) -> Iterator[Logger]:
    """One W&B run per job; see log_wandb.py."""

    def begin() -> Logger:
        from ner_experiments.loggers.wandb import begin

        return begin(about, project, sentences)

    with safe_logger("W&B", begin, sentences) as logger:
        yield logger
