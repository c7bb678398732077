"""SIGTERM, noted when it comes and obeyed where nothing is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Sigterm:
    """`came`: whether this process has been told to end."""

    def __init__(self) -> None:
        self.came = False

    def note(self, number: int, frame: FrameType | None) -> None:
        self.came = True

    def listen(self) -> None:
        """Python handles signals in the main thread alone; in another nothing is noted."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self.note)

    def obey(self) -> None:
        """Ends the process, with the status of one that SIGTERM ended."""
        if self.came:
            raise SystemExit(143)


@contextmanager
def noted() -> Iterator[Sigterm]:
    """While the `with` lasts SIGTERM ends nothing by itself."""
    sigterm, before = Sigterm(), signal.getsignal(signal.SIGTERM)
    sigterm.listen()
    try:
        yield sigterm
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
