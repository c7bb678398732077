"""Commands to interrupt and repeat, and the final content of their runs."""

import json
import re
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

TINY = [
    "data.sentences={train: 30, dev: 20, test: 20}",
    "model.hidden_size=8",
    "model.dense_size=8",
    "model.dropout=0.3",
    "chars.module.num_filters=4",
    "batches.tokens=30",
    "optimizer.lr=0.01",
    "schedule=linear",
    "trainer.max_epochs=3",
    "runtime.accelerator=cpu",
    "runtime.checkpoint_seconds=0",
]
RUN = ["train", "model=residual", "layers=1", *TINY]
SWEEP = ["train", "-m", "model=residual", "layers=1,2", "seed=1,2", *TINY]
OF_THE_MACHINE = {"seconds", "tokens_per_second", "peak_memory_bytes", "files", "sha256"}


def outcome(output: Path) -> dict[str, Any]:
    """Content of each finished run in a folder, except its times."""
    found = {}
    for path in sorted(output.glob("*/seed-*/metrics.json")):
        metrics = json.loads(path.read_text())
        weights = load_file(path.parent / "model.safetensors")
        found[str(path.parent.relative_to(output))] = {
            "metrics": {name: value for name, value in metrics.items() if name not in OF_THE_MACHINE},
            "weights": {name: weight.numpy().tobytes() for name, weight in weights.items()},
            "predictions": (path.parent / "predictions" / "test.conll").read_bytes(),
            "log": [row.rsplit(",", 2)[0] for row in (path.parent / "log.csv").read_text().splitlines()],
        }
    return found


def stamps(output: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in output.glob("*/seed-*/metrics.json")}


def lines_of(log: Path) -> int:
    """Number of lines of the suite that the last command executed."""
    return int(re.findall(r"^(\d+) lines$", log.read_text(), flags=re.MULTILINE)[-1])
