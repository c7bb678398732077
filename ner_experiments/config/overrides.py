"""Checks of overrides against conf/, where Hydra itself is lenient.

Hydra lets `+trainer.max_epoch=3` add a key that nobody reads, and `layers=three` put a word where a number
belongs. Here each override is compared with the defaults of the chosen options (`model=...`, `data=...`): its key
must exist, and its value must have the default's type.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from hydra.core.override_parser.types import ChoiceSweep, Override, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from ner_experiments.config import init_from
from ner_experiments.config.choices import OPEN, as_value, chosen, is_for_hydra, parse, parse_one
from ner_experiments.config.conf import groups, options
from ner_experiments.config.identity import DEPTH
from ner_experiments.config.safe_yaml import leaves
from ner_experiments.config.targets import located
from ner_experiments.utils.text import did_you_mean

SWEEP_SETTINGS = ("table", "seeds", "sweep.name", "sweep.looks", "sweep.register", "sweep.primary")
"""Settings that the sweeper takes from the command line. Only sweep.name is also in conf/, as jobs have it too."""

NAMES_ELSEWHERE = {
    **dict.fromkeys(("lr", "learning_rate"), "optimizer.lr"),
    **dict.fromkeys(("epochs", "num_epochs"), "trainer.max_epochs"),
    **dict.fromkeys(("batch_size", "batch"), "batches.tokens; batches=random has batches.sentences"),
    **dict.fromkeys(("device", "accelerator", "gpu", "cuda"), "runtime.accelerator"),
    "gpus": "trainer.devices",
    "early_stopping": "trainer.patience",
    "hidden_dim": "model.hidden_size",
    "dataset": "data",
}
"""Settings by the names that other tools give them, where these are too different to be found as misspellings."""

ROWS_IN_A_FILE = "rows with settings of their own are a file in sweeps/ (docs/own_architecture.md)"
INIT_FROM = "init_from"
TYPES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}


def check(jobs: Sequence[Sequence[str]], overrides: Sequence[str]) -> None:
    """Raise ValueError for the first override of a job that names no setting, or gives it a value of the wrong type.

    overrides: those of which the jobs are made.
    """
    try:
        choices_of = [*map(choices_in, jobs)]
        swept = tuple(dict.fromkeys(choices_of))
        for job, choices in zip(jobs, choices_of, strict=True):
            for line in job:
                try:
                    check_setting(line, choices, swept)
                except ValueError as error:
                    if other := next((it for it in swept if has_setting(line, it)), None):
                        own = " ".join(item for item in choices if item not in other)
                        raise ValueError(f"{own}: {error}; {ROWS_IN_A_FILE}") from error
                    raise
    except HydraException as error:
        raise ValueError(refusal(error, overrides)) from error


def choices_in(job: Iterable[str]) -> tuple[str, ...]:
    """The choices of options among the overrides of a job. ValueError as `checked_choice`."""
    return tuple(filter(None, map(checked_choice, job)))


def unless_all_have(advice: str, jobs: Iterable[Sequence[str]]) -> str:
    """The end of a message that advises a setting, as `words.input.path=...`, if some jobs of a sweep lack it."""
    settings = needs([*dict.fromkeys(map(choices_in, jobs))])
    advised = re.findall(r"([\w.]+)=\.\.\.", advice)
    if key := next((it for it in advised if settings.get(it)), ""):
        return f"; {key} is a setting of {settings[key]} alone, and {ROWS_IN_A_FILE}"
    return ""


def has_setting(line: str, choices: tuple[str, ...]) -> bool:
    """Whether an override is valid beside these choices of options."""
    try:
        check_setting(line, choices, (choices,))
    except ValueError:
        return False
    return True


def refusal(error: HydraException, overrides: Sequence[str]) -> str:
    """Why Hydra refuses overrides, in one line. Names the override of a part that, say, the chosen model lacks."""
    reason = str(error).splitlines()[0]
    if group := re.match(r"Could not override '(.+?)'\. No match in the defaults list", reason):
        parent, _, part = group[1].rpartition("/")
        line = next((item for item in overrides if item.startswith(f"{group[1]}=")), group[1])
        return f"{line}: the chosen {parent} has no part {part!r}"
    return reason


def refuse_several_values(items: Iterable[Override], advice: str) -> None:
    """Raise ValueError for an override with several values; `advice` says what to do for a sweep."""
    for item in items:
        refuse_interval(item)
        if item.is_sweep_override():
            values = item.value()
            if isinstance(values, ChoiceSweep) and any(
                isinstance(it, str | QuotedString) for it in values.list
            ):
                quoted = f"{item.key_or_group}='{as_value(item.get_value_string())}'"
                advice += f"; to pass one text with a comma, quote it: {quoted}"
            raise ValueError(f"{item.input_line}: several values make a sweep: {advice}")


def refuse_interval(item: Override) -> None:
    """Raise ValueError for an interval, from which only a search can draw values."""
    if item.is_interval_sweep():
        raise ValueError(f"{item.input_line}: an interval can only be searched: add hydra/sweeper=optuna")


def split(overrides: Sequence[str]) -> list[list[str]]:
    """The cartesian product of the overrides' values; of several overrides of a setting, the last one counts.

    Raises ValueError for an override without any value, such as seed=range(0), and for an interval.
    """
    choices: dict[str, list[str]] = {}
    for item in parse(overrides):
        key = item.get_key_element()
        refuse_interval(item)
        if not item.is_sweep_override():
            choices[key] = [f"{key}={item.get_value_element_as_str()}"]
        elif values := [*item.sweep_string_iterator()]:
            choices[key] = [f"{key}={value}" for value in values]
        else:
            raise ValueError(f"{item.input_line}: no value, so there is nothing to run")
    return [[*job] for job in itertools.product(*choices.values())]


@cache  # the jobs of a sweep have few different overrides
def checked_choice(line: str) -> str | None:
    """The choice of an option that an override makes, such as model=residual; None for any other override.

    Raises ValueError for an option that is not there.
    """
    item = parse_one(line)
    group = item.key_or_group
    if is_for_hydra(item) or not options(group):
        return None
    choice = item.value()
    if isinstance(choice, list):
        raise ValueError(f"{item.input_line}: {group} takes one choice, not a list")
    if choice not in options(group):
        name = choice if isinstance(choice, str) else item.get_value_string()
        here = Path("conf", group, f"{name}.yaml")  # where `data new` and `new` write outside a checkout
        more = f"; for {here}: --config-dir conf" if here.is_file() else did_you_mean(name, options(group))
        raise ValueError(f"{line}: {group} has no {name!r}{more}")
    return f"{group}={item.get_value_string()}"


@cache  # as `checked_choice`
def check_setting(line: str, choices: tuple[str, ...], swept: tuple[tuple[str, ...], ...]) -> None:
    """Check an override beside these choices of options, of which it may be one.

    swept: the different choices of all jobs, among which messages look for what fits.
    """
    item = parse_one(line)
    if is_for_hydra(item):
        return
    defaults = chosen(choices).settings
    if not options(item.key_or_group):
        known = known_keys(choices)
        added_to_first_run = item.key_or_group.startswith(f"{INIT_FROM}.") and item.key_or_group not in known
        if not added_to_first_run or item.is_delete():
            check_key(item, choices, swept)
            if not (item.is_delete() or item.is_sweep_override()):
                check_type(line, item.key_or_group, item.value(), item.get_value_string(), defaults)
        if (added_to_first_run or item.key_or_group == INIT_FROM) and not item.is_delete():
            check_init_from(item, choices, swept)
    if item.key_or_group == DEPTH and not refers_to(defaults, DEPTH):
        deep = [it for it in options("model") if refers_to(chosen((f"model={it}",)).settings, DEPTH)]
        rule = "no part of this experiment has a number of layers to set"
        raise ValueError(f"{line}: {rule}; with one: model={', '.join(among('model', deep, swept))}")


def refers_to(settings: DictConfig, key: str) -> bool:
    """Whether some setting refers to the setting `key`, as in ${layers}."""
    values = leaves(OmegaConf.to_container(settings))
    return any(isinstance(value, str) and f"${{{key}}}" in value for _, value in values)


@cache
def known_keys(choices: tuple[str, ...]) -> dict[str, None]:
    """The settings beside these choices of options, in order."""
    settings = OmegaConf.to_container(chosen(choices).settings)
    assert isinstance(settings, dict)
    return dict.fromkeys(keys(settings))


def needs(swept: Sequence[tuple[str, ...]]) -> dict[str, str]:
    """The settings of the jobs of a sweep, each with the choices that it needs; "" if all jobs have it."""
    found = {}
    for key in dict.fromkeys(key for choices in swept for key in known_keys(choices)):
        lacking = {item for choices in swept if key not in known_keys(choices) for item in choices}
        having = (item for choices in swept if key in known_keys(choices) for item in choices)
        found[key] = ", ".join(dict.fromkeys(it for it in having if it not in lacking)) if lacking else ""
    return found


def among(group: str, options: list[str], swept: Sequence[tuple[str, ...]]) -> list[str]:
    """The options of a group that the jobs of a sweep choose; if there is none, all."""
    made = {item for choices in swept for item in choices}
    return [it for it in options if f"{group}={it}" in made] or options


def check_key(item: Override, choices: tuple[str, ...], swept: Sequence[tuple[str, ...]]) -> None:
    """Raise ValueError for a setting that is not known. choices, swept: as in `check_setting`."""
    known, files = known_keys(choices), chosen(choices).files
    key = item.key_or_group
    if item.package is not None:
        raise ValueError(f"{item.input_line}: {key} is a setting, and only a choice of files has a place (@)")
    if key not in known and not any(name in known and key.rpartition(".")[0] == name for name in OPEN):
        if key in SWEEP_SETTINGS:
            raise ValueError(
                f"{item.input_line}: {key} is only for sweeps on the command line (python run.py -m)"
            )
        group, _, name = key.partition(".")
        if owners := [each for each in options(group) if key in known_keys((f"{group}={each}",))]:
            having = ", ".join(among(group, owners, swept))
            raise ValueError(f"{item.input_line}: {group}={files[group]} has no {name}; with it: {having}")
        if here := NAMES_ELSEWHERE.get(key.rpartition(".")[2]):
            raise ValueError(f"{item.input_line}: there is no setting {key!r}; here it is {here}")
        near = needs(swept)
        settings = [each for each in near if not each.rpartition(".")[2].startswith("_")]
        if group in files:  # but not the parts that are chosen, as in model/cell=gru
            chosen_parts = tuple(it for it in settings if options(it.replace(".", "/")) and it != group)
            similar = [
                it for it in settings if it.startswith(f"{group}.") and not it.startswith(chosen_parts)
            ]
        else:
            similar = [*settings, *groups(), *SWEEP_SETTINGS]
        raise ValueError(f"{item.input_line}: there is no setting {key!r}{did_you_mean(key, similar, near)}")


def check_type(line: str | None, key: str, value: Any, text: str, defaults: DictConfig) -> None:
    """Raise ValueError if a setting cannot have the value, which is written as `text` in the override `line`."""
    own = hint(defaults, key)
    kinds = (own, *get_args(own))
    if isinstance(value, dict) and any(get_origin(kind) in (Mapping, Callable) for kind in kinds):
        return
    if (isinstance(value, str) and "${" in value) or (value is None and NoneType in kinds):
        return
    allowed = allowed_types(defaults, key)
    if allowed and type(value) not in allowed and not (type(value) is int and float in allowed):
        expected = " or ".join(TYPES[kind] for kind in allowed if kind in TYPES)
        advice = f"; for a sweep: {key}={several}" if int in allowed and (several := integers(text)) else ""
        raise ValueError(f"{line}: {key} must be {expected}, got {text}{advice}")


def integers(text: str) -> str:
    """The values of a sweep for integers written as a range or list, such as 1-3, 1:3, 1..3 or [1,2,3]; else empty."""
    if ends := re.fullmatch(r"(\d+)(?:-|\\?:|\.\.+)(\d+)", text):
        return f"range({ends[1]},{int(ends[2]) + 1})"
    listed = re.fullmatch(r"\[(\d+(?:,\d+)+)\]", text.replace(" ", ""))
    return listed[1] if listed else ""


def check_init_from(item: Override, choices: tuple[str, ...], swept: Sequence[tuple[str, ...]]) -> None:
    """Check the settings in +init_from={optimizer: {lr: 0.1}} or +init_from.optimizer.lr=0.1.

    Each of them is one of the experiment's own.
    """
    line, known = str(item.input_line), known_keys(choices)
    settings: Any = item.value()
    for name in reversed(item.key_or_group.split(".")[1:]):
        settings = {name: settings}
    for key, value in changes(settings):
        if key not in known:
            near = needs(swept)
            raise ValueError(f"{line}: there is no setting {key!r}{did_you_mean(key, near, near)}")
        check_type(line, key, value, "null" if value is None else str(value), chosen(choices).settings)
        if f"{INIT_FROM}.{key}" not in known and not line.startswith("+"):
            raise ValueError(f"{line}: {INIT_FROM} has no {key!r} yet; to add it: +{line}")


def changes(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The settings that `init_from` changes, by their dotted names. A part that it replaces is one setting."""
    for name, value in settings.items():
        if isinstance(value, dict) and not init_from.replaces(value):
            yield from changes(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def allowed_types(defaults: DictConfig, key: str) -> tuple[type, ...]:
    """The type of a setting's default; if that is null, the types of the parameter that it is passed to.

    Of an item of a mapping, such as one of data.columns, those of the mapping's values. Empty if any value is allowed.
    """
    parent, _, name = key.rpartition(".")
    own, above = hint(defaults, key), hint(defaults, parent)
    if mapping := next((kind for kind in (above, *get_args(above)) if get_origin(kind) is Mapping), None):
        values = get_args(mapping)[1]
        if kinds := known_types(get_args(values) or (values,)):
            return kinds
    node = OmegaConf.select(defaults, parent) if parent else defaults
    if OmegaConf.is_missing(node, name):
        return ()
    default = node[name]
    if default is None:
        return known_types(get_args(own))
    plain = OmegaConf.to_container(default) if OmegaConf.is_config(default) else default
    if plain == "auto" and bool in (get_args(own) or (bool,)):
        return (str, bool)
    return (str, int, float) if isinstance(plain, str) else (type(plain),)


def known_types(kinds: tuple[Any, ...]) -> tuple[type, ...]:
    return tuple(kind for kind in kinds if kind in (*TYPES, NoneType))


def hint(defaults: DictConfig, key: str) -> Any:
    """The type hint of the parameter that a setting is passed to; None if there is none."""
    parent, _, name = key.rpartition(".")
    node = OmegaConf.select(defaults, parent) if parent else defaults
    if "_target_" not in node:
        return None
    target = located(node._target_, f"{parent}._target_")
    # the fields of a dataclass may be named in several modules
    return get_type_hints(target if is_dataclass(target) else target.__init__).get(name)


def keys(node: Mapping[Any, Any], prefix: str = "") -> Iterator[str]:
    """The dotted name of every setting, and of every inner node."""
    for name, value in node.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict):
            yield from keys(value, f"{prefix}{name}.")
