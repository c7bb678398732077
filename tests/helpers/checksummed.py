"""Changes to JSON files that record their own checksum, such as archived runs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ner_experiments.runs.artifacts import add_checksum


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the content of a file, and its checksum with it."""
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["sha256"]
    change(content)
    path.write_text(json.dumps(add_checksum(content)), encoding="utf-8")
