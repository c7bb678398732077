"""SIGTERM and Ctrl-C: the signal is recorded on arrival, and acted on where no work is lost."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Sigterm:
    """Handler of SIGTERM and of Ctrl-C; `received` says whether this process has been asked to exit.

    A second Ctrl-C ends the process at once.

    at_once: whether there is no work to lose, so that a signal ends the process where it arrives, such as in the
        compilation of kernels. `LastCheckpoint` sets it to False at the first step.
    """

    def __init__(self, *, at_once: bool = False) -> None:
        self.received, self.at_once = False, at_once
        self.status = 128 + signal.SIGTERM

    def handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if self.received:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGINT)
            self.status = 128 + signal.SIGINT
            if os.environ.get("LOCAL_RANK", "0") == "0" and not self.at_once:
                print(STOPPING, file=sys.stderr, flush=True)
        self.received = True
        if self.at_once:
            self.exit_if_requested()

    def install(self) -> None:
        """Become the process's handler. Does nothing outside the main thread, where Python allows no handlers.

        A signal that the process was started to ignore stays ignored: a script starts its background commands so that
        Ctrl-C does not reach them.
        """
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, self.handle)

    def exit_if_requested(self) -> None:
        """If a signal was received, exit with the status of a process that it killed: 143 (SIGTERM) or 130 (Ctrl-C)."""
        if self.received:
            raise SystemExit(self.status)


STOPPING = (
    "\nStopping as soon as no work is lost; repeat the command to resume. Press Ctrl-C again to stop at once."
)


@contextmanager
def sigterm_handler(*, at_once: bool = False) -> Iterator[Sigterm]:
    """Context with a new `Sigterm` as the process's handler. The previous handlers are restored at the end.

    If a signal was received, the process then exits, even if the block has failed: a sweep must not go on to its next
    job.
    """
    sigterm, before = Sigterm(at_once=at_once), {number: signal.getsignal(number) for number in SIGNALS}
    sigterm.install()
    try:
        yield sigterm
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)
        sigterm.exit_if_requested()
