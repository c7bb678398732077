"""Waiting for a condition, and for the end of a process."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def until(happens: Callable[[], Any], seconds: float = 120) -> Any:
    """First true result of `happens`. Polls every 0.05 seconds; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not (found := happens()):
        assert time.monotonic() < end, f"nothing after {seconds} seconds"
        time.sleep(0.05)
    return found


def is_running(process: int | str) -> bool:
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())  # empty for a process that has ended
    except OSError:
        return False
