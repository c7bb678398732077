"""Imports of torchmetrics and seqeval that leave out what they load and the suite does not use.

Only commands use them: a program that uses the suite as a library may use more of torchmetrics.
"""

import re
import sys
from types import ModuleType
from unittest.mock import patch

OPTIONAL = ("matplotlib", "scipy", "transformers")
"""Libraries that torchmetrics imports for plots, audio and texts, if they are installed."""


class UndefinedMetricWarning(UserWarning):
    """In place of scikit-learn's."""


def import_metrics() -> None:
    """Import torchmetrics and seqeval, which then take half a second instead of half of a command's start.

    To be called before Lightning is imported, which imports torchmetrics.
    """
    if "torchmetrics" not in sys.modules:
        import_torchmetrics()
    if not {"seqeval", "sklearn"} & {*sys.modules}:
        import_seqeval()


def import_torchmetrics() -> None:
    """Import torchmetrics as if its optional libraries were not installed."""
    from lightning_utilities.core import imports

    is_available, is_met = imports.package_available, imports.RequirementCache.__bool__

    def package_available(name: str) -> bool:
        return name not in OPTIONAL and is_available(name)

    def requirement_met(self: imports.RequirementCache) -> bool:
        name, *_ = re.split(r"\W", self.requirement or "", maxsplit=1)
        if name in OPTIONAL:  # for good: torchmetrics refuses what it then lacks
            self.available, self.message = False, f"{name} is not used by the suite's commands"
        return is_met(self)

    with (
        patch.object(imports, "package_available", package_available),
        patch.object(imports.RequirementCache, "__bool__", requirement_met),
    ):
        import torchmetrics  # noqa: F401


def import_seqeval() -> None:
    """Import seqeval without scikit-learn, of which it uses the class of a warning."""
    exceptions = ModuleType("sklearn.exceptions")
    exceptions.UndefinedMetricWarning = UndefinedMetricWarning  # type: ignore[attr-defined]
    stand_ins = {"sklearn": ModuleType("sklearn"), "sklearn.exceptions": exceptions}
    sys.modules.update(stand_ins)
    try:
        import seqeval.metrics  # noqa: F401
    finally:
        for name in stand_ins:
            del sys.modules[name]
