"""What identifies a file's content."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sha256(path: Path) -> str:
    """SHA-256 of the file's bytes in hexadecimal, read as a stream."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
