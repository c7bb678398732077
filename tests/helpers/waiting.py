"""What a test waits for: something to happen, or a process to end."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def until(happens: Callable[[], Any], seconds: float = 120) -> Any:
    """What it gives, when that is true."""
    end = time.monotonic() + seconds
    while not (found := happens()):
        assert time.monotonic() < end, f"nothing after {seconds} seconds"
        time.sleep(0.05)
    return found


def is_running(process: int | str) -> bool:
    try:
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())  # empty of one that has ended
    except OSError:
        return False
