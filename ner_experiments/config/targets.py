"""The classes and functions that configs name as `_target_`."""

from importlib import import_module
from pkgutil import iter_modules, resolve_name
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ner_experiments.config.safe_yaml import targets
from ner_experiments.utils.text import did_you_mean


def check_targets(cfg: DictConfig) -> None:
    """Import what the config names. Raises ValueError as `located`."""
    for place, name in targets(OmegaConf.to_container(cfg, resolve=True)):
        located(str(name), place)


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
