"""How the time of a call grows with its input."""

import gc
import time
from collections.abc import Callable


def growth(call: Callable[[int], object], size: int) -> float:
    """How many times as long as for `size` the call takes for four times as much: 4 if it is linear, 16 if quadratic.

    In this thread's own time, without the garbage collector, which would look through all objects of the test process.
    The shortest of two calls for `size`; for four times as much, of two only if one took longer than linear time does.
    """

    def seconds(size: int) -> float:
        began = time.thread_time()
        call(size)
        return time.thread_time() - began

    gc.collect()
    gc.disable()
    try:
        few, many = min(seconds(size), seconds(size)), seconds(4 * size)
        if many > 6 * few:
            many = min(many, seconds(4 * size))
    finally:
        gc.enable()
    return many / few
