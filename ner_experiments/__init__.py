"""The named-entity taggers of four papers, and the sweeps that reproduce their tables.

`load(run).tag(text)` tags text with a finished run: see `ner_experiments.predict.tagger`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ner_experiments.predict.tagger import load as load

    __version__: str

__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    """Resolve `load` and `__version__` on access, so that importing the package does not import PyTorch."""
    if name == "load":
        return import_module("ner_experiments.predict.tagger").load
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
