"""The clock by which training is timed. It stands still while kernels are compiled, once per machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

stops: list[float] = []
"""When each of the stops that are not over began; they may be nested."""
lost = [0.0]
"""Seconds that the clock has stood still."""


def now() -> float:
    """Seconds since some moment, without those of `stopped`."""
    return (stops[0] if stops else time.perf_counter()) - lost[0]


@contextmanager
def stopped() -> Iterator[None]:
    stops.append(time.perf_counter())
    try:
        yield
    finally:
        began = stops.pop()
        if not stops:
            lost[0] += time.perf_counter() - began
