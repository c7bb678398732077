"""Whether there are kernels for CUDA tensors: Triton's, which PyTorch brings along where it runs on CUDA."""

import functools
import importlib
import logging
import subprocess

log = logging.getLogger(__name__)


@functools.cache
def have_triton() -> bool:
    """Triton compiles what starts its kernels with the system's C compiler, when the driver is first used."""
    try:
        importlib.import_module("triton").runtime.driver.active.get_current_device()
    except (ImportError, OSError, RuntimeError, subprocess.CalledProcessError) as error:
        log.warning(
            "the CRF and the LSTM units do without CUDA kernels, and are many times slower: %s", error
        )
        return False
    return True


@functools.cache
def shared_memory(device: int) -> int:
    """How many bytes of it a program may have."""
    driver = importlib.import_module("triton").runtime.driver.active
    return int(driver.utils.get_device_properties(device)["max_shared_mem"])
