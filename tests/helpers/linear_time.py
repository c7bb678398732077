"""How the time of a call grows with its input."""

import gc
import time
from collections.abc import Callable


def growth(call: Callable[[int], object], size: int) -> float:
    """How many times as long as for `size` the call takes for four times as much: 4 if it is linear, 16 if quadratic.

    The shortest of two calls each, in this thread's own time, without the garbage collector, which would look through
    all objects of the test process.
    """

    def seconds(size: int) -> float:
        began = time.thread_time()
        call(size)
        return time.thread_time() - began

    gc.collect()
    gc.disable()
    try:
        few, many = (min(seconds(it) for _ in range(2)) for it in (size, 4 * size))
    finally:
        gc.enable()
    return many / few
