"""Four papers' named-entity taggers, and the sweeps that reproduce their tables.

`load(run).tag(text)` puts a trained one to work: see `ner_experiments.predict.tagger`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ner_experiments.predict.tagger import load as load


def __getattr__(name: str) -> Any:
    """Imports PyTorch for `load` only when that is asked for."""
    if name == "load":
        return import_module("ner_experiments.predict.tagger").load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
