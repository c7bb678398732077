"""Provenance of a run: code, commit, library versions, device, and peak memory."""

from __future__ import annotations

import hashlib
import platform
import resource
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

LIBRARIES = ("torch", "lightning", "hydra-core", "torchmetrics", "numpy")


def machine(device: torch.device) -> dict[str, Any]:
    """Versions, device and number of threads."""
    import torch  # slow to import, and a report only needs `commit`

    return {
        "python": platform.python_version(),
        "versions": dict(versions()),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
    }


def commit(*paths: str) -> str | None:
    """Commit of the source tree, followed by "+" if the tree, or one of its `paths`, has uncommitted changes.

    None outside a checkout.
    """
    source = Path(__file__).parent.parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(source), *arguments]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")
        changed = git("status", "--porcelain", "--", *(paths or [":/"]))
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


@cache  # each is read from the metadata of its package
def versions() -> dict[str, str]:
    """Installed versions of `LIBRARIES`. Cached: do not change what is returned."""
    return {name: version(name) for name in LIBRARIES}


@cache
def package_digest() -> str:
    """SHA-256 of the package's modules, which identifies the source with or without a checkout."""
    digest = hashlib.sha256()
    package = Path(__file__).parent.parent
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def made_by() -> str:
    """Versions that must be unchanged for a run to resume to the same weights.

    So must the code that it depends on, by which its folder is named.
    """
    return f"torch {versions()['torch']}, lightning {versions()['lightning']}"


def reset_peak_memory() -> None:
    """Reset the measured peak, so that a second job in the same process does not report the peak of the first."""
    import torch  # as in `machine`

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):  # not on Linux: the peak is then that of the whole process
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory(device: torch.device) -> dict[str, int]:
    """Peak bytes in main memory, and in GPU memory if there is a GPU."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    measured = [1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS, in KiB on Linux
    peak = {"main": measured[0] if measured else unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
    if device.type == "cuda":
        import torch  # as in `machine`

        peak["device"] = torch.cuda.max_memory_allocated(device)
    return peak
