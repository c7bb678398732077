"""Overrides as Hydra parses them, and the settings of those that choose files (`model=...`, `data=...`).

Hydra composes each combination of choices once per process, which takes a tenth of a second. Values such as `layers=3`
are set in a copy, so that the jobs of a sweep over values share one composition, and a setting of a swept choice
(`model=residual,attention model.dropout=0.1`) is set after the choice is made.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hydra
import omegaconf
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import OverrideParseException
from omegaconf import DictConfig, OmegaConf, open_dict

from ner_experiments.config.conf import CONFIG_NAME, hydra_context, loader, options
from ner_experiments.config.config_dirs import folders
from ner_experiments.utils.files import atomic_write, json_digest

HYDRA = "hydra"
"""Key of Hydra's own settings, and first part of the names of their groups."""
OPEN = ("data.columns", "audit.extra_tests")
"""Mappings to which any key may be added, as corpora have columns, and runs further test sets, of any name."""


@dataclass(frozen=True)
class Chosen:
    """The settings of choices, and the file that is chosen in each group, such as "residual" for "model"."""

    settings: DictConfig
    files: Mapping[str, str]


def parse(overrides: Sequence[str]) -> list[Override]:
    """The overrides as Hydra parses them; do not change them. ValueError for one that its grammar does not have."""
    return [parse_one(override) for override in overrides]


@cache  # the jobs of a sweep have few different overrides
def parse_one(override: str) -> Override:
    with hydra_context():
        try:
            return OverridesParser.create(config_loader=loader()).parse_overrides([override])[0]
        except OverrideParseException as error:
            raise ValueError(f"{override}: {grammar_rule(override)}") from error


def grammar_rule(override: str) -> str:
    """The rule of Hydra's grammar that an unreadable override breaks."""
    key, separator, value = override.partition("=")
    if not separator or not re.fullmatch(r"[+~]*[A-Za-z_][\w.$/@:-]*", key, re.ASCII):
        return "expected KEY=VALUE, such as seed=1"
    if value.startswith(("[", "{")):
        return "not a valid list or mapping: close all brackets, and quote texts with special characters"
    if value.endswith(","):
        return "it ends with a comma: write the values of a sweep without spaces, such as seed=1,2,3"
    quoted = shlex.quote(f"{key}={as_value(value)}")
    if re.match(r"\w+\(", value):
        return f"Hydra has no such function; to pass this as text, quote it: {quoted}"
    return f"quote values with special characters: {quoted}"


def is_for_hydra(item: Override) -> bool:
    return re.split(r"[./]", item.key_or_group)[0] == HYDRA


def is_choice(item: Override) -> bool:
    """Whether an override chooses files, by Hydra's rule: `model=residual`, but not `model={hidden_size: 50}`."""
    return bool(options(item.key_or_group)) and not isinstance(item.value(), dict)


@cache  # all jobs of a sweep have the same overrides for Hydra, and few different choices
def composed(overrides: tuple[str, ...]) -> DictConfig:
    """The config that Hydra composes, with its own settings at `hydra`. Cached: do not change the result."""
    with hydra_context():
        return hydra.compose(CONFIG_NAME, overrides=[*overrides], return_hydra_config=True)


@cache
def chosen(choices: tuple[str, ...]) -> Chosen:
    """The settings of the chosen files. Cached: do not change what is returned. HydraException for an unknown one.

    Also kept on disk, by the content of conf/: the rows of all tables have a hundred combinations of choices, for which
    Hydra needs ten seconds in each command.
    """
    digest = json_digest([conf_digest(tuple(folders())), choices])
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = caches / f"ner_experiments/conf/{digest}.json"
    try:
        settings, files = json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there yet, or damaged
        composition: Any = OmegaConf.to_container(composed(choices))
        settings = {name: part for name, part in composition.items() if name != HYDRA}
        files = composition[HYDRA]["runtime"]["choices"]
        with suppress(OSError):  # such as a home that cannot be written
            kept.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(kept) as part:
                part.write_text(json.dumps([settings, files]), encoding="utf-8")
    cfg = OmegaConf.create(settings)
    OmegaConf.set_struct(cfg, True)  # as Hydra does: a key that is not in conf/ is an error
    return Chosen(cfg, files)


@cache
def conf_digest(folders: tuple[Path, ...]) -> str:
    """The digest of all that a composition depends on: the files of conf/ and of the user's, and Hydra."""
    contents = {
        f"{number}: {path.relative_to(folder)}": hashlib.sha256(path.read_bytes()).hexdigest()
        for number, folder in enumerate(folders)
        for path in sorted(folder.rglob("*.yaml"))
        if path.is_file()
    }
    return json_digest([hydra.__version__, omegaconf.__version__, contents])


def merged(overrides: Sequence[str]) -> DictConfig:
    """A new config of checked overrides with one value each: the choices by Hydra, then the other settings in turn."""
    own = [item for item in parse(overrides) if not is_for_hydra(item)]
    cfg = copy.deepcopy(chosen(tuple(str(item.input_line) for item in own if is_choice(item))).settings)
    for item in own:
        parent, _, name = item.key_or_group.rpartition(".")
        if is_choice(item):
            continue
        if item.is_delete():
            with open_dict(cfg):
                del (OmegaConf.select(cfg, parent) if parent else cfg)[name]
        else:
            new = parent in OPEN or item.key_or_group in OPEN or item.is_add() or item.is_force_add()
            OmegaConf.update(cfg, item.key_or_group, item.value(), merge=True, force_add=new)
    return cfg


def as_value(text: str) -> str:
    """The text quoted as one value in Hydra's grammar; `${...}` is escaped, to be resolved where it is used."""
    return QuotedString(text.replace("${", "\\${"), Quote.double).with_quotes()
