"""Input and output of each driver: a folder with the corpus and the settings, and one JSON file."""

import argparse
import importlib.metadata
import json
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

Tag = Callable[[Iterable[str]], Iterator[tuple[str, list[tuple[int, int, str]]]]]
"""Yields each line with its mentions: first character, the one after the last, and type."""


class Task(NamedTuple):
    folder: Path
    settings: dict[str, Any]
    output: Path

    @property
    def train(self) -> Path:
        return self.folder / "train.conll"

    @property
    def decode(self) -> Path:
        return self.folder / "decode.conll"

    @property
    def vectors(self) -> Path:
        return self.folder / "vectors.txt"


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    return parser


def task(arguments: argparse.Namespace) -> Task:
    settings = json.loads((arguments.folder / "settings.json").read_text(encoding="utf-8"))
    return Task(arguments.folder, settings, arguments.output)


def write(task: Task, *, train: list[float], decode: list[float], version: str, settings: Any) -> None:
    """Write the seconds of each epoch and of each decoding pass; the first of each is a warm-up."""
    outcome = {
        "train_seconds": train,
        "decode_seconds": decode,
        "peak_memory_bytes": peak_memory(),
        "version": f"{version}, torch {importlib.metadata.version('torch')}",
        "settings": settings,
    }
    task.output.write_text(json.dumps(outcome), encoding="utf-8")


def text_task() -> tuple[Task, Path]:
    """The task, and the text to tag, a file of its folder."""
    options = parser()
    options.add_argument("text")
    arguments = options.parse_args()
    return task(arguments), arguments.folder / arguments.text


def tag_lines(task: Task, text: Path, tag: Tag, version: str) -> None:
    """Tag the lines of a text, write the mentions as JSON Lines, and write the seconds that both took."""
    started = time.perf_counter()
    with text.open(encoding="utf-8") as lines, text.with_suffix(".jsonl").open("w", encoding="utf-8") as file:
        for line, mentions in tag(line.rstrip("\n") for line in lines):
            found = [{"start": start, "end": end, "type": kind} for start, end, kind in mentions]
            file.write(json.dumps({"text": line, "mentions": found}) + "\n")
    write_tagging(task, time.perf_counter() - started, version)


def write_tagging(task: Task, seconds: float, version: str) -> None:
    task.output.write_text(json.dumps({"seconds": seconds, "version": version}), encoding="utf-8")


def peak_memory() -> int:
    """Peak memory of this process alone: ru_maxrss starts at the size of the parent process."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    measured = [1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return measured[0] if measured else 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def read(path: Path) -> list[tuple[list[str], list[str]]]:
    """Words and tags of each sentence of a file of two columns."""
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    rows = [[line.split(" ") for line in block.split("\n")] for block in blocks]
    return [([word for word, _ in block], [tag for _, tag in block]) for block in rows]
