"""Run folders as somebody could craft them: each file with other values, and with checksums that fit."""

import copy
import json
import random
import shutil
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from safetensors.torch import load_file, save_file

from ner_experiments.main import cli
from ner_experiments.runs import artifacts
from ner_experiments.tables import spec
from ner_experiments.utils.files import sha256

VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 10**30, 1.5, float("nan"), float("inf")),
    *("", "x", "../../escape", "/dev/null", "a\u202eb\x1b[31m", "<script>alert(1)</script>", "x" * 10_000),
    *([], {}, [1], [[]], {"x": 1}, [None], ["S-X"]),
)
"""Values that replace one of a file."""


def places(node: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a structure of mappings and lists; of a long list, those of its first two."""
    items: Any = (
        node.items() if isinstance(node, dict) else enumerate(node[:2]) if isinstance(node, list) else ()
    )
    for key, child in items:
        yield (*place, key)
        yield from places(child, (*place, key))


def changed(content: Any, chance: random.Random) -> Any:
    """The content with one value replaced, removed or added."""
    content = copy.deepcopy(content)
    *parents, key = chance.choice([*places(content)])
    node = content
    for parent in parents:
        node = node[parent]
    if chance.random() < 0.15:
        del node[key]
    elif chance.random() < 0.15 and isinstance(node, dict):
        node[f"{key}x"] = node[key]
    else:
        node[key] = chance.choice(VALUES)
    return content


def craft(run: Path, chance: random.Random) -> str:
    """Change one file of a run's folder, and record its checksum; returns the file's name."""
    name = chance.choice([*NAMES])
    path = run / name
    if name.endswith(".json"):
        path.write_text(json.dumps(changed(json.loads(path.read_text()), chance)))
    elif name == artifacts.CONFIG:
        path.write_text(yaml.safe_dump(changed(yaml.safe_load(path.read_text()), chance)))
    elif name == artifacts.WEIGHTS:
        weights = load_file(path)
        weight = chance.choice(sorted(weights))
        tensor = weights.pop(weight)
        how = chance.randrange(4)
        if how:
            weights[weight if how > 1 else f"{weight}x"] = [tensor, tensor[:0], tensor[None], tensor][
                how
            ].clone()
        save_file(weights, path)
    else:
        lines = path.read_text().split("\n")
        place = chance.randrange(len(lines) - 1)
        lines[place] = chance.choice(
            ["", "x", "a b", "a B-PER B-PER x", " O O", "\x1b\u202e O S-X", "nan,inf,1", "nan"]
        )
        path.write_text("\n".join(lines))
    seal(run)
    return name


NAMES = (artifacts.METRICS_FILE, artifacts.METRICS_FILE, artifacts.CONFIG, artifacts.ENCODER, artifacts.LOG)
NAMES += (artifacts.WEIGHTS, *artifacts.PREDICTIONS, artifacts.PROBABILITIES)


def seal(run: Path) -> None:
    """Make the checksums in metrics.json those of the files and of itself."""
    path = run / artifacts.METRICS_FILE
    content = json.loads(path.read_text())
    content.pop(artifacts.CHECKSUM, None)
    if isinstance(content.get(artifacts.FILES), dict):
        for name in content[artifacts.FILES]:
            if (run / name).is_file():
                content[artifacts.FILES][name] = sha256(run / name)
    path.write_text(json.dumps(artifacts.add_checksum(content)))


def copy_of(run: Path, folder: Path) -> Path:
    """A fresh copy of a finished run in an output folder of its own; returns the copy."""
    shutil.rmtree(folder, ignore_errors=True)
    there = folder / "outputs" / run.parent.name / run.name
    shutil.copytree(run, there)
    return there


def check(command: list[str], output: Path) -> None:
    """Run a command of the suite: it ends within 30 seconds with a result, or with a printable line about `output`."""
    printed, said, began = StringIO(), StringIO(), time.monotonic()
    with redirect_stdout(printed), redirect_stderr(said), patch.object(spec, "names", list):
        status = cli(command)
    assert time.monotonic() - began < 30, command
    if status and command[0] != "watch":  # which shows a failed run, and says so by its status
        last = said.getvalue().rstrip("\n").split("\n")[-1]
        assert status == 1, (command, status)
        assert str(output) in last, (command, last)
        assert last.isprintable(), (command, last)


def content(folder: Path, *, besides: Path) -> dict[str, bytes]:
    """Every file below a folder and what it contains."""
    paths = [path for path in folder.rglob("*") if path.is_file() and besides not in path.parents]
    return {str(path): path.read_bytes() for path in paths}
