"""Checks of the values of settings, and of the files and devices that they name, before any job is started.

`overrides.check` covers names and types, this module ranges of numbers (`RANGES`, also a source of the reference in
docs/configuration.md), required values, GPUs and files. Nothing here imports torch.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ner_experiments.config.choices import chosen, is_choice, parse
from ner_experiments.config.compose import compose
from ner_experiments.config.config_dirs import file_of
from ner_experiments.config.corpora import instantiated
from ner_experiments.config.identity import inputs
from ner_experiments.config.init_from import first_run
from ner_experiments.config.plain_yaml import load
from ner_experiments.data import corpus
from ner_experiments.data.needed_files import check_input
from ner_experiments.modules.checks import REDUCTIONS
from ner_experiments.utils.ranges import AT_LEAST_0, AT_LEAST_1, POSITIVE, PROBABILITY, RATE, Range
from ner_experiments.utils.text import truncated_repr

MAX_NAME_BYTES = 150
"""Maximum length of a corpus's name, which begins the names of folders; most file systems allow 255 bytes."""
INPUT_GROUPS = ("words", "chars", "features", "direct")
WANDB = "ner_experiments.loggers.wandb.wandb"
SIZE = Range(1, 65_536)
DEPTH = Range(1, 1_000)
SIZES = (
    *("hidden_size", "dense_size", "num_units", "unit_size", "num_heads", "head_size", "dim", "num_filters"),
)
RANGES: Mapping[str, Range] = {
    **dict.fromkeys(SIZES, SIZE),
    "layers": DEPTH,
    "num_layers": DEPTH,
    "batches.tokens": AT_LEAST_1,
    "batches.sentences": AT_LEAST_1,
    "pool": AT_LEAST_1,
    "min_count": AT_LEAST_1,
    "trainer.max_epochs": AT_LEAST_1,
    "trainer.patience": AT_LEAST_1,
    "trainer.gradient_clip": AT_LEAST_0,
    "trainer.train_batches": AT_LEAST_0,
    "trainer.devices": AT_LEAST_1,
    "trainer.num_nodes": AT_LEAST_1,
    "dropout": RATE,
    "held_out": RATE,
    "bound": POSITIVE,
    "replace_singletons": PROBABILITY,
    "widths": AT_LEAST_1,
    "weight": AT_LEAST_0,
    "window": AT_LEAST_0,
    "chars.input.max_length": AT_LEAST_1,
    "words.input.max_length": Range(3),
    "words.input.overlap": AT_LEAST_0,
    "max_sentences": AT_LEAST_1,
    "optimizer.lr": Range(0, 1e30, above=True),
    "optimizer.weight_decay": AT_LEAST_0,
    "optimizer.momentum": AT_LEAST_0,
    "optimizer.momentum_decay": AT_LEAST_0,
    "schedule.warmup": RATE,
    "seed": Range(0, 2**32 - 1),
    "runtime.threads": Range(1, 1_024),
    "runtime.checkpoint_seconds": AT_LEAST_0,
    "runtime.ddp_seconds": AT_LEAST_1,
    "audit.gradients": AT_LEAST_0,
    "logger.sentences": AT_LEAST_0,
    "hydra.launcher.jobs": AT_LEAST_0,
    "hydra.launcher.jobs_per_gpu": AT_LEAST_0,
    "hydra.launcher.gpus_per_job": AT_LEAST_1,
    "hydra.launcher.minutes": AT_LEAST_0,
    "hydra.sweeper.n_trials": AT_LEAST_1,
    "hydra.sweeper.n_jobs": AT_LEAST_1,
    "hydra.sweeper.sampler.seed": AT_LEAST_0,
}
"""Ranges by dotted name, or by its last part. In a list, each number is checked."""

ACCELERATORS = ("auto", "cpu", "gpu", "cuda", "mps")
WORDS: Mapping[str, Sequence[str]] = {
    "reduction": REDUCTIONS,
    "runtime.accelerator": ACCELERATORS,
    "runtime.cuda_graphs": ("auto", "true", "false"),
    "runtime.reuse": ("unchanged", "any"),
    "trainer.precision": ("32-true", "bf16-mixed"),
}
"""Allowed words of a setting, by name as in `RANGES`."""


def check_jobs(jobs: Sequence[Sequence[str]], *, files: bool = True, devices: bool = True) -> None:
    """Raise ValueError for the first job, given by its overrides, that cannot be run.

    files, devices: whether to look for them on this machine; the nodes of a cluster have their own.
    """
    seen: set[str] = set()
    for overrides in jobs:
        refuse_removal(overrides)
        settings, missing = plain(compose(overrides))
        if missing:
            raise ValueError(needs(missing[0], overrides))
        check_settings(settings)
        if devices:
            check_accelerator(settings["runtime"]["accelerator"])
        if files:
            for part in (settings, first_run(settings)):
                check_files(part, seen)


def check_experiment(cfg: DictConfig) -> None:
    """Raise ValueError for a required setting without a value, and for a value that no experiment can have."""
    settings, missing = plain(cfg)
    if missing:
        raise ValueError(f"{missing[0]} has no value, but is required: {missing[0]}=...")
    check_settings(settings)


def check_settings(settings: Mapping[str, Any]) -> None:
    for part in (settings, settings["init_from"]):
        check_ranges(part)
    check_name(settings["data"]["name"])
    if not any(inputs({part: settings[part] for part in INPUT_GROUPS})):
        raise ValueError(f"{', '.join(INPUT_GROUPS)}: all are none, so the tagger has no input")
    check_project(settings["logger"])
    check_output_dir(settings["output_dir"])
    processes = settings["trainer"]["devices"] * settings["trainer"]["num_nodes"]
    if settings["runtime"]["cuda_graphs"] is True and processes > 1:
        raise ValueError(
            f"runtime.cuda_graphs=true: graphs do not average gradients over {processes} processes; use auto or false"
        )


def refuse_removal(overrides: Sequence[str]) -> None:
    """Raise ValueError for an override that removes a setting, such as ~seed."""
    for item in overrides:
        if item.startswith("~"):
            name = item[1:].partition("=")[0]
            raise ValueError(f"~{name}: an experiment needs each of its settings; to change it: {name}=VALUE")


def check_output_dir(name: str) -> None:
    """Raise ValueError if the name is empty, a part of the path is no folder, or a missing folder cannot be made."""
    if not name:
        raise ValueError("output_dir is empty; the current folder is output_dir=.")
    for place in (Path(name), *Path(name).parents):
        if place.exists() and not place.is_dir():
            raise ValueError(f"output_dir={name}: expected a folder, but {place} is not one")
    if Path(name).exists():
        return
    above = next((place for place in Path(name).parents if place.exists()), Path())
    try:  # permissions alone do not tell: root may write everywhere, but /proc takes no folder
        TemporaryDirectory(dir=above).cleanup()
    except OSError as error:
        raise ValueError(f"output_dir={name}: no folder can be made in {above}: {error.strerror}") from error


def plain(cfg: DictConfig) -> tuple[dict[str, Any], list[str]]:
    """The settings as plain values, and the names of those that lack a required value.

    ValueError for a reference that cannot be resolved.
    """
    try:
        missing = sorted(OmegaConf.missing_keys(cfg))
        settings = OmegaConf.to_container(cfg, resolve=True)
    except OmegaConfBaseException as error:
        raise ValueError(f"{error.full_key}: {str(error).splitlines()[0]}") from error
    assert isinstance(settings, dict)
    return {str(name): value for name, value in settings.items()}, missing


def needs(key: str, overrides: Sequence[str]) -> str:
    """The message for a required setting without a value: who needs it, and the comment on it in conf/."""
    group, _, name = key.partition(".")
    files = chosen(tuple(str(item.input_line) for item in parse(overrides) if is_choice(item))).files
    who = f"{group}={files[group]}" if group in files else group
    leaf = re.compile(rf"^ *{re.escape(name.rpartition('.')[2])}: *\?\?\? *# *(.*)$", re.MULTILINE)
    paths = lineage(f"{group}/{files[group]}") if group in files else ()
    texts = [file_of(path).read_text(encoding="utf-8") for path in paths]
    comments = [found[1] for text in texts if (found := leaf.search(text))]
    return f"{who} needs {key}=...{''.join(f', {comment}' for comment in comments[:1])}"


def lineage(path: str) -> Iterator[str]:
    """The file of a group, such as words/bert_frozen, and those that it builds on."""
    yield path
    for item in load(file_of(path)).get("defaults", ()):
        if isinstance(item, str) and item != "_self_":
            yield from lineage(f"{path.partition('/')[0]}/{item}")


def check_name(name: Any) -> None:
    """ValueError unless the corpus's name can begin the name of a folder."""
    if not isinstance(name, str) or not name.isprintable() or not name.strip(". ") or {"/", "\\"} & set(name):
        raise ValueError(
            f"data.name must be printable text without / and \\, as it begins the names of folders, "
            f"got {truncated_repr(name)}"
        )
    if len(name.encode()) > MAX_NAME_BYTES:
        raise ValueError(f"data.name must have at most {MAX_NAME_BYTES} bytes, got {truncated_repr(name)}")


def check_project(logger: Mapping[str, Any]) -> None:
    """Raise ValueError for a project name that W&B would reject only after the run has started."""
    project = str(logger.get("project", ""))
    if logger["_target_"] == WANDB and not re.fullmatch(r"[^/\\#?%:]{1,128}", project):
        raise ValueError(
            f"logger.project must have 1 to 128 characters, none of them / \\ # ? % :, got {truncated_repr(project)}"
        )


def check_ranges(settings: Mapping[Any, Any] | DictConfig, prefix: str = "") -> None:
    """Raise ValueError for the first number outside its range, or word that is not allowed."""
    for name, value in settings.items():
        key = f"{prefix}{name!s}"
        if isinstance(value, Mapping | DictConfig):
            check_ranges(value, f"{key}.")
            continue
        limits = RANGES.get(key) or RANGES.get(str(name))
        if limits is not None:
            for number in numbers(value):
                limits.check(key, number)
        words = WORDS.get(key) or WORDS.get(str(name))
        if words and (str(value).lower() if isinstance(value, bool) else value) not in words:
            raise ValueError(f"{key} must be one of {', '.join(words)}, got {value}")


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from numbers(each)


def check_accelerator(name: str) -> None:
    """Raise ValueError if the accelerator is a GPU, and this machine has none that PyTorch can use."""
    if name in ("gpu", "cuda", "mps") and (lack := lack_of_gpu()):
        raise ValueError(
            f"runtime.accelerator={name}: {lack}; on processors: runtime.accelerator=cpu, or auto"
        )


@cache
def lack_of_gpu() -> str:
    """Why no GPU can be used, as far as files show; empty if nothing speaks against it."""
    if sys.platform == "darwin":
        return "" if platform.machine() == "arm64" else "there is no GPU here"
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides all GPUs"
    devices = [*Path("/dev").glob("nvidia[0-9]*"), *Path("/dev").glob("kfd"), *Path("/dev").glob("dxg")]
    if sys.platform == "linux" and not devices:
        return "there is no GPU here"
    torch = find_spec("torch")
    build = Path(torch.origin).with_name("version.py") if torch and torch.origin else None
    if build and build.is_file():
        text = build.read_text(encoding="utf-8")
        if re.search(r"^cuda.*= None$", text, re.MULTILINE) and re.search(
            r"^hip.*= None$", text, re.MULTILINE
        ):
            return "the installed PyTorch is a build for CPUs"
    return ""


def check_files(settings: Mapping[str, Any], seen: set[str]) -> None:
    """Raise ValueError for a missing file of the corpus or an input. Skips settings in `seen`, and adds the others."""
    data = json.dumps(settings["data"])
    if data not in seen:
        corpus.check(instantiated(settings["data"]))
        seen.add(data)
    for reader in inputs(dict(settings)):
        text = json.dumps(reader)
        if text not in seen:
            check_input(reader)
            seen.add(text)
