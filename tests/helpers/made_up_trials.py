"""A xor.json in the format of `ner-experiments xor`, with made-up figures."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ner_experiments.runs import artifacts

HOW = {
    "seconds": 90.0,
    "processes": 2,
    "versions": {"torch": "2"},
    "code": "def",
    "device": "test",
    "threads": 1,
    "commit": "abc",
}


def model(
    softmax: Sequence[int], crf: Sequence[int], interactions: Sequence[float] = (0.0,), step: int = 5
) -> dict[str, Any]:
    """Correct phrases per seed, and interactions per draw."""
    steps = [step] * len(softmax)
    figures = {"right_softmax": softmax, "right_crf": crf, "steps_softmax": steps, "steps_crf": steps}
    return {"layers": 2, "interactions": interactions, **figures}


def write(folder: Path, models: Mapping[str, Any], **changed: Any) -> Path:
    """Write the file with `changed` applied to its keys; None removes a key."""
    content = {"config": {}, "models": models, "certificates": [], **HOW, **changed}
    path = folder / "xor.json"
    folder.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in content.items() if value is not None}
    path.write_text(json.dumps(artifacts.add_checksum(kept)), encoding="utf-8")
    return path
