"""What a run leaves behind: metrics.json, predictions to be scored by anyone, and where it was made."""

from __future__ import annotations

import csv
import hashlib
import json
import platform
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from seqeval.metrics import f1_score
from torch import nn

from ner_experiments.data.sentence import Sentence, Task
from ner_experiments.data.tags import encode, strict_spans
from ner_experiments.runs.predictions import as_field, read_file
from ner_experiments.utils.files import replacing

LIBRARIES = ("torch", "lightning", "hydra-core", "torchmetrics", "numpy")


def write_json(path: Path, content: Any) -> None:
    with replacing(path) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=columns)
        writer.writeheader()
        writer.writerows(rows)


def write_predictions(
    path: Path, task: Task, sentences: Sequence[Sentence], predicted: Iterable[Sequence[str]]
) -> None:
    """Token, gold and predicted tag, one space between: ready for conlleval.

    Mentions are written as IOB2. Spaces in a token or tag become U+2423: every line has three fields.
    """
    path.parent.mkdir(exist_ok=True)
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        for sentence, tags in zip(sentences, predicted, strict=True):
            columns = [sentence.tags, tags] if task == "tags" else [iob2(sentence.tags), iob2(tags)]
            for fields in zip(sentence.words, *columns, strict=True):
                file.write(" ".join(map(as_field, fields)) + "\n")
            file.write("\n")


def seqeval_f1(path: Path) -> float:
    """F1 of a file of predicted mentions, by seqeval."""
    found = read_file(path)
    gold, predicted = [[*it.gold] for it in found], [[*it.predicted] for it in found]
    return float(f1_score(gold, predicted, zero_division=0))


def iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """The strict mentions of BIOES tags, so that conlleval finds what the metric counted."""
    return encode(strict_spans(tags), len(tags), "iob2")


def machine(device: torch.device) -> dict[str, Any]:
    """What a figure in seconds depends on, and which code ran."""
    return {
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
        "code": code(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
    }


def count_parameters(tagger: nn.Module) -> dict[str, Any]:
    """What is trained: in all, per part, and the encoder's weights without biases.

    The last is the paper's count of Zukov-Gregoric et al. (2018): 4(nm + n^2) per LSTM and direction.
    """
    parts: Counter[str] = Counter()
    weights = 0
    for name, parameter in tagger.named_parameters():
        part = part_of(name)
        if parameter.requires_grad:
            parts[part] += parameter.numel()
            weights += parameter.numel() * (part == "model" and "bias" not in name)
    return {"parameters": parts.total(), "parameters_of": dict(parts), "model_weights": weights}


def part_of(name: str) -> str:
    """Of a parameter: words, direct.spelling, model, output, decoder."""
    places = name.split(".")
    if places[0] == "inputs":
        return places[1]
    return ".".join(places[: 2 if places[0] == "direct" else 1])


def describe(counts: dict[str, Any]) -> str:
    """`count_parameters` in a line."""
    parts = ", ".join(f"{name} {number:,}" for name, number in counts["parameters_of"].items())
    weights = f"{counts['model_weights']:,} of the model without biases"
    return f"{counts['parameters']:,} parameters ({parts}; {weights})"


def commit(*paths: str) -> str | None:
    """Of the source tree, with "+" where that, or `paths` of it, changed since; None outside a checkout."""
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


@cache
def code() -> str:
    """Which source this is, in a checkout or not: a checksum of the package's modules."""
    digest = hashlib.sha256()
    package = Path(__file__).parent.parent
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def made_by() -> str:
    """What has to be the same for a run to go on as if nothing had happened."""
    return f"code {code()[:12]}, torch {version('torch')}, lightning {version('lightning')}"


def reset_peak_memory() -> None:
    """Starts a new measurement, so that the second job of a process is not charged with the first one's."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):  # not Linux: the peak is then that of the whole process
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory(device: torch.device) -> dict[str, int]:
    """Bytes in main memory, and on the device where there is one."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    measured = [1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    peak = {"main": measured[0] if measured else unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}
    if device.type == "cuda":
        peak["device"] = torch.cuda.max_memory_allocated(device)
    return peak
