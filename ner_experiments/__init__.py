"""The named-entity taggers of four papers, and the sweeps that reproduce their tables.

`load(run).tag(text)` tags text with a finished run: see `ner_experiments.predict.tagger`.
`compare(gold, {"a": ["a/1.conll", "a/2.conll"], "b": [...]})` compares predictions of any tools: see
`ner_experiments.comparison.comparison`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ner_experiments.comparison.comparison import compare as compare
    from ner_experiments.predict.tagger import load as load

    __version__: str

__all__ = ["__version__", "compare", "load"]


def __getattr__(name: str) -> Any:
    """Resolve `compare`, `load` and `__version__` on access, so that importing the package does not import PyTorch."""
    if name == "compare":
        return import_module("ner_experiments.comparison.comparison").compare
    if name == "load":
        return import_module("ner_experiments.predict.tagger").load
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
