"""SIGTERM: recorded when it arrives, acted on where nothing is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Sigterm:
    """Handler of SIGTERM; `received` says whether this process has been asked to exit."""

    def __init__(self) -> None:
        self.received = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.received = True

    def install(self) -> None:
        """Become the process's handler. Does nothing outside the main thread, where Python allows no handlers."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self.handle)

    def exit_if_requested(self) -> None:
        """Exit with status 143, as a process that SIGTERM ended, if it was received."""
        if self.received:
            raise SystemExit(143)


@contextmanager
def sigterm_handler() -> Iterator[Sigterm]:
    """A new `Sigterm` that is the process's handler within the block; the earlier one is restored after it."""
    sigterm, before = Sigterm(), signal.getsignal(signal.SIGTERM)
    sigterm.install()
    try:
        yield sigterm
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
