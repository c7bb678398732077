"""Fast composition: what `hydra.compose` returns without Hydra's own settings, in a fifth of the time.

Hydra reads and parses some thirty YAML files for every composition, ten of them for its own settings. Here each
file is parsed once per process and each combination of choices (`model=...`, `data=...`) is merged once; values such
as `layers=3` are then set in a copy. Which files are chosen, and what an override means, is left to Hydra's functions.
"""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Sequence
from functools import cache
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository
from hydra._internal.defaults_list import create_defaults_list
from hydra.core.default_element import GroupDefault, ResultDefault
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import OverrideParseException
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, OmegaConf

from ner_experiments.config.conf import CONFIG_NAME, loader
from ner_experiments.config.row_settings import as_value

HYDRA = "hydra"
"""Key of Hydra's own settings, and first part of the names of their groups."""


class ConfFiles(CachingConfigRepository):
    """The files of conf/, without Hydra's own settings, each parsed once. Do not change what is returned."""

    def __init__(self, config_loader: Any):
        super().__init__(config_loader.repository)
        self.config_loader = config_loader
        self.settings: dict[str, Any] = {}

    def load_config(self, config_path: str) -> ConfigResult | None:
        known = f"config_path={config_path}" in self.cache
        result = super().load_config(config_path)
        if result is not None and config_path == CONFIG_NAME and not known:
            assert isinstance(result.config, DictConfig)
            result.config.pop(HYDRA, None)
            result.defaults_list = [
                item for item in result.defaults_list or () if not chooses_for_hydra(item)
            ]
        return result

    def settings_of(self, file: ResultDefault) -> Any:
        """The settings of a file, nested as in the composition."""
        place = f"{file.config_path}@{file.package}"
        if place not in self.settings:
            self.settings[place] = self.config_loader._load_single_config(file, repo=self).config
        return self.settings[place]


def chooses_for_hydra(item: Any) -> bool:
    return isinstance(item, GroupDefault) and is_of_hydra(item.group or "")


def is_of_hydra(key: str) -> bool:
    return key.split(".")[0].split("/")[0] == HYDRA


@cache
def conf_files() -> ConfFiles:
    """conf/ as the first `hydra_context` of the process sees it."""
    return ConfFiles(loader())


def parse(overrides: Sequence[str]) -> list[Override]:
    """The overrides as Hydra parses them; do not change them. Requires a `hydra_context`. Errors: see `parse_with`."""
    return [parse_one(override) for override in overrides]


@cache  # the jobs of a sweep have few different overrides
def parse_one(override: str) -> Override:
    return parse_with(OverridesParser.create(config_loader=loader()), override)


def parse_with(parser: OverridesParser, override: str) -> Override:
    """The override as the parser reads it. ValueError for one that does not follow Hydra's grammar."""
    try:
        return parser.parse_overrides([override])[0]
    except OverrideParseException as error:
        raise ValueError(f"{override}: {grammar_rule(override)}") from error


def grammar_rule(override: str) -> str:
    """The rule of Hydra's grammar that an unreadable override breaks."""
    key, separator, value = override.partition("=")
    if not separator or not re.fullmatch(r"[+~]*[A-Za-z_][\w.$/@:-]*", key, re.ASCII):
        return "expected KEY=VALUE, such as seed=1"
    if value.startswith(("[", "{")):
        return "not a valid list or mapping: close all brackets, and quote texts with special characters"
    quoted = shlex.quote(f"{key}={as_value(value)}")
    if re.match(r"\w+\(", value):
        return f"Hydra has no such function; to pass this as text, quote it: {quoted}"
    return f"quote values with special characters: {quoted}"


def compose_quickly(overrides: Sequence[Override]) -> DictConfig:
    """The config of unchecked overrides, none of them a sweep or for Hydra itself. Requires a `hydra_context`."""
    values = [item for item in overrides if not is_choice(item)]
    cfg = copy.deepcopy(chosen(tuple(item.input_line for item in overrides if is_choice(item))))
    ConfigLoaderImpl._apply_overrides_to_config(values, cfg)
    return cfg


def is_choice(item: Override) -> bool:
    """Whether an override chooses files, by Hydra's rule: `model=residual`, but not `model={hidden_size: 50}`."""
    return conf_files().group_exists(item.key_or_group) and not isinstance(item.value(), dict)


@cache
def chosen_files(choices: tuple[str, ...]) -> list[ResultDefault]:
    """The files of the chosen options, in the order in which they are merged."""
    defaults = create_defaults_list(
        repo=conf_files(),
        config_name=CONFIG_NAME,
        overrides_list=parse(choices),
        prepend_hydra=False,
        skip_missing=False,
    )
    return list(defaults.defaults)


@cache
def chosen(choices: tuple[str, ...]) -> DictConfig:
    """The chosen files, merged; cached, so do not change what is returned."""
    cfg = OmegaConf.create()
    for file in chosen_files(choices):
        cfg.merge_with(conf_files().settings_of(file))
    OmegaConf.set_struct(cfg, True)  # as Hydra does: a key that is not in conf/ is an error
    return cfg
