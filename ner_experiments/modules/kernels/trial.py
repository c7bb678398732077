"""Trial runs of kernels, so that one that does not compile is noticed while PyTorch can still take its place."""

import functools
import logging
from collections.abc import Callable
from typing import Any

import torch

log = logging.getLogger(__name__)


@functools.cache
def works(what: str, trial: Callable[..., None], *arguments: Any) -> bool:
    """Whether the trial, which compiles kernels on first use, ends without an error. Logs a warning once if not.

    Compilers raise errors of many types: of numba, LLVM or Triton, of the C compiler, and of the driver. MemoryError
    is passed on: a lack of memory that passes must not change how a run rounds.
    """
    try:
        with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", enabled=False):
            trial(*arguments)
    except MemoryError:
        raise
    except Exception as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "").strip()
        log.warning(
            "%s: the compiled kernels fail here (%s: %s); PyTorch computes the same, many times slower",
            *(what, type(error).__name__, reason),
        )
        return False
    return True
