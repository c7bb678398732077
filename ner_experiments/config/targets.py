"""The classes and functions that configs name as `_target_`, and the arguments that these take."""

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from inspect import Parameter
from pkgutil import iter_modules, resolve_name
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ner_experiments.config.config_dirs import folders
from ner_experiments.config.plain_yaml import load
from ner_experiments.config.safe_yaml import TARGET, children, targets
from ner_experiments.config.stand_ins import STAND_IN
from ner_experiments.utils.text import did_you_mean

CHECKED_ELSEWHERE = ("data", "init_from")
"""Parts of a config that are checked when the corpus is opened, and when the first run is trained."""
NOT_PASSED_ON = (TARGET, "_partial_", "_args_", "_recursive_", "_convert_", STAND_IN)
GIVEN: Mapping[str, Sequence[str]] = {"model": ("input_size",), "decoder": ("num_tags", "allowed")}
"""The arguments that `build.assemble` adds to those of the config."""


def check_targets(cfg: DictConfig) -> None:
    """Import what the config names, and compare its settings with the arguments. Constructs nothing.

    Raises ValueError as `located` and `check_arguments`.
    """
    settings: Any = OmegaConf.to_container(cfg, resolve=True)
    for place, name in targets(settings):
        located(str(name), place)
    for part in (it for it in settings if it not in CHECKED_ELSEWHERE):
        for place, node in parts(settings[part], part):
            check_arguments(node, place)


def parts(node: Any, place: str) -> Iterator[tuple[str, dict[Any, Any]]]:
    """Yield the key and the settings of every part that is built from a `_target_`."""
    if isinstance(node, dict) and TARGET in node:
        yield place, node
    for key, child in children(node):
        yield from parts(child, f"{place}.{key}")


def check_arguments(node: Mapping[Any, Any], place: str) -> None:
    """Raise ValueError for a setting that is no argument of the part's class, and for an argument without a value.

    Of the partial parts, only those for which it is known what they are called with need have values for all others:
    what the module of an input is given, for example, depends on what is read.
    """
    name = str(node[TARGET])
    try:
        parameters = inspect.signature(located(name, f"{place}.{TARGET}")).parameters
    except (TypeError, ValueError):  # some classes written in C have no signature
        return
    given = [*parameters][:1] if place == "optimizer" else GIVEN.get(place, ())  # the weights, by position
    settings = [str(key) for key in node if key not in NOT_PASSED_ON]
    kinds = {it.kind for it in parameters.values()}
    if Parameter.VAR_KEYWORD not in kinds:
        if lacking := next((it for it in given if it not in parameters), None):
            who = with_files(name, place)
            raise ValueError(
                f"{place}: {who} has no argument {lacking!r}, which every {place} is given: add it"
            )
        if unknown := next((it for it in settings if it not in parameters), None):
            raise ValueError(
                f"{place}.{unknown}: {with_files(name, place)} has no argument {unknown!r}: remove the line, or add it "
                f"to the class{did_you_mean(unknown, [it for it in parameters if it not in given])}"
            )
    if "_args_" in node or (node.get("_partial_") and not given):
        return
    for it in parameters.values():
        optional = it.default is not it.empty or it.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        if not optional and it.name not in (*settings, *given):
            raise ValueError(
                f"{place}.{it.name}: {with_files(name, place)} requires the argument {it.name!r}: add a line for it, "
                "or a default to the class"
            )


def with_files(target: str, place: str) -> str:
    """The name of a class, with the files of conf/ and of the user's own configs that name it for this part."""
    group = place.partition(".")[0]
    files = [path for folder in folders() for path in sorted((folder / group).rglob("*.yaml"))]
    naming = [os.path.relpath(path) for path in files if target in {name for _, name in targets(load(path))}]
    return f"{target} ({', '.join(naming)})" if naming else target


def located(name: str, place: str) -> Any:
    """The class or function of a `_target_`. ValueError, with near names beside it, if it cannot be imported."""
    try:
        return resolve_name(name)
    except Exception as error:  # importing a user's module can raise anything
        raise ValueError(f"{place}={name}: {' '.join(reason(name).split())}") from error


def reason(name: str) -> str:
    """Why a dotted name cannot be imported."""
    module, _, own = name.rpartition(".")
    if not module:
        return "expected a module and a name in it, such as torch.nn.GRU"
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name and "." in error.name and module.startswith(error.name):  # a package above lacks it
            return reason(error.name)
        return str(error)
    except Exception as error:
        return f"{module}: {type(error).__name__}: {error}"
    modules_of = {it: getattr(value, "__module__", None) for it, value in vars(found).items()}
    defined = [it for it, where in modules_of.items() if str(where).startswith(module)]
    modules = [it.name for it in iter_modules(getattr(found, "__path__", []))]
    known = [it for it in (*modules, *defined) if not it.startswith("_")]
    return f"{module} has no {own!r}{did_you_mean(own, known)}"
